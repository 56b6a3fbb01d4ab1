package storage

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/seam"
)

// manualClock stands still until it is moved.
type manualClock struct {
	seam.Clock
	now time.Time
}

func (c *manualClock) Now() time.Time { return c.now }

// Each opening has a number greater than all before, and learns how the last one ended,
// for any order of clean ends and crashes.
func TestEpochsAndPrevious(t *testing.T) {
	fsys := vfs.NewMem()
	clock := &manualClock{now: time.Unix(1000, 0)}
	o := memOptions(fsys)
	o.Seams.Clock = clock

	seen := make(map[uint64]bool)
	var seq uint64
	var number Number
	want := Previous{}
	for i, clean := range []bool{true, false, false, true, true, false, false, false, true} {
		s := open(t, o)
		if got := s.Previous(); got.Epoch != want.Epoch || got.Clean != want.Clean || got.Crashes != want.Crashes || got.CrashedEpoch != want.CrashedEpoch || !got.OpenedAt.Equal(want.OpenedAt) {
			t.Errorf("opening %d: previous is %+v, want %+v", i, got, want)
		}
		if seen[s.Epoch()] || s.Epoch() <= want.Epoch {
			t.Errorf("opening %d: epoch %d after %d", i, s.Epoch(), want.Epoch)
		}
		seen[s.Epoch()] = true
		if n := s.NextSeq(); n <= seq {
			t.Errorf("opening %d: sequence number %d after %d", i, n, seq)
		} else {
			seq = n
		}
		if n := s.NewNumber(); n <= number {
			t.Errorf("opening %d: object number %d after %d", i, n, number)
		} else {
			number = n
		}
		want = Previous{Epoch: s.Epoch(), Clean: clean, OpenedAt: clock.now, Crashes: want.Crashes + 1, CrashedEpoch: want.CrashedEpoch}
		clock.now = clock.now.Add(time.Hour)
		if clean {
			want.Crashes = 0
			checkAndClose(t, s)
		} else {
			want.CrashedEpoch = s.Epoch()
			if err := s.Abandon(); err != nil {
				t.Error(err)
			}
		}
	}
}

// The epoch is durable before Open returns: power lost at once does not bring
// the number back.
func TestEpochSurvivesPowerLoss(t *testing.T) {
	fsys := vfs.NewCrashableMem()
	for want := uint64(1); want < 5; want++ {
		s := open(t, memOptions(fsys))
		if s.Epoch() != want {
			t.Errorf("epoch %d, want %d", s.Epoch(), want)
		}
		crashed := fsys.CrashClone(vfs.CrashCloneCfg{})
		if err := s.Abandon(); err != nil {
			t.Error(err)
		}
		fsys = crashed
	}
}

// After Close or Abandon each use is an error, except another end.
func TestUseAfterClose(t *testing.T) {
	ends := map[string]func(*Store) error{"Close": (*Store).Close, "Abandon": (*Store).Abandon}
	for name, end := range ends {
		s := open(t, memOptions(vfs.NewMem()))
		o := newObject(t, s, "c", "n")
		if err := end(s); err != nil {
			t.Fatal(err)
		}
		<-s.Dead()
		var b Batch
		b.SetData(o, "k", nil)
		uses := map[string]error{"Err": s.Err(), "WaitDurable": s.WaitDurable(s.Applied()), "Check": s.Check()}
		_, uses["Commit"] = s.Commit(&b)
		_, uses["Find"] = s.Find(o.ID)
		_, _, uses["Data of the batch"] = s.Data(&b, o, "k")
		_, uses["ListData"] = s.ListData(nil, o, "", "", false)
		_, _, uses["Data of no object"] = s.Data(nil, Object{}, "k")
		for use, err := range uses {
			if !errors.Is(err, ErrClosed) || !errors.Is(err, ErrStorage) {
				t.Errorf("%s after %s: %v", use, name, err)
			}
		}
		if err := errors.Join(s.Close(), s.Abandon(), s.Close()); err != nil {
			t.Errorf("ending again after %s: %v", name, err)
		}
	}
}

// A call during Close returns an error, and does not panic.
func TestUseDuringClose(t *testing.T) {
	for range 5 {
		s := open(t, memOptions(vfs.NewMem()))
		o := newObject(t, s, "c", "n")
		commit(t, s, func(b *Batch) {
			for i := range 50 {
				b.SetData(o, fmt.Sprint(i), nil)
			}
		})
		uses := []func() error{
			func() error { _, _, err := s.Data(nil, o, "7"); return err },
			func() error { _, err := s.HasRows(nil, o); return err },
			func() error { return s.Check() },
			func() error { _, err := s.Size(o); return err },
			func() error { _, err := s.Commit(metaBatch("k", 10)); return err },
			func() error {
				ticket, err := s.Commit(metaBatch("k", 10))
				if err == nil {
					err = s.WaitDurable(ticket)
				}
				return err
			},
		}
		var running, done sync.WaitGroup
		running.Add(len(uses))
		for i, use := range uses {
			done.Go(func() {
				first := true
				for {
					err := use()
					if first {
						running.Done()
						first = false
					}
					if err != nil {
						if !errors.Is(err, ErrClosed) || !errors.Is(err, ErrStorage) {
							t.Errorf("use %d: %v", i, err)
						}
						return
					}
				}
			})
		}
		running.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		done.Wait()
	}
}

// An iterator that outlives Close does no harm: it ends with the error, and the
// directory stays locked until it is closed.
func TestIteratorOutlivesClose(t *testing.T) {
	o := memOptions(vfs.NewMem())
	s := open(t, o)
	obj := newObject(t, s, "c", "n")
	commit(t, s, func(b *Batch) { b.SetData(obj, "a", nil); b.SetData(obj, "b", nil) })
	it, err := s.ListData(nil, obj, "", "", false)
	if err != nil || !it.Next() {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wantOpenError(t, o, ErrLocked, "store")
	if it.Next() || !errors.Is(it.Err(), ErrClosed) {
		t.Errorf("after Close: key %q, %v", it.Key(), it.Err())
	}
	if err := it.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("closing it: %v", err)
	}
	checkAndClose(t, open(t, o))
}
