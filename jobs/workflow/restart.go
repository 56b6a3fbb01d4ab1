package workflow

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// Restart lets a run that has completed, failed or was cancelled begin anew with another input,
// as its next generation: its history and its output are gone, and so is its dead letter. The
// keys of its steps are new, so each effect happens again; Retry is for a run that
// should go on. The run keeps its id, its variables, the data of Atomic, and the signals that no
// wait has taken. It is nobody's child any more. The errors are those of Start,
// jobs.ErrNotFound, and a *jobs.MoveError for a run that has not ended.
func (w *Workflow[In, Out]) Restart(ctx context.Context, from object.Caller, id string, in In) error {
	_, err := w.restart(ctx, from, id, in)
	return err
}

// restart lets a run that has ended begin anew.
func (in *instance) restart(ctx context.Context, input []byte) (none, error) {
	if err := in.existing(); err != nil {
		return none{}, err
	}
	return none{}, in.job.Turn(ctx, func(ctx context.Context) error {
		r := in.row
		letter := r.Letter
		r.Letter, r.Answered, r.Parent, r.Since = 0, false, nil, time.Time{}
		r.Cancel, r.Reason, r.Seen = false, "", false
		if err := in.job.Anew(ctx); err != nil {
			return err // before a write, because a turn that fails after one resets the instance
		}
		if err := errors.Join(in.put(ctx, r), in.st.Storage().Remove(ctx, outputKey), in.beginAnew(ctx, input)); err != nil {
			return err
		}
		in.ended = make(chan struct{})
		if letter == 0 {
			return nil
		}
		return in.st.Driver().Exhume(ctx, letter)
	})
}

// retryEvery is the time between two runs of RetryAll, so that a hundred in a second call the same
// service, and not all at the same time.
const retryEvery = time.Second / 100

// RetryAll calls Retry for each failed run that match chooses, or for all if match is nil, a
// hundred in a second, and returns how many it has retried. It finds them by their label, without
// a look at the others. Runs that Retry refuses with ErrUndone stay failed and do not count;
// neither do runs that have changed their status meanwhile. A run that fails again is not tried twice. RetryAll
// stops at the first other error, or at the end of ctx, with the number so far, and may be called
// again.
//
//go:noinline
func (w *control) RetryAll(ctx context.Context, h *object.Host, match func(s Status) bool) (retried int, err error) {
	seams, next := h.Seams(), time.Time{}
	for st, err := range w.List(ctx, h, ListOptions{Label: jobs.Failed}) {
		if err != nil {
			return retried, err
		}
		if match != nil && !match(st) {
			continue
		}
		if err := seams.Sleep(ctx, next.Sub(seams.Steady())); err != nil {
			return retried, err
		}
		next = seams.Steady().Add(retryEvery)
		switch err := w.Retry(ctx, h, st.Meta.ID); {
		case err == nil:
			retried++
		case errors.Is(err, ErrUndone), errors.Is(err, jobs.ErrNotFound), errors.Is(err, jobs.ErrIllegalMove):
		default:
			return retried, err
		}
	}
	return retried, nil
}
