package seam_test

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testing/leaks"
	"github.com/holdfast-dev/holdfast/seam"
)

// two is an executor for which Ordered takes two tasks, as for that of a simulation.
type two struct {
	seam.Executor
	ended chan struct{} // gets a value for each task that has ended
}

func newTwo() *two { return &two{seam.Seams{}.WithDefaults().Executor, make(chan struct{}, 2)} }

func (x *two) Go(name string, f func()) {
	x.Executor.Go(name, func() {
		defer func() { x.ended <- struct{}{} }()
		f()
	})
}

// The results are used in order, whatever the order in which the calls end, and two calls run at a time.
func TestOrdered(t *testing.T) {
	defer leaks.None(t)
	second := make(chan struct{})
	var used []int
	err := seam.Ordered(seam.Seams{Executor: newTwo()}, "test", 100, func(i int) (int, error) {
		switch i {
		case 0:
			<-second
		case 1:
			close(second)
		}
		return i * i, nil
	}, func(i, v int) error {
		if v != i*i {
			t.Errorf("the result of %d is %d", i, v)
		}
		used = append(used, i)
		return nil
	})
	if err != nil || len(used) != 100 || !slices.IsSorted(used) {
		t.Errorf("used are %v, %v", used, err)
	}
	for n := range 3 { // with the tasks of this machine
		var calls atomic.Int64
		if err := seam.Ordered(seam.Seams{}, "test", n, func(int) (int, error) { calls.Add(1); return 0, nil }, nil); err != nil || calls.Load() != int64(n) {
			t.Errorf("%d of %d calls, %v", calls.Load(), n, err)
		}
	}
}

// The error is that of the least number, also if that of a greater one comes first. No number is begun after an error,
// and no call is under way at the end.
//
// Proves B1: so no file of a backup is passed over.
func TestOrderedReturnsTheErrorOfALoop(t *testing.T) {
	defer leaks.None(t)
	for _, first := range []bool{false, true} { // whether the lesser number fails too
		x := newTwo()
		var mu sync.Mutex
		var begun []int
		var running atomic.Int64
		var used []int
		err := seam.Ordered(seam.Seams{Executor: x}, "test", 100, func(i int) (int, error) {
			running.Add(1)
			defer running.Add(-1)
			mu.Lock()
			begun = append(begun, i)
			mu.Unlock()
			switch i {
			case 5:
				<-x.ended // the task of 6 ends, because nothing is begun after its error
				if first {
					return 0, errors.New("5 fails")
				}
			case 6:
				return 0, errors.New("6 fails")
			}
			return 0, nil
		}, func(i, _ int) error { used = append(used, i); return nil })
		want, uses := "6 fails", 6
		if first {
			want, uses = "5 fails", 5
		}
		if err == nil || err.Error() != want || len(used) != uses || running.Load() != 0 {
			t.Errorf("%v, want %s; %d were used, %d are under way", err, want, len(used), running.Load())
		}
		if most := slices.Max(begun); most != 6 {
			t.Errorf("%d was begun after an error", most)
		}
	}
	enough := errors.New("enough")
	begun := 0
	err := seam.Ordered(seam.Seams{Executor: newTwo()}, "test", 2, func(i int) (int, error) { return i, nil }, func(int, int) error { begun++; return enough })
	if err != enough || begun != 1 {
		t.Errorf("%v after %d uses", err, begun)
	}
}

// A call that ends its goroutine fails, and the caller goes on.
func TestOrderedWithACallThatExits(t *testing.T) {
	defer leaks.None(t)
	err := seam.Ordered(seam.Seams{Executor: newTwo()}, "test", 5, func(i int) (int, error) {
		if i == 2 {
			runtime.Goexit()
		}
		return 0, nil
	}, nil)
	if err == nil {
		t.Error("no error")
	}
}

// A panic of a call is one of the caller, with the stack of the call.
func TestOrderedWithACallThatPanics(t *testing.T) {
	defer func() {
		p, ok := recover().(*seam.PanicError)
		if !ok || p.Value != "broken" || len(p.Stack) == 0 {
			t.Errorf("recovered %v", p)
		}
	}()
	_ = seam.Ordered(seam.Seams{Executor: newTwo()}, "test", 5, func(i int) (int, error) {
		if i == 2 {
			panic("broken")
		}
		return 0, nil
	}, nil)
	t.Error("no panic")
}
