package workflow

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/internal/history"
	"github.com/holdfast-dev/holdfast/object"
)

// Signal is a message to a run, with a value of type T. Make it once, at package level, and
// list it in the Config of each workflow that waits for it.
type Signal[T any] struct{ name string }

// NewSignal makes a signal. Names are UTF-8 of 1 to 128 bytes; object.Open reports a wrong one.
func NewSignal[T any](name string) *Signal[T] { return &Signal[T]{name} }

// Name is the name of the signal.
func (s *Signal[T]) Name() string { return s.name }

// declared is a signal as a Config lists it.
type declared interface {
	Name() string
	declare(d *definition) (method any)
	sendDescribed(ctx context.Context, from object.Caller, w Named, id string, a signalArg) error
}

// declare adds the method that takes the signal to a workflow.
func (s *Signal[T]) declare(d *definition) any {
	return object.HandleCall(d.class, "signal "+s.name, func(in *instance, ctx context.Context, v T) (none, error) {
		return in.takes(ctx, s.name, v)
	}, object.Sent(func(T) none { return none{} }))
}

// takes encodes the value of a signal and stores it.
func (in *instance) takes(ctx context.Context, signal string, v any) (none, error) {
	value, err := in.st.Driver().Codec().Encode(v)
	if err != nil {
		return none{}, fmt.Errorf("%s: encode signal %q: %w", in.st.ID(), signal, err)
	}
	return none{}, in.signal(ctx, signal, value)
}

// Named is a workflow of any types.
type Named interface {
	Name() string
	of() *definition
}

// Send gives the signal to the run id of w. Once Send has returned nil, the signal is
// stored: the run takes it exactly once, in the order of arrival, or it is there when the
// run ends (F5). from is a *object.Host, a *object.State, or its Outbox to send it with the
// turn's commit. A run that sleeps or waits takes the signal at its next Wait for it.
//
// It returns ErrUnknownSignal, jobs.ErrNotFound, ErrEnded, object.ErrValueTooLarge if the
// encoded value is larger than that of a step may be, or ErrBusy if 10,000 signals or 16 MiB of
// them wait; nothing is stored then. With object.Idempotent a repeat with the same key is taken
// once. With an Outbox a signal to a run that is full waits in its message until the run has
// taken others, and each other refusal is a dead letter at once (J19).
func (s *Signal[T]) Send(ctx context.Context, from object.Caller, w Named, id string, v T, opts ...object.CallOption) error {
	send, ok := w.of().signals[s.name].(call[T, none])
	if !ok {
		return unlisted(s.name, w.Name())
	}
	_, err := send(ctx, from, id, v, opts...)
	return err
}

// Wait takes the oldest of these signals that the run has not taken, and waits for one if
// there is none: for ever, or until timeout has passed, if that is more than zero. Then it
// returns ErrTimeout. A wait of more than a second suspends the run. It returns ErrCancelled
// if the run is cancelled meanwhile, or ErrMisuse.
func (s *Signal[T]) Wait(ctx *Context, timeout time.Duration) (value T, err error) {
	err = ctx.receive(s.name, timeout, &value)
	return value, err
}

// receive is Wait, which sets *value.
func (c *Context) receive(signal string, timeout time.Duration, value any) error {
	if err := c.enter("Wait for signal", signal); err != nil {
		return err
	}
	defer c.leave()
	if c.s.d.signals[signal] == nil {
		return unlisted(signal, c.s.d.name)
	}
	e, err := c.waitForSignal(signal, timeout)
	if err != nil {
		return err
	}
	if e.Flags&history.TimedOut != 0 {
		return fmt.Errorf("%w: no signal %q in %s", ErrTimeout, signal, timeout)
	}
	c.decode(e.Value, value, history.Signal, signal)
	return nil
}

// unlisted is the error of a signal that is not in the Config of a workflow.
func unlisted(signal, workflow string) error {
	return fmt.Errorf("%w: %q of workflow %s: list it in Config.Signals", ErrUnknownSignal, signal, workflow)
}

// waitForSignal returns the entry of a signal that was taken, or of a wait that is over.
func (c *Context) waitForSignal(name string, timeout time.Duration) (*history.Entry, error) {
	var until time.Time
	e, err := c.next(name, history.Signal, history.Deadline)
	if e != nil && e.Kind == history.Deadline {
		until = e.Until
		e, err = c.next(name, history.Signal)
	}
	if e != nil || err != nil {
		return e, err
	}
	s := c.s
	for {
		if err := c.ready(); err != nil {
			return nil, err
		}
		w := c.waiter(until, Wait{Kind: waitSignal, Name: name, Until: until})
		if e := c.take(w); e != nil {
			return e, nil
		}
		now := s.now()
		switch {
		case !until.IsZero() && !until.After(now):
			s.forget(w)
			return c.made(history.Entry{Kind: history.Signal, Flags: history.TimedOut, Name: name}), nil
		case timeout > 0 && until.IsZero():
			until = storable(now.Add(timeout))
			c.made(history.Entry{Kind: history.Deadline, Name: name, Until: until})
			w.until, w.what.Until = until, until
		}
		c.flushBeside(until)
		s.park(w)
	}
}

// take takes a signal that has come, with its entry, in one batch. If there is none, it
// enrolls w, so that none can come unseen before w is parked.
func (c *Context) take(w *waiter) *history.Entry {
	var taken *history.Entry
	c.s.turn(func(ctx context.Context) error {
		if c.toCancel() { // since it looked: nothing is taken
			return nil
		}
		value, seq, ok, err := c.s.in.oldest(ctx, w.what.Name)
		if err != nil || !ok {
			c.s.enroll(w)
			return err
		}
		e := c.entry(history.Entry{Kind: history.Signal, Name: w.what.Name, Value: value})
		taken = &e
		if err := c.s.storeNow(ctx, taken); err != nil {
			return err
		}
		return c.s.in.removeSignal(ctx, seq)
	})
	if taken == nil {
		return nil
	}
	c.note(taken)
	return taken
}
