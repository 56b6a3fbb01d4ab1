package seam

import (
	"context"
	"sync"
	"time"
)

// WithDeadline is context.WithDeadlineCause on the clock of s. The cancel function must be called when the context is
// no longer needed. In production it sets no timer until the end is asked for by Done, or waited for by
// Executor.Wait, because most calls and handlers return without either.
func (s *Seams) WithDeadline(parent context.Context, at time.Time, cause error) (context.Context, context.CancelFunc) {
	c := &deadlineContext{parent: parent, clock: s.Clock, at: at, cause: cause}
	_, real := s.Executor.(goroutines)
	if _, ok := s.Clock.(wall); !ok || !real { // a simulation moves its clock to the next timer
		c.make()
	}
	return c, c.end
}

// deadlineContext is a context with a deadline. Its methods may be called by any goroutine.
type deadlineContext struct {
	parent context.Context
	clock  Clock
	at     time.Time
	cause  error

	mu     sync.Mutex
	made   context.Context // with a timer; nil until the end was asked for
	cancel context.CancelFunc
	waiter *time.Timer // wakes the goroutine in wait; nil: there is none
	ended  bool        // by end
}

// Deadline returns the time, or that of the parent if it is earlier.
func (c *deadlineContext) Deadline() (time.Time, bool) {
	if at, ok := c.parent.Deadline(); ok && at.Before(c.at) {
		return at, true
	}
	return c.at, true
}

// Done returns the channel that is closed at the end.
func (c *deadlineContext) Done() <-chan struct{} { return c.make().Done() }

// Err tells why the context has ended; nil while it lives.
func (c *deadlineContext) Err() error {
	if c.plain() {
		return nil
	}
	return c.make().Err()
}

// Value returns the parent's value. Once the context has ended, package context finds by it the context that has the
// cause of the end.
func (c *deadlineContext) Value(key any) any {
	if c.plain() {
		return c.parent.Value(key)
	}
	return c.make().Value(key)
}

// plain reports whether the context lives and its end was not asked for.
func (c *deadlineContext) plain() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made == nil && !c.ended && c.parent.Err() == nil && c.clock.Now().Before(c.at)
}

// make returns the context that has the timer. One that has ended by then needs none.
func (c *deadlineContext) make() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made != nil {
		return c.made
	}
	if at, ok := c.parent.Deadline(); ok && at.Before(c.at) && !c.ended {
		c.made, c.cancel = context.WithCancel(c.parent)
		return c.made
	}
	ctx, cancel := context.WithCancelCause(c.parent)
	c.made = ctx
	switch left := c.at.Sub(c.clock.Now()); {
	case c.ended:
		cancel(context.Canceled)
	case left <= 0:
		cancel(c.cause)
	default:
		timer := c.clock.AfterFunc(left, func() { cancel(c.cause) })
		c.cancel = func() { timer.Stop(); cancel(context.Canceled) }
	}
	return c.made
}

// end ends the context if it lives still.
func (c *deadlineContext) end() {
	c.mu.Lock()
	c.ended = true
	cancel := c.cancel
	if c.waiter != nil {
		c.waiter.Reset(0)
	}
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// wait waits as Executor.Wait does, with a timer alone in place of a context that has one. It reports false if that
// does not do: the end was asked for, another goroutine waits, or it is over.
func (c *deadlineContext) wait(ready <-chan struct{}) (waited bool) {
	c.mu.Lock()
	if c.made != nil || c.ended || c.waiter != nil {
		c.mu.Unlock()
		return false
	}
	timer := time.NewTimer(c.at.Sub(c.clock.Now()))
	c.waiter = timer
	c.mu.Unlock()
	select {
	case <-ready:
		waited = true
	case <-c.parent.Done():
	case <-timer.C:
	}
	c.mu.Lock()
	c.waiter = nil
	c.mu.Unlock()
	timer.Stop()
	return waited
}
