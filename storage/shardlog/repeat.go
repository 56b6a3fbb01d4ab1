package shardlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// A call of unknown outcome is made again after a pause, which doubles up to pauseMax.
const (
	pauseMin = 20 * time.Millisecond
	pauseMax = time.Second
)

// final is an error that no repeat of the call changes, though it is none of the log's.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// settles reports whether an error of a call tells its outcome, so that the call is not made again.
func settles(err error) bool {
	for _, known := range []error{ErrFenced, ErrRefused, ErrHole, ErrTruncated} {
		if errors.Is(err, known) {
			return true
		}
	}
	return errors.As(err, new(final))
}

// isUnknown reports whether an error of a call leaves its outcome open.
func isUnknown(err error) bool {
	return err != nil && !settles(err) && !errors.Is(err, ErrNoSpace)
}

// asker makes calls of a log until their outcome is known. It is for one goroutine at a time.
type asker struct {
	o        Options
	calls    context.Context // of the log
	patience time.Duration   // how long a call of unknown outcome is made again
	between  func() error    // called between two tries; its error ends the call
	full     func(why error) // told that the log has no space, and with nil that it has

	progress   *progress
	unanswered unanswered // the lines about a log that does not answer
}

// newAsker returns an asker that tells nothing of the space of the log.
func newAsker(o Options, calls context.Context, patience time.Duration) asker {
	return asker{
		o: o, calls: calls, patience: patience,
		between: func() error { return nil }, full: func(error) {},
		progress:   &progress{began: o.Seams.Steady()},
		unanswered: unanswered{log: o.Logger.With("shard", o.Shard), seams: &o.Seams},
	}
}

// repeat makes a call of the log until its outcome is known. It returns ErrUnknown when it has not been for the patience, or when calls
// ends. The time in which the log has no space does not count, because nothing is stored then.
func (a *asker) repeat(what string, call func(context.Context) error) error {
	seams := &a.o.Seams
	began := seams.Steady()
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		err := a.once(call)
		switch {
		case err == nil:
			a.full(nil)
			a.unanswered.over()
			return nil
		case settles(err):
			return fmt.Errorf("%s: %w", what, err)
		case errors.Is(err, ErrNoSpace):
			a.full(err)
			began = seams.Steady()
		}
		waited := seams.Steady().Sub(began)
		switch {
		case a.calls.Err() != nil:
			return fmt.Errorf("%w: %s: %w: %w", ErrUnknown, what, context.Cause(a.calls), err)
		case waited >= a.patience:
			return fmt.Errorf("%w: %s had no answer for %v: %w", ErrUnknown, what, waited.Round(time.Second), err)
		}
		a.unanswered.tell(what, waited, err)
		if err := a.between(); err != nil {
			return final{err}
		}
		_ = seams.Sleep(a.calls, min(pause, a.patience-waited)) // the end of calls ends the loop
	}
}

// silentFor is how long ago the log has answered, or the opening begun.
func (a *asker) silentFor() time.Duration { return a.o.Seams.Steady().Sub(a.progress.spoke()) }

// once makes a call of the log with its limit of time.
func (a *asker) once(call func(context.Context) error) error {
	began := a.o.Seams.Steady()
	ctx, cancel := a.o.Seams.WithDeadline(a.calls, a.o.Seams.Clock.Now().Add(a.o.Timeout), context.DeadlineExceeded)
	defer cancel()
	err := call(ctx)
	if err == nil {
		a.progress.heard(began)
	}
	return err
}

// tellEvery is how often a log that does not answer is told of.
const tellEvery = time.Minute

// unanswered tells of a log that does not answer.
type unanswered struct {
	log   *slog.Logger
	seams *seam.Seams
	told  time.Time // steady; zero: nothing since the last answer

	noSpace bool // told of a log without space
}

// tell tells of a call without an answer, or of one that found no space, unless that was told within a minute.
func (u *unanswered) tell(what string, waited time.Duration, err error) {
	now := u.seams.Steady()
	if !u.told.IsZero() && now.Sub(u.told) < tellEvery {
		return
	}
	u.told, u.noSpace = now, errors.Is(err, ErrNoSpace)
	line := "the log does not answer: the call is made again"
	if u.noSpace {
		line = "the log has no space left: the call is made again"
	}
	u.log.Warn(line, "call", what, "for", waited, "error", err)
}

// over tells that the log answers again, if the opposite was told.
func (u *unanswered) over() {
	if u.told.IsZero() {
		return
	}
	u.told = time.Time{}
	if u.noSpace {
		u.log.Info("the log has space again")
		return
	}
	u.log.Info("the log answers again")
}
