package shardlog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// reporting are the options of an engine that tells the directory of a loss, and has files for the records.
func reporting(t testing.TB, log shardlog.Log, directory shardlog.Directory, owner string) shardlog.Options {
	o := options(log, owner)
	o.Directory, o.Cluster, o.RescueDir = directory, "blue", filepath.Join(t.TempDir(), "rescue")
	return o
}

// rescued reads the rescue files of an engine.
func rescued(t testing.TB, o shardlog.Options) (all []shardlog.Rescue) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(o.RescueDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := shardlog.ReadRescue(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(name, err)
		}
		all = append(all, r)
	}
	return all
}

// look is the directory at this moment.
func look(t testing.TB, d shardlog.Directory) shardlog.Look {
	t.Helper()
	l, err := d.Look(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Proves N7: an owner that learns of a loss puts the shard into quarantine and writes exactly the records that the log lacks into a file. If
// no other owner has appended, Recover puts them back, and the next owner has all that was acknowledged.
func TestOwnerTellsOfALoss(t *testing.T) {
	for _, batch := range []bool{true, false} {
		for _, grown := range []int{0, 1, 4} {
			bubble(t, func(t *testing.T) {
				log := memlog.New()
				o := reporting(t, log, log, "a")
				e := start(t, o, memstore.New())
				for i := range 5 {
					store(t, e, "a", fmt.Sprint(i))
				}
				had := shardlogtest.Records(t, log, 0)
				log.Rewind(0, 2)
				if grown > 0 {
					other := start(t, options(log, "other"), memstore.New())
					for i := range grown {
						store(t, other, "other", fmt.Sprint(i))
					}
					closeEngine(t, other)
				}
				if batch {
					apply(t, e, "x", "1")
				}
				if err := e.Sync(); !errors.Is(err, storage.ErrAckedDataLost) || !contains(err, "remove this directory") {
					t.Errorf("the owner: %v", err)
				}
				_ = e.Close()
				synctest.Wait()
				about := fmt.Sprintf("batch %v, grown by %d", batch, grown)
				h := shardlogtest.Head(t, log, 0)
				if want := fmt.Sprintf("record 5 with chain %016x was acknowledged", had[4].Chain); !strings.HasPrefix(h.Lost, want) || !strings.HasSuffix(h.Lost, "found by a") {
					t.Errorf("%s: the quarantine says %q", about, h.Lost)
				}
				want := []shardlog.Rescue{{Shard: 0, Cluster: "blue", Term: 1, Before: had[1].Chain, Records: had[2:]}}
				if got := rescued(t, o); !reflect.DeepEqual(got, want) {
					t.Fatalf("%s: the files have %+v, want %+v", about, got, want)
				}
				if grown > 0 {
					return
				}
				if _, err := log.Recover(t.Context(), 0, h.Term, want[0].Before, want[0].Records); err != nil {
					t.Fatal(err)
				}
				next := start(t, options(log, "next"), memstore.New())
				holds(t, about, next, map[string]string{"0": "a", "1": "a", "2": "a", "3": "a", "4": "a"})
				closeEngine(t, next)
			})
		}
	}
}

// An owner that is replaced in a log without a loss tells of nothing.
func TestReplacedOwnerTellsOfNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := memlog.New()
		o := reporting(t, log, log, "a")
		e := start(t, o, memstore.New())
		store(t, e, "a", "x")
		other := start(t, options(log, "other"), memstore.New())
		store(t, other, "other", "x")
		apply(t, e, "x", "1")
		is(t, "the owner before", e.Sync(), shardlog.ErrFenced)
		synctest.Wait()
		if l := look(t, log); l.State.Lost != "" || l.Late != "" || len(rescued(t, o)) > 0 {
			t.Errorf("the directory says %+v", l)
		}
		closeEngine(t, other)
	})
}

// fencedInSilence is an owner that is fenced while the log answers nothing but appends, and has lost its last record if lost is set. Each head that
// begins at back or later is answered, after took. It returns the log once the engine is closed.
func fencedInSilence(t *testing.T, lost bool, back, took time.Duration, change func(*shardlog.Options)) *memlog.Log {
	t.Helper()
	log := &scripted{Log: memlog.New()}
	inner := log.Log.(*memlog.Log)
	o := reporting(t, log, inner, "a")
	if change != nil {
		change(&o)
	}
	e := start(t, o, memstore.New())
	store(t, e, "a", "x")
	store(t, e, "b", "x")
	if lost {
		inner.Rewind(0, 1)
	}
	other := start(t, options(inner, "other"), memstore.New())
	store(t, other, "other", "y")
	store(t, other, "other", "z")
	met := time.Now()
	log.onHead = func(do func() (shardlog.State, error)) (shardlog.State, error) {
		if time.Since(met) < back {
			return shardlog.State{}, errCut
		}
		time.Sleep(took)
		return do()
	}
	apply(t, e, "x", "c")
	is(t, "the owner before", e.Sync(), shardlog.ErrFenced)
	is(t, "its end", e.Close(), shardlog.ErrFenced)
	if time.Since(met) > 0 {
		t.Errorf("the owner ended %v after it met the fence", time.Since(met))
	}
	return inner
}

// Proves N7: a fenced owner without an answer asks on after its end, and tells of the loss, although the next owner has hidden it. Within an hour
// that stops the shard, and later it is noted.
func TestFencedOwnerAsksOn(t *testing.T) {
	for about, c := range map[string]struct {
		lost       bool
		back, took time.Duration
		want       string // quarantine, late or nothing
	}{
		"at the first try":       {true, time.Millisecond, 0, "quarantine"},
		"after half an hour":     {true, 30 * time.Minute, 0, "quarantine"},
		"after an hour":          {true, time.Hour, 0, "quarantine"},
		"a moment after an hour": {true, time.Hour, 1, "late"},
		"too late":               {true, time.Hour + 1, 0, "nothing"},
		"no loss":                {false, 30 * time.Minute, 0, "nothing"},
	} {
		bubble(t, func(t *testing.T) {
			log := fencedInSilence(t, c.lost, c.back, c.took, nil)
			time.Sleep(2 * time.Hour)
			synctest.Wait()
			l := look(t, log)
			got := "nothing"
			switch {
			case l.State.Lost != "" && l.Late == "":
				got = "quarantine"
			case l.State.Lost == "" && l.Late != "":
				got = "late"
			}
			if got != c.want {
				t.Errorf("%s: %s, want %s: %+v", about, got, c.want, l)
			}
		})
	}
}

// The end of the context ends the goroutine of an owner that asks on.
func TestContextEndsTheInquiry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		log := fencedInSilence(t, true, 30*time.Minute, 0, func(o *shardlog.Options) { o.Context = ctx })
		time.Sleep(29 * time.Minute)
		cancel()
		time.Sleep(time.Hour)
		if l := look(t, log); l.State.Lost != "" {
			t.Errorf("after the end the directory was told %q", l.State.Lost)
		}
	})
}

// An owner that ends because the log does not answer asks on as well: the fail-over may lose its last record.
func TestImpatientOwnerAsksOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := &scripted{Log: memlog.New()}
		inner := log.Log.(*memlog.Log)
		o := reporting(t, log, inner, "a")
		e := start(t, o, memstore.New())
		store(t, e, "a", "x")
		var down atomic.Bool
		down.Store(true)
		log.onAppend = func(shardlog.Record, func() error) error { return errCut }
		log.onHead = func(do func() (shardlog.State, error)) (shardlog.State, error) {
			if down.Load() {
				return shardlog.State{}, errCut
			}
			return do()
		}
		apply(t, e, "x", "b")
		is(t, "the append", e.Sync(), shardlog.ErrUnknown)
		inner.Rewind(0, 0)
		down.Store(false)
		time.Sleep(2 * time.Second)
		if h := shardlogtest.Head(t, inner, 0); h.Lost == "" || len(rescued(t, o)) != 1 {
			t.Errorf("the head is %+v, %d files", h, len(rescued(t, o)))
		}
		_ = e.Close()
	})
}

// cutDirectory is a directory with quarantines that lose their answers.
type cutDirectory struct {
	shardlog.Directory
	cuts atomic.Int64 // yet to come
}

func (d *cutDirectory) Quarantine(ctx context.Context, shard int, where string) error {
	if d.cuts.Add(-1) >= 0 {
		return errCut
	}
	return d.Directory.Quarantine(ctx, shard, where)
}

// A directory that does not answer is told again.
func TestQuarantineIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := memlog.New()
		d := &cutDirectory{Directory: log}
		d.cuts.Store(5)
		o := reporting(t, log, d, "a")
		view := memstore.New()
		e := start(t, o, view)
		store(t, e, "a", "x")
		log.Rewind(0, 0)
		is(t, "the owner", e.Sync(), storage.ErrAckedDataLost)
		time.Sleep(time.Minute)
		if h := shardlogtest.Head(t, log, 0); h.Lost == "" {
			t.Error("the owner gave up to tell of the loss")
		}
		if _, err := log.Recover(t.Context(), 0, 2, 0, nil); err != nil {
			t.Fatal(err)
		}
		d.cuts.Store(5)
		_, err := shardlog.Open(o, view.Crash(1<<30))
		is(t, "the next opening", err, storage.ErrAckedDataLost)
		if h := shardlogtest.Head(t, log, 0); h.Lost == "" {
			t.Error("the opening gave up to tell of the loss")
		}
	})
}

// Proves N7: a view that is ahead of the log puts the shard into quarantine once. When the loss is accepted and another process works on, the
// view is refused and stops nothing, until its directory is removed.
func TestViewTellsOfALossOnce(t *testing.T) {
	for _, restarted := range []bool{false, true} { // during the quarantine
		bubble(t, func(t *testing.T) {
			log := memlog.New()
			view := memstore.New()
			e := start(t, options(log, "a"), view)
			for i := range 5 {
				store(t, e, "a", fmt.Sprint(i))
			}
			log.Rewind(0, 3)
			view = view.Crash(1 << 30)
			o := reporting(t, log, log, "a")
			open := func() {
				t.Helper()
				_, err := shardlog.Open(o, view)
				is(t, "the view that is ahead", err, storage.ErrAckedDataLost)
				if !contains(err, "remove this directory") {
					t.Errorf("the error does not say what to do: %v", err)
				}
				view = view.Crash(0)
			}
			if restarted {
				log.SetLost(0, "found by another")
			}
			open()
			h := shardlogtest.Head(t, log, 0)
			if h.Lost == "" {
				t.Fatal("no quarantine")
			}
			if _, err := log.Recover(t.Context(), 0, h.Term, 0, nil); err != nil {
				t.Fatal(err)
			}
			for grown := range 4 {
				open()
				if h := shardlogtest.Head(t, log, 0); h.Lost != "" {
					t.Fatalf("grown by %d: the view has stopped the shard again: %s", grown, h.Lost)
				}
				other := start(t, options(log, "other"), memstore.New())
				store(t, other, "other", "x")
				closeEngine(t, other)
			}
		})
	}
}

// A view whose lost records are put back is as good as before, and tells of the same loss if it happens again.
func TestViewForgetsALossThatIsMended(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := memlog.New()
		view := memstore.New()
		o := reporting(t, log, log, "a")
		e := start(t, o, view)
		for i := range 3 {
			store(t, e, "a", fmt.Sprint(i))
		}
		closeEngine(t, e)
		had := shardlogtest.Records(t, log, 0)
		for range 2 {
			log.Rewind(0, 1)
			view = view.Crash(1 << 30)
			_, err := shardlog.Open(o, view)
			is(t, "the view that is ahead", err, storage.ErrAckedDataLost)
			h := shardlogtest.Head(t, log, 0)
			if h.Lost == "" {
				t.Fatal("no quarantine")
			}
			if _, err := log.Recover(t.Context(), 0, h.Term, had[0].Chain, had[1:]); err != nil {
				t.Fatal(err)
			}
			e := start(t, o, view)
			holds(t, "the view once the records are back", e, map[string]string{"0": "a", "1": "a", "2": "a"})
			closeEngine(t, e)
		}
	})
}

// A follower that meets a loss puts the shard into quarantine.
func TestFollowerTellsOfALoss(t *testing.T) {
	bubble(t, func(t *testing.T) {
		log := memlog.New()
		owner := start(t, options(log, "owner"), memstore.New())
		for i := range 3 {
			store(t, owner, "owner", fmt.Sprint(i))
		}
		var silent atomic.Bool
		w := wait(t, log, "follower", 9, &silent, func(o *shardlog.Options) { o.Directory = log })
		time.Sleep(time.Second)
		log.Rewind(0, 1)
		is(t, "the follower", (<-w.opened).err, storage.ErrAckedDataLost)
		if h := shardlogtest.Head(t, log, 0); !strings.HasPrefix(h.Lost, "record 2 ") || !strings.HasSuffix(h.Lost, "found by follower") {
			t.Errorf("the quarantine says %q", h.Lost)
		}
	})
}
