package storagetest

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/internal/crashfs"
	"github.com/holdfast-dev/holdfast/storage"
)

// fault is an error of the operations from the one with index op on.
type fault struct {
	op      int
	err     error
	forever bool // not only op, but all after it
	kill    bool // the process, instead of the error
}

func (f fault) String() string {
	if f.kill {
		return fmt.Sprintf("kill at operation %d", f.op)
	}
	if f.forever {
		return fmt.Sprintf("%v from operation %d on", f.err, f.op)
	}
	return fmt.Sprintf("%v at operation %d", f.err, f.op)
}

// faultKinds is how many faults there are at each operation.
const faultKinds = 4

func faultOf(i int) fault {
	f := fault{op: i / faultKinds, err: syscall.EIO, forever: i%2 == 1}
	if i/2%2 == 1 {
		f.err = syscall.ENOSPC
	}
	return f
}

// Errors lets the operations of the workload fail, each once and from it on, as
// a broken and as a full disk. Either the store lives on as if nothing had been,
// or it is dead: then the call that met the error, and every call after it, says
// so. Nothing hangs: if a store does, the test runs into the timeout of go test,
// which prints all goroutines. The files on disk are then held to the same as after
// a crash.
func Errors(t testing.TB, open Opener, o Options) Figures {
	t.Helper()
	o = o.withDefaults()
	sum := &tally{t: t, Figures: Figures{Operations: countOps(t, open, o)}}
	faults, wait := each(func(f fault) { f.run(sum, open, o) })
	total := sum.Operations * faultKinds
	stride := o.stride(total, faultKinds)
	for n := int(o.Seed % uint64(stride)); n < total; n += stride {
		faults <- faultOf(n)
	}
	wait()
	t.Logf("errors: seed %d, %d points of %d (%d operations, %d kinds); the store died of %d and outlived %d",
		o.Seed, sum.Points, total, sum.Operations, faultKinds, sum.Died, sum.Harmless)
	return sum.Figures
}

// countOps is how many operations the workload takes without an error.
func countOps(t testing.TB, open Opener, o Options) int {
	t.Helper()
	fsys := crashfs.New(vfs.NewMem(), nil)
	if err := twoLives(newSubject(open, o.Seed, o.Commits), fsys, o.Commits); err != nil {
		t.Fatalf("seed %d: without an error: %v", o.Seed, err)
	}
	return fsys.Count()
}

// twoLives makes a store, closes it in order and uses it once more.
func twoLives(s *subject, fsys vfs.FS, commits int) error {
	if err := s.live(fsys, commits/2, (*storage.Store).Close); err != nil {
		return err
	}
	return s.live(fsys, commits, (*storage.Store).Close)
}

// run runs the workload with the fault and checks the files that are left.
func (f fault) run(sum *tally, open Opener, o Options) {
	subj := newSubject(open, o.Seed, o.Commits)
	subj.onError = deadForGood
	fsys := crashfs.New(vfs.NewCrashableMem(), f.before)
	err := twoLives(subj, fsys, o.Commits)
	sum.add(f.outcome(err))
	if errors.Is(err, errNotDead) {
		sum.wrong("seed %d: %v: %v", o.Seed, f, err)
	}
	for i := range keeps - 1 {
		keep := keepOf(o.Seed, f.op, i)
		left, err := fsys.Crash(keep)
		if err == nil {
			_, err = subj.again().verify(left)
		}
		if err != nil {
			sum.wrong("seed %d: %v: then keep %d: %v", o.Seed, f, keep, err)
		}
	}
}

// outcome counts a fault by the error that ended its workload.
func (f fault) outcome(err error) Figures {
	if err != nil {
		return Figures{Points: 1, Died: 1}
	}
	return Figures{Points: 1, Harmless: 1}
}

func (f fault) before(op crashfs.Op) error {
	if op.Index == f.op || f.forever && op.Index > f.op {
		return f.err
	}
	return nil
}

var errNotDead = errors.New("the store goes on after an error")

// deadForGood checks that a store accepts nothing more after a use returned cause.
func deadForGood(st *storage.Store, cause error) error {
	if !errors.Is(cause, storage.ErrStorage) {
		return fmt.Errorf("%w: %w does not wrap ErrStorage", errNotDead, cause)
	}
	select {
	case <-st.Dead():
	default:
		return fmt.Errorf("%w: Dead is open", errNotDead)
	}
	var b storage.Batch
	b.SetMeta("late", nil)
	_, commitErr := st.Commit(&b)
	_, _, readErr := st.Meta("n")
	for _, err := range []error{st.Err(), commitErr, readErr, st.WaitDurable(st.Applied())} {
		if !errors.Is(err, storage.ErrStorage) {
			return fmt.Errorf("%w: a later call returned %v", errNotDead, err)
		}
	}
	return cause
}
