package debounce

import (
	"context"

	"github.com/holdfast-dev/holdfast/jobs"
)

// flushNow makes all stored events due now. It returns the last generation that
// they belong to, or 0 if there are none.
func (in *instance) flushNow(ctx context.Context, _ none) (last uint64, err error) {
	if err := in.existing(); err != nil {
		return 0, err
	}
	if s := in.job.Meta().Status; s != jobs.Running && s != jobs.Executing {
		return 0, &jobs.MoveError{ID: in.st.ID(), From: s, To: jobs.Executing}
	}
	err = in.job.Turn(ctx, func(ctx context.Context) error {
		b := in.buffer.wanted(in.job.Now())
		switch {
		case b.open.count > 0:
			last = b.open.number
		case b.isClosed():
			last = b.closed.number
		default:
			return nil
		}
		if b != in.buffer {
			if err := in.store(ctx, b); err != nil {
				return err
			}
		}
		return in.hurry(ctx)
	})
	return last, err
}

// hurry makes the next attempt of a closed generation due now. An attempt that
// is running is left alone.
func (in *instance) hurry(ctx context.Context) error {
	if !in.buffer.isClosed() || in.job.Count() > 0 {
		return nil
	}
	return in.job.RunNow(ctx, string(in.buffer.closed.reason))
}

// status answers Job.Status from memory.
func (in *instance) status(_ context.Context, _ none) (Status, error) {
	if err := in.existing(); err != nil {
		return Status{}, err
	}
	b := &in.buffer
	s := Status{
		Meta: in.job.Meta(), Generation: b.open.number, Events: b.open.count,
		Flushing: b.closed.count, Flushed: b.done(), EventsFlushed: b.flushed, EventsDropped: b.dropped,
		Waiting: in.job.Waiting(),
	}
	s.Due, s.Reason = in.limits.due(b.open)
	s.PurgeAt = in.job.IdleEnd()
	return s, nil
}

// pending reads the rows of the open generation.
func (in *instance) pending(ctx context.Context) (g generation, stored rows, err error) {
	if err := in.existing(); err != nil {
		return g, stored, err
	}
	g = in.buffer.open
	if g.count > 0 {
		stored, err = readRows(ctx, in.st.Storage(), g)
	}
	return g, stored, err
}

func (in *instance) pause(ctx context.Context, _ none) (none, error) {
	return none{}, in.job.Pause(ctx)
}

func (in *instance) resume(ctx context.Context, _ none) (none, error) {
	return none{}, in.job.Resume(ctx)
}

func (in *instance) terminate(ctx context.Context, reason string) (none, error) {
	return none{}, in.job.Terminate(ctx, reason)
}

// clear deletes the events of the open generation, which keeps its number.
func (in *instance) clear(ctx context.Context, _ none) (n int, err error) {
	if err := in.existing(); err != nil {
		return 0, err
	}
	err = in.job.Turn(ctx, func(ctx context.Context) error {
		b := in.buffer
		g := b.open
		if n = g.count; n == 0 {
			return nil
		}
		if err := deleteRows(ctx, in.st.Storage(), g); err != nil {
			return err
		}
		in.known = false
		b.open = generation{number: g.number, versions: in.fresh}
		b.dropped += int64(n)
		b.idle = in.job.Now()
		if err := in.store(ctx, b); err != nil {
			return err
		}
		return in.st.Emit(ctx, EventCleared, FlushEvent{Generation: g.number, Events: n})
	})
	return n, err
}
