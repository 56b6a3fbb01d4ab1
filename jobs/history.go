package jobs

import (
	"context"
	"time"
)

// Kinds of the events that all jobs emit, exactly one for each such change, in
// the batch of the change (J11). The first seven are of executions and are emitted
// by Engine; the others are of jobs and are emitted by Life.
const (
	EventStart      = "start"      // an execution began
	EventSuccess    = "success"    // it succeeded, and its result is stored
	EventFailure    = "failure"    // it failed
	EventRetry      = "retry"      // a failed one will be tried again, at Event.At
	EventExhausted  = "exhausted"  // a run was given up, for Event.Reason
	EventRecovery   = "recovery"   // a lost one will be repeated
	EventSnooze     = "snooze"     // it asked to be run again, at Event.At
	EventCreated    = "created"    // the job came to be
	EventPaused     = "paused"     // no run happens until it is resumed
	EventResumed    = "resumed"    // it goes on
	EventStopped    = "stopped"    // it ended, its state is kept
	EventFailed     = "failed"     // it gave up, its state is kept
	EventTerminated = "terminated" // it is gone
)

// Event is the payload of the events of all jobs.
type Event struct {
	Subject string    `json:"subject,omitempty"` // see Execution
	Run     uint64    `json:"run,omitempty"`     // see Run.Number
	Attempt int       `json:"attempt,omitempty"` // see Run.Attempt: that of the execution which the event is about
	At      time.Time `json:"at,omitzero"`       // of a retry or a snooze: when the run is tried again
	Error   string    `json:"error,omitempty"`
	Reason  string    `json:"reason,omitempty"` // why a run was given up, or the job ended
}

// tell emits an event about an execution.
func (e *Engine) tell(ctx context.Context, kind string, x *Execution, ev Event) error {
	if (e.o.Quiet || x.Hook) && (kind == EventStart || kind == EventSuccess || kind == EventSnooze) {
		return nil
	}
	ev.Subject, ev.Run, ev.Attempt = x.Subject, x.Run.Number, x.Run.Attempt
	return e.st.Emit(ctx, kind, ev)
}

// tellEnd emits the events of the end of an execution, all in one place.
func (e *Engine) tellEnd(ctx context.Context, x *Execution, out Outcome) error {
	var text string
	if out.Err != nil {
		text = Shorten(out.Err.Error())
	}
	switch out.Kind {
	case Done, Quit:
		return e.tell(ctx, EventSuccess, x, Event{})
	case Recover:
		return e.tell(ctx, EventRecovery, x, Event{Error: text})
	case Snoozed:
		return e.tell(ctx, EventSnooze, x, Event{At: out.Run.RetryAt})
	case Cancelled:
		return nil // the job type tells
	}
	if !out.Lost || out.Reason != ReasonRecoveries {
		if err := e.tell(ctx, EventFailure, x, Event{Error: text}); err != nil {
			return err
		}
	}
	switch out.Kind {
	case Again:
		return e.tell(ctx, EventRetry, x, Event{At: out.Run.RetryAt, Error: text})
	case GaveUp:
		return e.tell(ctx, EventExhausted, x, Event{Error: text, Reason: string(out.Reason)})
	}
	return nil
}
