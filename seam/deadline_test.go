package seam_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

var errLate = errors.New("late")

type key struct{}

// limited is a context that ends in a minute, below one with a value.
type limited struct {
	context.Context
	seams      seam.Seams
	end, leave context.CancelFunc // of the context, and of its parent
}

// within runs f with a context on the clock of a bubble.
func within(t *testing.T, f func(c *limited)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		c := &limited{seams: seam.Seams{}.WithDefaults()}
		parent, leave := context.WithCancel(context.WithValue(context.Background(), key{}, "value"))
		c.leave = leave
		c.Context, c.end = c.seams.WithDeadline(parent, time.Now().Add(time.Minute), errLate)
		f(c)
		c.end()
		c.leave()
	})
}

// over reports the error of a context, its cause and whether Done is closed, and whether all agree.
func over(t *testing.T, c context.Context, want error) {
	t.Helper()
	done := false
	select {
	case <-c.Done():
		done = true
	default:
	}
	if err, cause := c.Err(), context.Cause(c); done != (want != nil) || (err != nil) != (want != nil) || !errors.Is(cause, want) {
		t.Errorf("done %v, error %v, cause %v; want %v", done, err, cause, want)
	}
}

// Proves O12: the context ends at its time and not before it, with its parent, and by its cancel function, whether its end was
// asked for before or is only asked for then. It has the values of its parent.
func TestDeadlineEnds(t *testing.T) {
	for _, early := range []bool{false, true} {
		ask := func(c *limited) {
			if early {
				over(t, c, nil)
			}
		}
		within(t, func(c *limited) {
			ask(c)
			time.Sleep(time.Minute - 1)
			if c.Err() != nil {
				t.Error("it has ended before its time")
			}
			ask(c)
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if c.Err() == nil {
				t.Error("it has no error at its time")
			}
			over(t, c, errLate)
			c.end()
			over(t, c, errLate)
		})
		within(t, func(c *limited) {
			ask(c)
			c.leave()
			if c.Err() == nil {
				t.Error("it lives on without its parent")
			}
			over(t, c, context.Canceled)
		})
		within(t, func(c *limited) {
			ask(c)
			c.end()
			if c.Err() == nil {
				t.Error("it lives on after its cancel function")
			}
			over(t, c, context.Canceled)
			time.Sleep(time.Hour)
			over(t, c, context.Canceled)
		})
		within(t, func(c *limited) {
			ask(c)
			if at, ok := c.Deadline(); !ok || time.Until(at) != time.Minute || c.Value(key{}) != "value" {
				t.Errorf("the deadline is %v, the value %v", at, c.Value(key{}))
			}
		})
	}
	within(t, func(c *limited) { // the deadline of the parent is earlier
		inner, end := c.seams.WithDeadline(c.Context, time.Now().Add(time.Hour), errors.New("later"))
		if at, ok := inner.Deadline(); !ok || time.Until(at) != time.Minute {
			t.Errorf("the deadline is %v", at)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		over(t, inner, errLate)
		end()
	})
	within(t, func(c *limited) { // a context below it ends with it, and has its cause
		below, cancel := context.WithCancel(c.Context)
		defer cancel()
		time.Sleep(time.Minute)
		synctest.Wait()
		over(t, below, errLate)
	})
}

// Proves O20: a wait ends when ready yields, at the time of the context and not before it, with the parent, and by the cancel
// function, also if several wait and the end is asked for meanwhile.
func TestDeadlineEndsWaits(t *testing.T) {
	ways := []struct {
		name string
		want error
		at   time.Duration // of the end, at most a minute
		do   func(c *limited, ready chan struct{})
	}{
		{"ready", nil, time.Minute - 1, func(_ *limited, ready chan struct{}) { close(ready) }},
		{"time", errLate, time.Minute, func(*limited, chan struct{}) {}},
		{"parent", context.Canceled, time.Second, func(c *limited, _ chan struct{}) { c.leave() }},
		{"end", context.Canceled, time.Second, func(c *limited, _ chan struct{}) { c.end() }},
	}
	for _, way := range ways {
		for _, waiters := range []int{1, 3} {
			for _, asked := range []bool{false, true} {
				within(t, func(c *limited) {
					ready, ended := make(chan struct{}), make(chan error, waiters)
					began := time.Now()
					for range waiters {
						go func() { ended <- c.seams.Executor.Wait(c.Context, ready) }()
						synctest.Wait()
					}
					if asked {
						over(t, c, nil)
					}
					time.Sleep(way.at - 1)
					synctest.Wait()
					if len(ended) > 0 {
						t.Fatalf("%s, %d waiters: %v too early", way.name, waiters, <-ended)
					}
					time.Sleep(time.Nanosecond)
					way.do(c, ready)
					for range waiters {
						if err := <-ended; !errors.Is(err, way.want) {
							t.Errorf("%s, %d waiters: %v, want %v", way.name, waiters, err, way.want)
						}
					}
					if took := time.Since(began); took != way.at {
						t.Errorf("%s, %d waiters: the wait took %v, want %v", way.name, waiters, took, way.at)
					}
				})
			}
		}
	}
	within(t, func(c *limited) { // one wait after another, the last one when all is over
		ready := make(chan struct{}, 1)
		for range 3 {
			ready <- struct{}{}
			if err := c.seams.Executor.Wait(c.Context, ready); err != nil {
				t.Error(err)
			}
			time.AfterFunc(time.Second, func() { ready <- struct{}{} })
			if err := c.seams.Executor.Wait(c.Context, ready); err != nil {
				t.Error(err)
			}
		}
		for range 2 {
			if err := c.seams.Executor.Wait(c.Context, ready); !errors.Is(err, errLate) {
				t.Errorf("%v, want %v", err, errLate)
			}
		}
	})
}

// A context whose end is not asked for is two allocations, without a timer.
func TestDeadlineCostsNoTimer(t *testing.T) {
	s := seam.Seams{}.WithDefaults()
	at := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	n := testing.AllocsPerRun(100, func() {
		c, end := s.WithDeadline(context.Background(), at, errLate)
		if c.Err() != nil || c.Value(key{}) != nil {
			t.Error("it has ended, or has a value")
		}
		end()
	})
	if n != 2 {
		t.Errorf("%v allocations, want 2", n)
	}
}
