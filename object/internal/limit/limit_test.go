package limit

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

// in runs f with a context that ends in a minute, below one with a value.
func in(t *testing.T, f func(c *Context, leave context.CancelFunc)) {
	synctest.Test(t, func(*testing.T) {
		parent, leave := context.WithCancel(context.WithValue(context.Background(), key{}, "value"))
		defer leave()
		s := seam.Seams{}.WithDefaults()
		f(New(parent, &s, time.Now().Add(time.Minute), errLate), leave)
	})
}

// over reports the error of a context, its cause and whether Done is closed, and whether all agree.
func over(t *testing.T, c *Context, want error) {
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

// The context ends at its time and not before it, with its parent, and by End, whether its end was asked for before
// or is only asked for then. It has the values of its parent.
func TestEnds(t *testing.T) {
	for _, early := range []bool{false, true} {
		ask := func(c *Context) {
			if early {
				over(t, c, nil)
			}
		}
		in(t, func(c *Context, _ context.CancelFunc) {
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
			c.End()
			over(t, c, errLate)
		})
		in(t, func(c *Context, leave context.CancelFunc) {
			ask(c)
			leave()
			if c.Err() == nil {
				t.Error("it lives on without its parent")
			}
			over(t, c, context.Canceled)
			c.End()
		})
		in(t, func(c *Context, _ context.CancelFunc) {
			ask(c)
			c.End()
			if c.Err() == nil {
				t.Error("it lives on after End")
			}
			over(t, c, context.Canceled)
			time.Sleep(time.Hour)
			over(t, c, context.Canceled)
			c.End()
		})
		in(t, func(c *Context, _ context.CancelFunc) {
			ask(c)
			if at, ok := c.Deadline(); !ok || time.Until(at) != time.Minute || c.Value(key{}) != "value" {
				t.Errorf("the deadline is %v, the value %v", at, c.Value(key{}))
			}
			c.End()
		})
	}
	in(t, func(c *Context, _ context.CancelFunc) { // the deadline of the parent is earlier
		s := seam.Seams{}.WithDefaults()
		inner := New(c, &s, time.Now().Add(time.Hour), errors.New("later"))
		if at, ok := inner.Deadline(); !ok || time.Until(at) != time.Minute {
			t.Errorf("the deadline is %v", at)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		over(t, inner, errLate)
		inner.End()
		c.End()
	})
}

// A context whose end nothing asks for is one allocation, without a timer.
func TestCostsNoTimer(t *testing.T) {
	s := seam.Seams{}.WithDefaults()
	at := time.Now().Add(time.Hour)
	var last *Context
	n := testing.AllocsPerRun(100, func() {
		last = New(context.Background(), &s, at, errLate)
		if last.Err() != nil {
			t.Error("it has ended")
		}
		last.End()
	})
	if n != 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}
