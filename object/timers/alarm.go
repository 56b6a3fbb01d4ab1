package timers

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// atOnce is how many timers an alarm runs in one turn. More would keep calls waiting for
// longer; fewer would cost more commits. Those that are left are due at once.
const atOnce = 64

// Alarm runs the timers that are due, up to 64 in one turn, in the order of their times, and
// sets the alarm to the time of the next. The Alarm method of the instance calls it. If a
// handler fails, Alarm stores the retry or the dead letter of its timer with the effects of
// those before it, and returns an error that names the timer. The object is constructed
// anew then, and the alarm fires again for the others.
//
// After a turn that ended without a trace, each timer is stored as begun before its handler
// runs, at the cost of a sync each. Such a turn was cut off by a crash, or a handler in it
// had the instance reset. So a timer that kills its process each time is found, and is a
// dead letter after 4 such ends.
func (t *Timers) Alarm(ctx context.Context, info object.AlarmInfo) error {
	now := t.st.Now()
	keys, err := t.keys(ctx, now.UnixNano(), atOnce)
	if err != nil {
		return err
	}
	t.firing = true
	defer func() { t.firing = false }()
	for n, key := range keys {
		if n > 0 {
			full, err := t.full(ctx)
			if err != nil {
				return err
			}
			if full {
				break
			}
		}
		a := attempt{t: t, key: key, now: now, after: info.Crashed || info.Attempt > 1 || info.OwnersLost >= manyOwnersLost, behind: n > 0}
		if err := a.run(ctx); err != nil {
			return err
		}
	}
	return t.arm(ctx)
}

// full reports whether the turn has written so much that the next timer belongs in another.
func (t *Timers) full(ctx context.Context) (bool, error) {
	n, err := t.st.Driver().WrittenBytes(ctx)
	return n > t.st.Driver().MaxBatchBytes()/4, err
}

// call runs fn, which runs a handler, in a Transaction, so that a failure undoes its writes
// and those of no other. A panic is its error. exited is called if the handler ends its
// goroutine, because nothing behind call runs then.
func (t *Timers) call(ctx context.Context, fn func(context.Context) error, exited func(error)) error {
	var end error
	defer func() {
		if end != nil {
			exited(end)
		}
	}()
	return t.st.Storage().Transaction(ctx, func(ctx context.Context, _ *object.Storage) error {
		return seam.Guard(func() error { return fn(ctx) }, func(p *seam.PanicError) error {
			p.TakeStack()
			err := &object.PanicError{ID: t.st.ID(), PanicError: *p}
			if p.Exited() {
				end = err
			}
			return err
		})
	})
}

// failedBy returns the error with which the turn ends: it names the timer and the attempt.
func (t *Timers) failedBy(r row, err error) error {
	return t.named(r.name, fmt.Errorf("attempt %d: %w", r.failures+1, err))
}

// notTheTimers reports whether a failure costs the timer no attempt, because its handler did
// not cause it: the alarm as a whole is tried again.
func notTheTimers(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, object.ErrStorage) || errors.Is(err, object.ErrShutdown) || errors.Is(err, object.ErrNoSpace)
}
