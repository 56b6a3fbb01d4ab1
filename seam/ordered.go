package seam

import (
	"context"
	"errors"
	"runtime"
	"sync"
)

// errNotDone is the error of a call that has ended its goroutine.
var errNotDone = errors.New("seam: a call of Ordered has ended its goroutine")

// Ordered calls do with each number below n, several at a time, and then use with the result of each, in order. It
// returns the error that a loop over both would return: numbers are begun in order, and none after an error. When it
// returns, no call is under way. do runs in tasks of that name: twice as many as there are processors, because some of them wait for a
// disk, and two in a simulation, so that a run is the same on each machine. use runs in the calling task; nil: not called. A panic of do
// is one of the calling task.
func Ordered[T any](s Seams, name string, n int, do func(i int) (T, error), use func(i int, v T) error) error {
	s = s.WithDefaults()
	tasks := 2
	if _, ok := s.Executor.(goroutines); ok {
		tasks = 2 * runtime.GOMAXPROCS(0)
	}
	tasks = min(tasks, n)
	if use == nil {
		use = func(int, T) error { return nil }
	}
	if tasks < 2 {
		for i := range n {
			v, err := do(i)
			if err == nil {
				err = use(i, v)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	o := &ordered[T]{do: do, results: make([]result[T], n), left: tasks, wake: make(chan struct{}, 1)}
	defer o.stop() // also if use panics
	for range tasks {
		s.Executor.Go(name, o.work)
	}
	err := o.each(s, use)
	o.stop()
	o.await(s, func() bool { return o.left == 0 })
	return err
}

// ordered is an Ordered under way.
type ordered[T any] struct {
	do   func(i int) (T, error)
	wake chan struct{} // one slot, which the task that waits empties

	mu      sync.Mutex // guards the fields below
	results []result[T]
	begun   int // the numbers below were begun
	stopped bool
	left    int // tasks that have not ended
}

// result is that of one number.
type result[T any] struct {
	value    T
	err      error
	panicked *PanicError
	done     bool
}

// work takes one number after the other.
func (o *ordered[T]) work() {
	defer o.change(func() { o.left-- })
	for i, ok := o.next(); ok; i, ok = o.next() {
		o.call(i)
	}
}

// next begins a number, unless there is none or a call has failed.
func (o *ordered[T]) next() (i int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped || o.begun == len(o.results) {
		return 0, false
	}
	o.begun++
	return o.begun - 1, true
}

// call calls do and keeps its result, also if it panics or ends the goroutine.
func (o *ordered[T]) call(i int) {
	r := result[T]{err: errNotDone}
	defer o.change(func() {
		r.done = true
		o.results[i] = r
		o.stopped = o.stopped || r.err != nil
	})
	r.err = Guard(func() (err error) {
		r.value, err = o.do(i)
		return err
	}, func(p *PanicError) error {
		if !p.Exited() {
			r.panicked = p
		}
		return errNotDone
	})
}

// change changes the fields and wakes the task that waits.
func (o *ordered[T]) change(f func()) {
	o.mu.Lock()
	f()
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *ordered[T]) stop() { o.change(func() { o.stopped = true }) }

// await waits until the fields are so.
func (o *ordered[T]) await(s Seams, ready func() bool) {
	is := func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return ready()
	}
	for !is() {
		_ = s.Executor.Wait(context.Background(), o.wake) // which never ends
	}
}

// each uses the results in order. A number before an error was begun, so each wait has an end.
func (o *ordered[T]) each(s Seams, use func(i int, v T) error) error {
	for i := range o.results {
		o.await(s, func() bool { return o.results[i].done })
		r := o.results[i]
		if r.panicked != nil {
			panic(r.panicked)
		}
		if r.err != nil {
			return r.err
		}
		o.results[i] = result[T]{done: true} // its memory may go
		if err := use(i, r.value); err != nil {
			return err
		}
	}
	return nil
}
