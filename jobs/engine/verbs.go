package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// Create makes the job, in a Turn. It returns a MoveError if there is one.
func (l *Job) Create(ctx context.Context) error {
	if err := l.mayMove(l.meta.Status, jobs.Initializing); err != nil {
		return err
	}
	id := l.st.ID()
	m := jobs.Meta{
		Type: l.o.Type, Name: id.Class, ID: id.Name, Status: jobs.Running, CreatedAt: l.e.Now(),
		// No other job of the store has the number; the rest tells it from jobs of
		// a copy of the store, which makes the same numbers.
		CreationID: fmt.Sprintf("%x-%08x", l.st.Driver().NextSequence(), uint32(l.st.Driver().Seams().Rand.Uint64())),
	}
	if err := l.put(ctx, m); err != nil {
		return err
	}
	return l.st.Emit(ctx, jobs.EventCreated, jobs.Event{})
}

// RunNow makes a run due at once, in a Turn. A run that waits for a retry is
// tried now, with all its attempts before it again, and keeps its cause. While
// one executes, another follows when it has ended. It returns ErrNotFound, or a
// MoveError if the job is neither running nor executing.
func (l *Job) RunNow(ctx context.Context, cause string) error {
	m, now := l.meta, l.e.Now()
	switch {
	case m.Status == jobs.None:
		return l.notFound()
	case m.Status == jobs.Running && !m.Run.RetryAt.IsZero():
		m.Run.RetryAt, m.Run.Failures, m.Run.FirstAt = now, 0, now
	case m.Status == jobs.Running, m.Status == jobs.Executing:
		m.NextAt, m.NextCause = now, cause
	default:
		return &jobs.MoveError{ID: l.st.ID(), From: m.Status, To: jobs.Executing}
	}
	return l.put(ctx, m)
}

// TryAgain is a turn that tries a stuck job now, and not at Run.RetryAt. The attempt counts like
// one that came at its time, so the next wait is the longer one. A job that is not stuck, or
// rests because crashes have used up its recoveries, stays as it is.
func (l *Job) TryAgain(ctx context.Context) error {
	if l.meta.Status != jobs.Stuck || l.meta.Run.RetryAt.IsZero() {
		return nil
	}
	return l.Turn(ctx, func(ctx context.Context) error {
		m, now := l.meta, l.e.Now()
		if !m.Run.RetryAt.After(now) {
			return nil
		}
		m.Run.RetryAt = now
		return l.put(ctx, m)
	})
}

// Pause is a turn that keeps everything and lets no run begin until Resume. An
// execution that is open ends first; until then Meta.Pausing is set. A job that is
// paused, or is about to be, stays as it is. It returns ErrNotFound, or a MoveError
// if the job has ended.
func (l *Job) Pause(ctx context.Context) error { return l.PauseUntil(ctx, "", time.Time{}) }

// PauseUntil is Pause with a reason, which Meta.StopReason keeps cut to MaxTextBytes, and with
// the time at which the job resumes by itself, with the event of Resume. A time that has come
// resumes it at once; the zero time means that only Resume does. If the job is paused, or is
// about to be, its reason and time change, and no event is told. A stuck job that was paused
// is tried again when it resumes.
func (l *Job) PauseUntil(ctx context.Context, reason string, until time.Time) error {
	if !until.IsZero() {
		until = storable(until)
	}
	return l.Turn(ctx, func(ctx context.Context) error {
		m, why := l.meta, Shorten(reason)
		executing := m.Status == jobs.Executing
		switch {
		case m.Status == jobs.None:
			return l.notFound()
		case (m.Status == jobs.Paused || m.Pausing) && m.StopReason == why && m.PausedUntil.Equal(until):
			return nil
		case !executing && m.Status != jobs.Paused:
			return l.pause(ctx, m, why, until)
		}
		m.Pausing, m.StopReason, m.PausedUntil = executing, why, until
		return l.put(ctx, m)
	})
}

// pause stores m, of a job that has no execution, as paused.
func (l *Job) pause(ctx context.Context, m jobs.Meta, reason string, until time.Time) error {
	from := m.Status
	if from == jobs.Stuck {
		m.Run = unstuckRun(m.Run, l.e.Now()) // due as soon as the job resumes
	}
	m, err := l.moved(m, jobs.Paused, reason)
	if err != nil {
		return err
	}
	m.PausedUntil = until
	if err := l.put(ctx, m); err != nil {
		return err
	}
	return l.tellMove(ctx, from, jobs.Paused, reason)
}

// EndNow ends a job that has no open execution, in a Turn: a running, paused or stuck job
// becomes jobs.Cancelled. Meta.StopReason keeps the reason and Meta.LastError the text of err,
// which may be nil, both cut to MaxTextBytes. It returns ErrNotFound, or a MoveError if an
// execution is open or the status table has no such move.
func (l *Job) EndNow(ctx context.Context, to jobs.Status, reason string, err error) error {
	m := l.meta
	switch {
	case m.Status == jobs.None:
		return l.notFound()
	case m.Status == jobs.Executing, to != jobs.Completed && to != jobs.Failed && to != jobs.Cancelled:
		return &jobs.MoveError{ID: l.st.ID(), From: m.Status, To: to}
	}
	m.Run, m.NextAt, m.NextCause = jobs.Run{}, time.Time{}, ""
	m.LastError, m.LastStack = "", ""
	if err != nil {
		m.LastError, m.LastStack = Shorten(err.Error()), cutStack(err)
	}
	return l.move(ctx, m, to, reason)
}

// Resume is a turn that lets a paused, stopped, failed or stuck job go on: with the run
// that waited, or else by its schedule. A failed or stuck job has all its attempts and
// recoveries before it again, and a stuck one is tried at once. A job that is running or
// executing stays as it is. It returns ErrNotFound if there is no such job, and a MoveError
// if it is completed or cancelled.
func (l *Job) Resume(ctx context.Context) error { return l.Turn(ctx, l.GoOn) }

// GoOn is Resume within a Turn, for a type that lets its job go on together with a change of
// its own.
func (l *Job) GoOn(ctx context.Context) error {
	m := l.meta
	switch {
	case m.Status == jobs.Executing && m.Pausing:
		m.Pausing, m.StopReason, m.PausedUntil = false, "", time.Time{}
		return l.put(ctx, m)
	case m.Status == jobs.Executing, m.Status == jobs.Running:
		return nil
	case m.Status == jobs.Completed || m.Status == jobs.Cancelled: // they begin anew, by Anew, or not at all
		return &jobs.MoveError{ID: l.st.ID(), From: m.Status, To: jobs.Running}
	case m.Status == jobs.Stuck:
		m.Run = unstuckRun(m.Run, l.e.Now())
	case m.Status == jobs.Failed || m.Status == jobs.Stopped:
		m.Run, m.Failures = jobs.Run{}, 0
	}
	return l.move(ctx, m, jobs.Running, "")
}

// Anew lets a job that has ended begin anew, within a Turn, for a type that stores in the same
// turn all that such a begin needs. It returns a MoveError for a job that has not ended.
func (l *Job) Anew(ctx context.Context) error {
	m := l.meta
	if !m.Status.Ended() {
		return &jobs.MoveError{ID: l.st.ID(), From: m.Status, To: jobs.Running}
	}
	m.Run, m.Failures = jobs.Run{}, 0
	return l.move(ctx, m, jobs.Running, "")
}

// Stop is a turn that ends the job and keeps its state; an execution that is open
// is cancelled. It returns ErrNotFound, or a MoveError.
func (l *Job) Stop(ctx context.Context, reason string) error {
	return l.Turn(ctx, func(ctx context.Context) error {
		m := l.meta
		if m.Status == jobs.Executing {
			if err := l.e.Discard(ctx, Token(m.ExecutionID)); err != nil {
				return err
			}
		}
		m.ExecutingAt, m.ExecutionID, m.Run = time.Time{}, "", jobs.Run{}
		return l.move(ctx, m, jobs.Stopped, reason)
	})
}

// Terminate is a turn that removes the job: state, alarm and marks in one batch,
// with the event that tells of it (J10). Work that is running is cancelled. It
// returns ErrNotFound if there is no such job.
func (l *Job) Terminate(ctx context.Context, reason string) error {
	return l.Turn(ctx, func(ctx context.Context) error { return l.terminate(ctx, reason) })
}

func (l *Job) terminate(ctx context.Context, reason string) error {
	if l.meta.Status == jobs.None {
		return l.notFound()
	}
	if err := l.mayMove(l.meta.Status, jobs.Terminated); err != nil {
		return err
	}
	if t, ok := l.t.(Retirer); ok {
		if err := t.Retiring(ctx); err != nil {
			return err
		}
	}
	if err := l.tellMove(ctx, l.meta.Status, jobs.Terminated, reason); err != nil {
		return err
	}
	return l.e.Purge(ctx)
}

// move stores m, the metadata of a job without an execution, in another status,
// and emits the event of the move in the same batch.
func (l *Job) move(ctx context.Context, m jobs.Meta, to jobs.Status, reason string) error {
	from := m.Status
	if from == jobs.None {
		return l.notFound()
	}
	m, err := l.moved(m, to, reason)
	if err != nil {
		return err
	}
	if err := l.put(ctx, l.retired(m)); err != nil {
		return err
	}
	return l.tellMove(ctx, from, to, reason)
}

// tellMove emits the one event of a move of the job, if it has one.
func (l *Job) tellMove(ctx context.Context, from, to jobs.Status, reason string) error {
	var kind string
	switch {
	case to == jobs.Paused:
		kind = jobs.EventPaused
	case to == jobs.Stopped:
		kind = jobs.EventStopped
	case to == jobs.Failed:
		kind = jobs.EventFailed
	case to == jobs.Terminated:
		kind = jobs.EventTerminated
	case to == jobs.Completed:
		kind = jobs.EventCompleted
	case to == jobs.Cancelled:
		kind = jobs.EventCancelled
	case to == jobs.Stuck:
		kind = jobs.EventStuck
	case to == jobs.Running && from != jobs.Executing && from != jobs.Initializing:
		kind = jobs.EventResumed
	default:
		return nil
	}
	ev := jobs.Event{Run: l.meta.RunCount, Reason: Shorten(reason)}
	if to == jobs.Failed || to == jobs.Cancelled || to == jobs.Stuck {
		ev.Error = l.meta.LastError
	}
	if t, ok := l.t.(Teller); ok && to == jobs.Failed {
		if err := l.st.Emit(ctx, kind, t.Failing(ev)); !tooLarge(err) {
			return err
		}
	}
	return l.st.Emit(ctx, kind, ev)
}

func (l *Job) notFound() error { return fmt.Errorf("%w: %s", jobs.ErrNotFound, l.st.ID()) }
