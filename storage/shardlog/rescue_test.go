package shardlog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// lose ends an owner with five records of a log that loses those after a position, once change has changed the log. It returns the records
// and the options of the owner.
func lose(t *testing.T, log *scripted, to shardlog.Position, change func(inner *memlog.Log)) ([]shardlog.Record, shardlog.Options) {
	t.Helper()
	inner := log.Log.(*memlog.Log)
	o := reporting(t, log, inner, "a")
	o.Directory = nil
	e := start(t, o, memstore.New())
	for i := range 5 {
		store(t, e, "a", fmt.Sprint(i))
	}
	had := shardlogtest.Records(t, inner, 0)
	inner.Rewind(0, to)
	if change != nil {
		change(inner)
	}
	if err := e.Sync(); err == nil {
		t.Fatal("the owner has not met the loss")
	}
	return had, o
}

// The file has the records that the log lacks, wherever that ends: in a base, in pages, and after a cut.
func TestRescueHasTheLostRecords(t *testing.T) {
	for to := range shardlog.Position(5) {
		for about, change := range map[string]func(*testing.T, *scripted, *memlog.Log){
			"all records": func(*testing.T, *scripted, *memlog.Log) {},
			"a base": func(t *testing.T, _ *scripted, inner *memlog.Log) {
				shardlogtest.Truncate(t, inner, 0, to)
			},
			"pages and cuts": func(_ *testing.T, log *scripted, _ *memlog.Log) {
				n := 0
				log.onRead = func(_ shardlog.Position, f func(shardlog.Record) error, do func(func(shardlog.Record) error) error) error {
					if n++; n%2 == 0 {
						return errCut
					}
					given := 0
					err := do(func(r shardlog.Record) error {
						if given++; given > 1 {
							return io.EOF
						}
						return f(r)
					})
					if errors.Is(err, io.EOF) {
						return nil
					}
					return err
				}
			},
		} {
			bubble(t, func(t *testing.T) {
				log := &scripted{Log: memlog.New()}
				had, o := lose(t, log, to, func(inner *memlog.Log) { change(t, log, inner) })
				time.Sleep(time.Minute)
				want := shardlog.Rescue{Cluster: "blue", Term: 1, Records: had[to:]}
				if to > 0 {
					want.Before = had[to-1].Chain
				}
				if got := rescued(t, o); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
					t.Errorf("%s, lost after %d: %+v, want %+v", about, to, got, want)
				}
			})
		}
	}
}

// If the log answers no more, the file has all records that the owner has kept.
func TestRescueOfASilentLog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &scripted{Log: memlog.New()}
		heads := 0
		had, o := lose(t, log, 3, func(*memlog.Log) {
			log.onHead = func(do func() (shardlog.State, error)) (shardlog.State, error) {
				if heads++; heads > 1 {
					return shardlog.State{}, errCut
				}
				return do()
			}
		})
		time.Sleep(time.Hour + time.Minute)
		if got := rescued(t, o); len(got) != 1 || !reflect.DeepEqual(got[0].Records, had) || got[0].Before != 0 {
			t.Errorf("the file has %+v", got)
		}
	})
}

// Records of an earlier owner are not kept, so the file begins behind them.
func TestRescueBeginsWithTheOwner(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := logOf(t, 4)
		o := reporting(t, log, log, "b")
		e := start(t, o, memstore.New())
		store(t, e, "b", "x")
		had := shardlogtest.Records(t, log, 0)
		log.Rewind(0, 2)
		if err := e.Sync(); err == nil {
			t.Fatal("no error")
		}
		synctest.Wait()
		want := []shardlog.Rescue{{Cluster: "blue", Term: 2, Before: had[3].Chain, Records: had[4:]}}
		if got := rescued(t, o); !reflect.DeepEqual(got, want) {
			t.Errorf("the file has %+v, want %+v", got, want)
		}
	})
}

// rescueFile is the bytes of a rescue file with two records.
func rescueFile(t *testing.T) (b []byte) {
	bubble(t, func(t *testing.T) {
		log := &scripted{Log: memlog.New()}
		_, o := lose(t, log, 3, nil)
		synctest.Wait()
		names, err := filepath.Glob(filepath.Join(o.RescueDir, "*"))
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		if b, err = os.ReadFile(names[0]); err != nil {
			t.Fatal(err)
		}
	})
	return b
}

// Each file that is cut off, longer, or has another byte is refused.
func TestDamagedRescueIsRefused(t *testing.T) {
	whole := rescueFile(t)
	refused := func(about string, b []byte) {
		t.Helper()
		if r, err := shardlog.ReadRescue(bytes.NewReader(b)); !errors.Is(err, shardlog.ErrNotRescue) {
			t.Errorf("%s: %v with %d records", about, err, len(r.Records))
		}
	}
	for n := range whole {
		refused(fmt.Sprint("cut off at ", n), whole[:n])
		flipped := bytes.Clone(whole)
		flipped[n] ^= 0x10
		refused(fmt.Sprint("byte ", n), flipped)
	}
	refused("longer", append(bytes.Clone(whole), 0))
	broken := errors.New("the disk is broken")
	if _, err := shardlog.ReadRescue(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("a disk that is broken: %v", err)
	}
}

// FuzzReadRescue gives the reader bytes with a sum that fits. It must refuse or read them, and never panic.
func FuzzReadRescue(f *testing.F) {
	f.Add([]byte("\x00\x00\x01\x00\x01\x01\x01\x01x"), uint64(0))
	f.Fuzz(func(t *testing.T, body []byte, chain uint64) {
		r, err := shardlog.ReadRescue(bytes.NewReader(shardlog.SealedRescue(body, chain)))
		if err != nil {
			if !errors.Is(err, shardlog.ErrNotRescue) {
				t.Error(err)
			}
			return
		}
		before := shardlog.Record{At: r.Records[0].At - 1, Chain: r.Before}
		for _, record := range r.Records {
			if err := record.Follows(before, r.Term); err != nil {
				t.Error(err)
			}
			before = record
		}
	})
}
