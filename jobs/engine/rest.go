package engine

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// A job rests until a time if it is paused until then, or has ended and is kept until then. That
// time is its alarm, exactly, also with Options.LazyAlarm, because the scrubber compares the two
// (J3).
//
// The way of a job that has ended, by its Retention:
//
//  1. retired stores with the end when the job is stale, and when it is gone.
//  2. endRest finds it stale: goStale stores that, tells it, and owes the call of OnStale.
//  3. endRest finds its time over: retire owes the call of OnDelete, or removes the job.
//  4. retentionCalled is the end of such a call; that of OnDelete removes the job.

// rests reports whether a job rests until a time.
func rests(m *jobs.Meta) bool { return !m.RestEnd().IsZero() }

// restEnd is when the rest of the job is over; zero: it does not rest, or until a verb only. A
// call of a hook that is owed comes before the end of the job.
func (l *Job) restEnd() time.Time {
	if l.meta.Status.Ended() && len(l.hooks) > 0 {
		return time.Time{}
	}
	return l.meta.RestEnd()
}

// endRest resumes a job that was paused until now. One that was kept until now becomes stale, and
// is removed. Both may be due at once, after a downtime.
func (l *Job) endRest(ctx context.Context, now time.Time) error {
	for {
		at := l.restEnd()
		switch {
		case at.IsZero(), at.After(now):
			return nil
		case l.meta.Status == jobs.Paused:
			return l.move(ctx, l.meta, jobs.Running, "")
		case l.meta.Stale || l.meta.StaleAt.IsZero():
			return l.retire(ctx)
		}
		if err := l.goStale(ctx); err != nil {
			return err
		}
	}
}

// goStale stores that the job is stale, tells it, and owes the call of OnStale: one batch. The
// status stays, and so does the label.
func (l *Job) goStale(ctx context.Context) error {
	m := l.meta
	m.Stale = true
	if l.o.Retention.OnStale != nil {
		if err := l.oweRetired(ctx, onStale); err != nil {
			return err
		}
	}
	if err := l.put(ctx, m); err != nil {
		return err
	}
	return l.st.Emit(ctx, jobs.EventStale, jobs.Event{Run: m.RunCount, Reason: m.StopReason, Error: m.LastError})
}

// retire removes the job, or owes the call of OnDelete that comes before.
func (l *Job) retire(ctx context.Context) error {
	if l.o.Retention.OnDelete == nil {
		return l.terminate(ctx, jobs.RetentionReason)
	}
	if err := l.oweRetired(ctx, onDelete); err != nil {
		return err
	}
	return l.put(ctx, l.meta)
}

// wants reports whether a call of a hook of the Retention is still to be made: neither was the
// job resumed meanwhile nor, for OnDelete, is it kept longer by now.
func (l *Job) wants(h owedHook) bool {
	m := &l.meta
	switch {
	case h.Of == "": // a call of OnExhausted
		return true
	case !m.Status.Ended(), !m.EndedAt.Equal(h.Told.At):
		return false
	}
	return h.Of != onDelete || !m.RetireAt.IsZero() && !m.RetireAt.After(l.e.Now())
}

// retentionCalled goes on after the last call of a hook of the Retention, which the caller has
// forgotten.
func (l *Job) retentionCalled(ctx context.Context, h owedHook, out Outcome) error {
	if !l.wants(h) {
		return l.put(ctx, l.meta)
	}
	if out.Kind == GaveUp {
		ev := jobs.Event{Run: l.meta.RunCount, Attempt: out.Run.Failed(), Reason: h.Of, Error: Shorten(out.Err.Error())}
		if err := l.st.Emit(ctx, jobs.EventRetentionFailed, ev); err != nil {
			return err
		}
	}
	if h.Of == onDelete {
		return l.terminate(ctx, jobs.RetentionReason)
	}
	return l.put(ctx, l.meta)
}

// retired returns m, the metadata of a job that has just come to its status, with its end if it
// has ended.
func (l *Job) retired(m jobs.Meta) jobs.Meta {
	if !m.Status.Ended() {
		return m
	}
	m.EndedAt = l.e.Now()
	return l.timed(m)
}

// timed returns m with the times that the Retention gives an ended job. A job that an older
// version has left without the time of its end is kept.
func (l *Job) timed(m jobs.Meta) jobs.Meta {
	if !m.Status.Ended() || m.EndedAt.IsZero() {
		return m
	}
	r := &l.o.Retention
	m.RetireAt = after(m.EndedAt, r.For(m.Status))
	if stales := m.Status == jobs.Failed || m.Status == jobs.Stopped; stales && !m.Stale {
		m.StaleAt = after(m.EndedAt, r.StaleAfter)
	}
	return m
}

// after is the time d after t; zero if d is.
func after(t time.Time, d time.Duration) time.Time {
	if d == 0 {
		return time.Time{}
	}
	return storable(t.Add(d))
}

// retime gives an ended job the times of the present Retention, in a constructor, and reports
// whether they have changed. On a full disk it waits for a later instance, because the job can be
// read there. An alarm that is due stays for its turn, which sets the next.
func (l *Job) retime(ctx context.Context) (bool, error) {
	m := l.timed(l.meta)
	if m.RetireAt.Equal(l.meta.RetireAt) && m.StaleAt.Equal(l.meta.StaleAt) || l.st.Driver().Space() != nil {
		return false, nil
	}
	if err := l.put(ctx, m); err != nil {
		return false, err
	}
	at, armed, err := l.st.Alarm(ctx)
	if err != nil || armed && !at.After(l.e.Now()) {
		return true, err
	}
	return true, l.e.arm(ctx)
}
