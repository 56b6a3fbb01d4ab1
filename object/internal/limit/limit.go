// Package limit has a context that ends at a time and costs no timer until somebody asks for its end. Most handlers
// return without a look at their context.
package limit

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// Context ends at a time, with its parent, or by End. Its methods may be called by any goroutine.
type Context struct {
	parent context.Context
	seams  *seam.Seams
	at     time.Time
	cause  error

	mu     sync.Mutex
	made   context.Context // nil until its end was asked for
	cancel context.CancelFunc
	ended  bool
}

// New returns a context that ends with a cause at a time of the clock of s. The caller calls End when it needs the
// context no longer.
func New(parent context.Context, s *seam.Seams, at time.Time, cause error) *Context {
	return &Context{parent: parent, seams: s, at: at, cause: cause}
}

// Deadline returns the time, or that of the parent if it is earlier.
func (c *Context) Deadline() (time.Time, bool) {
	if at, ok := c.parent.Deadline(); ok && at.Before(c.at) {
		return at, true
	}
	return c.at, true
}

// Done returns the channel that is closed at the end.
func (c *Context) Done() <-chan struct{} { return c.make().Done() }

// Value returns the parent's value. Package context looks by it for the context that has the cause of the end.
func (c *Context) Value(key any) any { return c.make().Value(key) }

// Err tells why the context has ended; nil while it lives.
func (c *Context) Err() error {
	c.mu.Lock()
	lives := c.made == nil && !c.ended && c.parent.Err() == nil && c.seams.Clock.Now().Before(c.at)
	c.mu.Unlock()
	if lives {
		return nil
	}
	return c.make().Err()
}

// End ends the context if it lives still.
func (c *Context) End() {
	c.mu.Lock()
	c.ended = true
	cancel := c.cancel
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// make returns the context that has the timer. One whose time is over has ended already, and needs none.
func (c *Context) make() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.made != nil:
	case c.ended, !c.seams.Clock.Now().Before(c.at):
		ctx, cancel := context.WithCancelCause(c.parent)
		if c.ended {
			cancel(context.Canceled)
		} else {
			cancel(c.cause)
		}
		c.made = ctx
	default:
		c.made, c.cancel = c.seams.WithDeadline(c.parent, c.at, c.cause)
	}
	return c.made
}
