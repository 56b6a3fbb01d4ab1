package storagetest

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/torn"
	"github.com/holdfast-dev/holdfast/storage"
)

// Options bound a test. The zero value is fit for each run of the tests.
type Options struct {
	// Seed chooses sizes, how often the workload waits, and torn blocks.
	Seed uint64
	// Commits is the length of the workload. Default: 60.
	Commits int
	// Points bounds how many crashes, errors or damages are tried; beyond, they
	// are taken at equal distances, and the log says how many of how many.
	// Default: 1000.
	Points int
	// Witness tells Damage that the store keeps a witness file, so that the loss
	// of what was acknowledged must not go unnoticed.
	Witness bool
}

func (o Options) withDefaults() Options {
	if o.Commits == 0 {
		o.Commits = 60
	}
	if o.Points == 0 {
		o.Points = 1000
	}
	return o
}

// Figures count what a test did.
type Figures struct {
	Operations int // that change files in the workload
	Points     int // crashes, errors or damages tried
	Nested     int // of the crashes, those in the recovery from another
	Refused    int // damages reported when the store was opened or read
	Lost       int // damages that lost the newest commits, where that is documented
	Harmless   int // damages or errors that changed nothing
	Died       int // errors after which the store was dead
}

// keeps is how many ways there are to lose what was not synced at each operation:
// all of it, none, and two torn parts.
const keeps = 4

func keepOf(seed uint64, op, i int) torn.Keep {
	switch i {
	case 0:
		return torn.KeepNone
	case 1:
		return torn.KeepAll
	default:
		return torn.Keep(splitmix(seed+uint64(op*keeps+i))>>2) + 1
	}
}

// Crash cuts the power before the operations of a workload of three lives: the
// making of a store and its clean close, a life that ends with the kill of the
// process, and the recovery from that. One crash in eight is followed by another
// in the recovery from it.
func Crash(t testing.TB, open Opener, o Options) Figures {
	t.Helper()
	o = o.withDefaults()
	total := crashRun(t, open, o, func(torn.Op, int) bool { return false }).Operations * keeps
	stride := max(1, (total+o.Points-1)/o.Points)
	offset := int(o.Seed % uint64(stride))
	f := crashRun(t, open, o, func(op torn.Op, keep int) bool { return (op.Index*keeps+keep)%stride == offset })
	t.Logf("crashes: seed %d, %d points of %d (%d operations, %d ways to lose), and %d in recoveries", o.Seed, f.Points-f.Nested, total, f.Operations, keeps, f.Nested)
	return f
}

// crash is a crash to be checked.
type crash struct {
	op     torn.Op
	keep   torn.Keep
	moment torn.Moment
	subj   *subject // with the counters of that moment
	nested int      // the operation of the recovery to crash at, or -1
}

// crashRun runs the workload and checks the crashes that choose names.
func crashRun(t testing.TB, open Opener, o Options, choose func(op torn.Op, keep int) bool) Figures {
	t.Helper()
	var f Figures
	subj := newSubject(open, o.Seed, o.Commits)
	crashes := make(chan crash)
	var checkers sync.WaitGroup
	var mu sync.Mutex // guards f.Points and f.Nested
	for range runtime.GOMAXPROCS(0) {
		checkers.Go(func() {
			for c := range crashes {
				points, nested := c.check(t, o.Seed)
				mu.Lock()
				f.Points += points
				f.Nested += nested
				mu.Unlock()
			}
		})
	}
	mem := vfs.NewCrashableMem()
	var fsys *torn.FS
	before := func(op torn.Op) error {
		op.Index += f.Operations
		var at *torn.Moment
		var then *subject
		for i := range keeps {
			if !choose(op, i) {
				continue
			}
			if at == nil {
				acked := subj.acked.Load() // before the capture: what it counts is in it
				m := fsys.Capture()
				at, then = &m, subj.after(acked, subj.issued.Load())
			}
			nested := -1
			if h := splitmix(o.Seed ^ uint64(op.Index*keeps+i)); h%8 == 0 {
				nested = int(h >> 3 % 80)
			}
			crashes <- crash{op, keepOf(o.Seed, op.Index, i), *at, then, nested}
		}
		return nil
	}
	kill := func(st *storage.Store) (err error) {
		fsys.SetBefore(nil)
		mem, err = fsys.Crash(torn.KeepAll)
		return errors.Join(err, st.Abandon())
	}
	for i, end := range []func(*storage.Store) error{(*storage.Store).Close, kill, (*storage.Store).Close} {
		fsys = torn.New(mem, before)
		if err := subj.live(fsys, o.Commits*(i+1)/3, end); err != nil {
			t.Errorf("seed %d: life %d without a crash: %v", o.Seed, i, err)
		}
		f.Operations += fsys.Count()
	}
	close(crashes)
	checkers.Wait()
	return f
}

// check opens what the crash left, and what a crash in that left.
func (c crash) check(t testing.TB, seed uint64) (points, nested int) {
	fail := func(err error, where string) {
		if err != nil {
			t.Errorf("seed %d: crash before %v, keep %d%s: %v", seed, c.op, c.keep, where, err)
		}
	}
	mem, err := c.moment.Image(c.keep)
	if err != nil {
		fail(err, "")
		return 1, 0
	}
	subj := c.subj.after(c.subj.acked.Load(), c.subj.issued.Load())
	var inner *crash
	var fsys *torn.FS
	fsys = torn.New(mem, func(op torn.Op) error {
		if op.Index == c.nested {
			acked := subj.acked.Load()
			inner = &crash{op: op, moment: fsys.Capture(), subj: subj.after(acked, subj.issued.Load())}
		}
		return nil
	})
	fail(subj.verify(fsys), "")
	if inner == nil {
		return 1, 0
	}
	for i := range keeps {
		keep := keepOf(seed, inner.op.Index, i)
		mem, err := inner.moment.Image(keep)
		if err == nil {
			err = inner.subj.after(inner.subj.acked.Load(), inner.subj.issued.Load()).verify(mem)
		}
		fail(err, fmt.Sprintf("; then before %v, keep %d", inner.op, keep))
		nested++
	}
	return 1 + nested, nested
}
