package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
	"github.com/holdfast-dev/holdfast/object"
)

// Kinds of the events of runs, beside those of package jobs.
const (
	EventSuspended  = "suspended"  // the run waits; Event.At is when it goes on by itself, zero: never
	EventLarge      = "large"      // the history has reached 80 % of Config.MaxEntries or MaxBytes
	EventCancelling = "cancelling" // a Cancel was stored
	EventContinued  = "continued"  // the run has begun anew; Event.Run is its generation
	EventQueued     = "queued"     // the run is due since Event.At and has no place; see Config.Concurrency
	EventBlocked    = "blocked"    // the scope in Event.Reason has begun no operation for a minute, and none is under way
)

// pauseArg is the argument of Pause.
type pauseArg struct {
	Reason string    `json:"reason,omitempty"`
	Until  time.Time `json:"until,omitzero"`
}

// cancel stores the wish to cancel the run, and wakes it.
func (in *instance) cancel(ctx context.Context, reason string) (none, error) {
	if err := in.existing(); err != nil {
		return none{}, err
	}
	meta := in.job.Meta()
	rests := meta.Status == jobs.Paused || meta.Pausing || meta.Status == jobs.Stuck && meta.Run.RetryAt.IsZero()
	if meta.Status.Ended() || in.row.Cancel && !rests {
		return none{}, nil
	}
	return none{}, in.job.Turn(ctx, func(ctx context.Context) error {
		if !in.row.Cancel {
			if err := in.wantCancel(ctx, reason); err != nil {
				return err
			}
		}
		if !rests {
			return nil
		}
		if in.stretch != nil {
			in.stretch.goOn()
		}
		return in.job.GoOn(ctx)
	})
}

// wantCancel stores the wish of a Cancel.
func (in *instance) wantCancel(ctx context.Context, reason string) error {
	r := in.row
	r.Cancel, r.Reason = true, engine.Shorten(reason)
	if r.Since.IsZero() {
		r.Since = in.job.Now()
	}
	if err := in.put(ctx, r); err != nil {
		return err
	}
	if err := in.st.Emit(ctx, EventCancelling, jobs.Event{Reason: r.Reason}); err != nil {
		return err
	}
	if err := in.cancelChildren(ctx, r.Reason, false); err != nil {
		return err
	}
	if in.stretch != nil {
		in.stretch.cancelRun(r.Reason)
	}
	return nil
}

func (in *instance) pause(ctx context.Context, a pauseArg) (none, error) {
	err := in.job.PauseUntil(ctx, a.Reason, a.Until)
	if err == nil && in.job.Meta().Pausing && in.stretch != nil {
		in.stretch.pause()
	}
	return none{}, err
}

func (in *instance) resume(ctx context.Context, _ none) (none, error) {
	if s := in.job.Meta().Status; s.Ended() {
		return none{}, &jobs.MoveError{ID: in.st.ID(), From: s, To: jobs.Running}
	}
	pausing := in.job.Meta().Pausing
	err := in.job.Resume(ctx)
	if err == nil && pausing && in.stretch != nil {
		in.stretch.goOn()
	}
	return none{}, err
}

func (in *instance) terminate(ctx context.Context, reason string) (none, error) {
	return none{}, in.job.Terminate(ctx, reason)
}

// Queued tells once that a due run has no place, for the engine, and keeps the time since
// which it is due.
func (in *instance) Queued(ctx context.Context, due time.Time) error {
	r := in.row
	if r.Queued {
		return nil
	}
	r.Queued, r.QueuedAt = true, due
	return errors.Join(in.put(ctx, r), in.st.Emit(ctx, EventQueued, jobs.Event{Run: r.Generation, At: due}))
}

// output waits for the end of the run and returns its encoded output.
func (in *instance) output(ctx context.Context) ([]byte, error) {
	if err := in.existing(); err != nil {
		return nil, err
	}
	for !in.job.Meta().Status.Ended() {
		if err := in.st.Await(ctx, in.ended); err != nil {
			return nil, err
		}
		if err := in.existing(); err != nil {
			return nil, err
		}
	}
	switch m := in.job.Meta(); m.Status {
	case jobs.Completed:
		raw, _, err := in.st.Storage().Get(ctx, outputKey)
		return raw, err
	case jobs.Cancelled:
		return nil, fmt.Errorf("%w: %s: %s", ErrCancelled, in.st.ID(), m.LastError)
	default:
		return nil, fmt.Errorf("%w: %s: %s", ErrFailed, in.st.ID(), m.LastError)
	}
}

// DeadRun is the Kind of the dead letter of a failed run.
const DeadRun = "workflow"

// deadData is the Data of a dead letter.
type deadData struct {
	Steps []string `json:"steps"` // that were recorded as completed, in order; no undos
}

// maxDeadSteps bounds the names in a dead letter, and in the event of the failure.
const maxDeadSteps = 100

// name takes the names of the completed steps among the entries, and returns them as the Data
// of a dead letter.
func (d *deadData) name(entries []history.Entry) (raw []byte, err error) {
	d.Steps = nil
	for _, e := range entries {
		switch {
		case e.Kind != history.Step && e.Kind != history.Atomic, e.Flags&history.Failed != 0, strings.HasPrefix(e.Scope, undoPath):
		case len(d.Steps) < maxDeadSteps:
			d.Steps = append(d.Steps, e.Scope+e.Name)
		}
	}
	raw, err = json.Marshal(d)
	for err == nil && len(raw) > object.MaxDeadData { // long names: the first of them are enough
		d.Steps = d.Steps[:len(d.Steps)/2]
		raw, err = json.Marshal(d)
	}
	return raw, err
}

// failure is the payload of the event of a run that has failed.
type failure struct {
	jobs.Event
	Steps []string `json:"steps,omitempty"` // as in its dead letter
}

// Failing adds the completed steps to the event of a failure; see engine.Teller.
func (in *instance) Failing(ev jobs.Event) any { return failure{ev, in.completed.Steps} }

// bury stores the dead letter of a run that fails, in its end batch.
func (in *instance) bury(ctx context.Context, wish engine.Wish, failed error) error {
	if wish != engine.Fail {
		return nil
	}
	entries, err := in.history(ctx)
	if err != nil {
		return err
	}
	raw, err := in.completed.name(entries)
	if err != nil {
		return err
	}
	r := in.row
	r.Letter, err = in.st.Driver().Bury(ctx, object.DeadLetter{
		Kind: DeadRun, Scheduled: in.job.Meta().CreatedAt, Attempts: 1, LastError: failed.Error(), Reason: "the function has returned an error",
		Data: raw, Verb: "Workflow.Retry or Workflow.Terminate",
	})
	if err != nil {
		return err
	}
	return in.put(ctx, r)
}

// Retiring takes the dead letter away, cancels the children and tells the parent, in the
// batch that removes the run.
func (in *instance) Retiring(ctx context.Context) error {
	if err := in.cancelChildren(ctx, "the parent was terminated", true); err != nil {
		return err
	}
	if err := in.answerParent(ctx, answer{Flags: history.Failed, Err: "terminated"}); err != nil {
		return err
	}
	if in.row.Letter == 0 {
		return nil
	}
	return in.st.Driver().Exhume(ctx, in.row.Letter)
}

// retry lets a failed run go on.
func (in *instance) retry(ctx context.Context, _ none) (none, error) {
	if err := in.existing(); err != nil {
		return none{}, err
	}
	if s := in.job.Meta().Status; s != jobs.Failed {
		return none{}, &jobs.MoveError{ID: in.st.ID(), From: s, To: jobs.Running}
	}
	entries, err := in.history(ctx)
	if err != nil {
		return none{}, err
	}
	away, err := undoneBy(entries)
	if err != nil {
		return none{}, fmt.Errorf("%s: %w", in.st.ID(), err)
	}
	return none{}, in.job.Turn(ctx, func(ctx context.Context) error {
		keys := make([]string, len(away))
		for i, e := range away {
			keys[i] = seqKey(in.row.prefix(), e.Seq)
		}
		r := in.row
		letter := r.Letter
		r.Letter, r.Answered, r.Wake, r.Waits = 0, false, in.job.Now(), nil
		if last := away[len(away)-1]; last.Kind == history.Fail { // the function goes on: a Cancel that came too late is over
			r.Cancel, r.Reason, r.Seen = false, "", false
		}
		err := errors.Join(in.st.Storage().Remove(ctx, keys...), in.st.Driver().Exhume(ctx, letter), in.put(ctx, r))
		if err != nil {
			return err
		}
		in.ended = make(chan struct{})
		return in.job.GoOn(ctx)
	})
}

// undoneBy returns the entries that a Retry removes: those of the step with which the
// function has failed, or that of the undo that was given up.
func undoneBy(entries []history.Entry) ([]history.Entry, error) {
	scopes := history.Scopes(entries)
	fn, undos := scopes[""], scopes[undoPath]
	if n := len(undos); n > 0 {
		if last := undos[n-1]; last.Kind == history.Step && last.Flags&history.Failed != 0 {
			return tries(undos), nil
		}
		return nil, fmt.Errorf("%w: its undos have run", ErrUndone)
	}
	n := len(fn)
	if n < 2 || fn[n-1].Kind != history.Fail || fn[n-2].Kind != history.Step || fn[n-2].Flags&history.Failed == 0 {
		return nil, fmt.Errorf("%w: the last thing that it did is no step that has failed", ErrUndone)
	}
	for _, e := range entries {
		if e.Kind == history.Cancel && e.Scope != "" && e.Seq > fn[n-2].Seq {
			return nil, fmt.Errorf("%w: %s was cancelled when it failed", ErrUndone, history.ScopeName(e.Scope))
		}
	}
	return append(tries(fn[:n-1]), fn[n-1]), nil
}

// tries returns the last entry, of a step that has failed, with the failed attempts before it.
func tries(entries []history.Entry) []history.Entry {
	n := len(entries) - 1
	from := n
	for from > 0 && entries[from-1].Kind == history.Try && entries[from-1].Name == entries[n].Name {
		from--
	}
	return append([]history.Entry(nil), entries[from:]...)
}
