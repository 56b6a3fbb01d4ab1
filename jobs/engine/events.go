package engine

import (
	"context"

	"github.com/holdfast-dev/holdfast/jobs"
)

// tell emits an event about an execution, in the batch of the turn: an event of a change
// that was not stored never exists. With Options.Quiet the frequent ones are left out.
func (e *Engine) tell(ctx context.Context, kind string, x *Execution, ev jobs.Event) error {
	switch kind {
	case jobs.EventStart, jobs.EventSnooze:
		if e.o.Quiet || x.Hook {
			return nil
		}
	case jobs.EventSuccess:
		if e.o.Quiet && !e.o.TellSuccess || x.Hook {
			return nil
		}
	}
	ev.Subject, ev.Run, ev.Attempt = x.Subject, x.Run.Number, x.Run.Attempt
	return e.st.Emit(ctx, kind, ev)
}

// tellEnd emits the events of the end of an execution, all in one place. A failure has two:
// the failure itself, and what follows it, a retry or the end of the run. A run that was
// given up after crashes has no failure event, because a crash is no failure.
func (e *Engine) tellEnd(ctx context.Context, x *Execution, out Outcome) error {
	var text string
	if out.Err != nil {
		text = Shorten(out.Err.Error())
	}
	switch out.Kind {
	case Done, Quit:
		return e.tell(ctx, jobs.EventSuccess, x, jobs.Event{})
	case Recover:
		return e.tell(ctx, jobs.EventRecovery, x, jobs.Event{Error: text, Reason: string(out.cause), Recoveries: out.Run.Recoveries})
	case Snoozed:
		return e.tell(ctx, jobs.EventSnooze, x, jobs.Event{At: out.Run.RetryAt})
	case Cancelled:
		return nil // the job type tells
	}
	if !out.Lost || out.Reason != jobs.ReasonRecoveries {
		if err := e.tell(ctx, jobs.EventFailure, x, jobs.Event{Error: text}); err != nil {
			return err
		}
	}
	switch out.Kind {
	case Again:
		return e.tell(ctx, jobs.EventRetry, x, jobs.Event{At: out.Run.RetryAt, Error: text})
	case GaveUp:
		if e.o.endless && !x.Hook {
			return nil // the run goes on after Resume; Job tells that it is stuck
		}
		return e.tell(ctx, jobs.EventExhausted, x, jobs.Event{Error: text, Reason: string(out.Reason)})
	}
	return nil
}
