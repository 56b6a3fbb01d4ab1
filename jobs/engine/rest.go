package engine

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// A job rests until a time if it is paused until then, or has ended and is kept until then. That
// time is its alarm, exactly, also with Options.LazyAlarm, because the scrubber compares the two
// (J3).

// rests reports whether a job rests until a time.
func rests(m *jobs.Meta) bool { return !m.RetireAt.IsZero() || !m.PausedUntil.IsZero() }

// restEnd is when the rest of the job is over; zero: it does not rest, or until a verb only. A
// call of OnExhausted that is owed comes before the end of the job.
func (l *Job) restEnd() time.Time {
	switch m := &l.meta; {
	case m.Status == jobs.Paused:
		return m.PausedUntil
	case m.Status.Ended() && len(l.hooks) == 0:
		return m.RetireAt
	}
	return time.Time{}
}

// endRest resumes a job that was paused until now, and removes one that was kept until now.
func (l *Job) endRest(ctx context.Context, now time.Time) error {
	at := l.restEnd()
	switch {
	case at.IsZero(), at.After(now):
		return nil
	case l.meta.Status == jobs.Paused:
		return l.move(ctx, l.meta, jobs.Running, "")
	}
	return l.terminate(ctx, jobs.RetentionReason)
}

// retired returns m, the metadata of a job that has just ended, with its end and the time at
// which it is gone. A failed job has an end of its own only if its work asked for it, or if
// the type has a Retention.
func (l *Job) retired(m jobs.Meta, asked bool) jobs.Meta {
	switch m.Status {
	case jobs.Completed, jobs.Cancelled:
	case jobs.Failed:
		if !asked && l.o.Retention == (jobs.Retention{}) {
			return m
		}
	default:
		return m
	}
	m.EndedAt = l.e.Now()
	if keep := l.o.Retention.For(m.Status); keep > 0 {
		m.RetireAt = storable(m.EndedAt.Add(keep))
	}
	return m
}
