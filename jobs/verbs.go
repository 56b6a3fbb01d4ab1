package jobs

import (
	"context"
	"fmt"
	"time"
)

// Create makes the job, in a Turn. It returns a MoveError if there is one.
func (l *Life) Create(ctx context.Context) error {
	if err := l.mayMove(l.meta.Status, Initializing); err != nil {
		return err
	}
	id := l.st.ID()
	m := Meta{
		Type: l.o.Type, Name: id.Class, ID: id.Name, Status: Running, CreatedAt: l.e.Now(),
		// The number is of this life alone in the store; the rest tells it from lives of
		// a copy of the store, which makes the same numbers.
		Life: fmt.Sprintf("%x-%08x", l.st.NextSequence(), uint32(l.st.Seams().Rand.Uint64())),
	}
	if err := l.put(ctx, m); err != nil {
		return err
	}
	return l.st.Emit(ctx, EventCreated, Event{})
}

// RunNow makes a run due at once, in a Turn. A run that waits for a retry is
// tried now, with all its attempts before it again, and keeps its cause. While
// one executes, another follows when it has ended. It returns ErrNotFound, or a
// MoveError if the job is neither running nor executing.
func (l *Life) RunNow(ctx context.Context, cause string) error {
	m, now := l.meta, l.e.Now()
	switch {
	case m.Status == None:
		return l.notFound()
	case m.Status == Running && !m.Run.RetryAt.IsZero():
		m.Run.RetryAt, m.Run.Failures, m.Run.FirstAt = now, 0, now
	case m.Status == Running, m.Status == Executing:
		m.NextAt, m.NextCause = now, cause
	default:
		return &MoveError{ID: l.st.ID(), From: m.Status, To: Executing}
	}
	return l.put(ctx, m)
}

// Pause is a turn that keeps everything and lets no run begin until Resume. An
// execution that is open ends first; until then Meta.Pausing is set. A job that is
// paused, or is about to be, stays as it is. It returns ErrNotFound, or a MoveError
// if the job has ended.
func (l *Life) Pause(ctx context.Context) error {
	return l.Turn(ctx, func(ctx context.Context) error {
		m := l.meta
		switch {
		case m.Status == Paused, m.Pausing:
			return nil
		case m.Status != Executing:
			return l.move(ctx, m, Paused, "")
		}
		m.Pausing = true
		return l.put(ctx, m)
	})
}

// Resume is a turn that lets a paused, stopped or failed job go on: with the run
// that waited, or else by its schedule. A failed job has all its attempts and
// recoveries before it again. A job that is running or executing stays as it is. It
// returns ErrNotFound if there is no such job.
func (l *Life) Resume(ctx context.Context) error {
	return l.Turn(ctx, func(ctx context.Context) error {
		m := l.meta
		switch {
		case m.Status == Executing && m.Pausing:
			m.Pausing = false
			return l.put(ctx, m)
		case m.Status == Executing, m.Status == Running:
			return nil
		case m.Status == Failed || m.Status == Stopped:
			m.Run, m.Failures = Run{}, 0
		}
		return l.move(ctx, m, Running, "")
	})
}

// Stop is a turn that ends the job and keeps its state; an execution that is open
// is cancelled. It returns ErrNotFound, or a MoveError.
func (l *Life) Stop(ctx context.Context, reason string) error {
	return l.Turn(ctx, func(ctx context.Context) error {
		m := l.meta
		if m.Status == Executing {
			if err := l.e.Close(ctx, m.ExecutionID); err != nil {
				return err
			}
		}
		m.ExecutingAt, m.ExecutionID, m.Run = time.Time{}, "", Run{}
		return l.move(ctx, m, Stopped, reason)
	})
}

// Terminate is a turn that removes the job: state, alarm and marks in one batch,
// with the event that tells of it (J10). Work that is running is cancelled. It
// returns ErrNotFound if there is no such job.
func (l *Life) Terminate(ctx context.Context, reason string) error {
	return l.Turn(ctx, func(ctx context.Context) error { return l.terminate(ctx, reason) })
}

func (l *Life) terminate(ctx context.Context, reason string) error {
	if l.meta.Status == None {
		return l.notFound()
	}
	if err := l.mayMove(l.meta.Status, Terminated); err != nil {
		return err
	}
	if err := l.tellMove(ctx, l.meta.Status, Terminated, reason); err != nil {
		return err
	}
	return l.e.Purge(ctx)
}

// move stores m, the metadata of a job without an execution, in another status,
// and tells of it.
func (l *Life) move(ctx context.Context, m Meta, to Status, reason string) error {
	from := m.Status
	if from == None {
		return l.notFound()
	}
	m, err := l.moved(m, to, reason)
	if err != nil {
		return err
	}
	if err := l.put(ctx, m); err != nil {
		return err
	}
	return l.tellMove(ctx, from, to, reason)
}

// tellMove emits the one event of a move of the job, if it has one.
func (l *Life) tellMove(ctx context.Context, from, to Status, reason string) error {
	var kind string
	switch {
	case to == Paused:
		kind = EventPaused
	case to == Stopped:
		kind = EventStopped
	case to == Failed:
		kind = EventFailed
	case to == Terminated:
		kind = EventTerminated
	case to == Running && (from == Paused || from == Stopped || from == Failed):
		kind = EventResumed
	default:
		return nil
	}
	ev := Event{Run: l.meta.RunCount, Reason: Shorten(reason)}
	if to == Failed {
		ev.Error = l.meta.LastError
	}
	return l.st.Emit(ctx, kind, ev)
}

func (l *Life) notFound() error { return fmt.Errorf("%w: %s", ErrNotFound, l.st.ID()) }
