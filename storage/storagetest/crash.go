package storagetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
	"github.com/holdfast-dev/holdfast/storage"
)

// keeps is how many ways there are to lose unsynced bytes at each operation:
// all of it, none, and two torn parts.
const keeps = 4

func keepOf(seed uint64, op, i int) crashfs.Keep {
	switch i {
	case 0:
		return crashfs.KeepNone
	case 1:
		return crashfs.KeepAll
	default:
		return crashfs.Keep(splitmix(seed+uint64(op*keeps+i))>>2) + 1
	}
}

// Crash cuts the power before the operations of a workload of three lives: the
// making of a store and its clean close, a life that ends with the kill of the
// process, and the recovery from that. One crash in eight is followed by another
// in the recovery from it.
func Crash(t testing.TB, open Opener, o Options) Figures {
	t.Helper()
	o = o.withDefaults()
	total := crashRun(t, open, o, func(crashfs.Op, int) bool { return false }).Operations * keeps
	stride := o.stride(total, keeps)
	offset := int(o.Seed % uint64(stride))
	f := crashRun(t, open, o, func(op crashfs.Op, keep int) bool { return (op.Index*keeps+keep)%stride == offset })
	t.Logf("crashes: seed %d, %d points of %d (%d operations, %d ways to lose), and %d in recoveries; %d refused to open",
		o.Seed, f.Points-f.Nested, total, f.Operations, keeps, f.Nested, f.Refused)
	return f
}

// crash is a crash to be checked.
type crash struct {
	op     crashfs.Op
	keep   crashfs.Keep
	moment crashfs.Moment
	subj   *subject // with the counters of that moment
	nested int      // the operation of the recovery to crash at, or -1
}

// crashes makes and checks the crashes of one run.
type crashes struct {
	tally
	Options
}

// crashRun runs the workload and checks the crashes that choose names.
func crashRun(t testing.TB, open Opener, o Options, choose func(op crashfs.Op, keep int) bool) Figures {
	t.Helper()
	run := &crashes{tally{t: t}, o}
	subj := newSubject(open, o.Seed, o.Commits)
	found, wait := each(run.check)
	mem, operations := vfs.NewCrashableMem(), 0
	var fsys *crashfs.FS
	before := func(op crashfs.Op) error {
		op.Index += operations
		var at *crash
		for i := range keeps {
			if !choose(op, i) {
				continue
			}
			if at == nil {
				at = captured(op, fsys, subj)
			}
			c := *at
			c.keep, c.nested = keepOf(o.Seed, op.Index, i), -1
			if h := splitmix(o.Seed ^ uint64(op.Index*keeps+i)); h%8 == 0 {
				c.nested = int(h >> 3 % 80)
			}
			found <- c
		}
		return nil
	}
	kill := func(st *storage.Store) (err error) {
		fsys.SetBefore(nil)
		mem, err = fsys.Crash(crashfs.KeepAll)
		return errors.Join(err, st.Abandon())
	}
	for i, end := range []func(*storage.Store) error{(*storage.Store).Close, kill, (*storage.Store).Close} {
		fsys = crashfs.New(mem, before)
		if err := subj.live(fsys, o.Commits*(i+1)/3, end); err != nil {
			run.wrong("seed %d: life %d without a crash: %v", o.Seed, i, err)
		}
		operations += fsys.Count()
	}
	wait()
	run.Operations = operations
	return run.Figures
}

// captured is a crash before the operation op, which fsys is about to do for subj.
func captured(op crashfs.Op, fsys *crashfs.FS, subj *subject) *crash {
	acked := subj.acked.Load() // before the capture, so that the capture has all that it counts
	moment := fsys.Capture()
	return &crash{op: op, moment: moment, subj: subj.after(acked, subj.issued.Load())}
}

// check opens the files that the crash left, and those that a crash in that opening left.
func (run *crashes) check(c crash) {
	var inner *crash
	subj := c.subj.again()
	run.survive(c, "", subj, func(mem *vfs.MemFS) vfs.FS {
		var fsys *crashfs.FS
		fsys = crashfs.New(mem, func(op crashfs.Op) error {
			if op.Index == c.nested {
				inner = captured(op, fsys, subj)
			}
			return nil
		})
		return fsys
	})
	if inner == nil {
		return
	}
	for i := range keeps {
		next := *inner
		next.keep = keepOf(run.Seed, inner.op.Index, i)
		run.survive(next, fmt.Sprintf("crash before %v, keep %d; then ", c.op, c.keep), next.subj.again(), nil)
		run.add(Figures{Nested: 1})
	}
}

// survive checks the store that subj finds in the files that a crash leaves. The file system
// may be changed by over.
func (run *crashes) survive(c crash, first string, subj *subject, over func(*vfs.MemFS) vfs.FS) {
	image := c.moment.Image
	if run.Scatter {
		image = c.moment.Scatter
	}
	run.add(Figures{Points: 1})
	mem, err := image(c.keep)
	fsys := vfs.FS(mem)
	if over != nil {
		fsys = over(mem)
	}
	if err == nil {
		_, err = subj.verify(fsys)
	}
	switch {
	case err == nil:
	case run.Scatter && errors.Is(err, storage.ErrCorrupt):
		run.add(Figures{Refused: 1})
	default:
		run.wrong("seed %d: %scrash before %v, keep %d: %v", run.Seed, first, c.op, c.keep, err)
	}
}
