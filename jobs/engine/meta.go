package engine

import (
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs"
)

// normal returns m as the runtime can go on from it. Metadata that tells of an
// execution which is not open, as an older version may have left it, is that of
// a job with a run that is due.
func normal(m jobs.Meta, open int) jobs.Meta {
	if m.Status == jobs.Executing && open == 0 {
		m.Status = jobs.Running
		m.Run.RetryAt = m.ExecutingAt
		if m.Run.RetryAt.IsZero() {
			m.Run.RetryAt = m.UpdatedAt
			if m.Run.RetryAt.Unix() < 1 {
				m.Run.RetryAt = time.Unix(1, 0)
			}
		}
		if m.Run.Number == 0 {
			m.Run.Number = m.RunCount + 1
		}
		m.ExecutingAt, m.ExecutionID = time.Time{}, ""
	}
	if m.Status == jobs.Initializing {
		m.Status = jobs.Running
	}
	return m
}

// begunMeta returns m with x open.
// Status and ExecutingAt change together, because the scrubber takes one without the
// other for a broken promise (J2).
func begunMeta(m jobs.Meta, x Execution) jobs.Meta {
	m.Status = jobs.Executing
	m.ExecutingAt, m.ExecutionID = x.Began, string(x.Token)
	m.Run = x.Run
	return m
}

// endedMeta returns m after the end of x, its status apart.
// A success clears the last error; a run that was given up keeps only its count of
// recoveries, so that crashes go on counting into the next run until one succeeds (R4).
func endedMeta(m jobs.Meta, x Execution, out Outcome, now time.Time) jobs.Meta {
	m.ExecutingAt, m.ExecutionID = time.Time{}, ""
	if out.Err != nil {
		m.LastError, m.LastStack = Shorten(out.Err.Error()), out.Stack()
	}
	switch out.Kind {
	case Done, Quit:
		m.RunCount = x.Run.Number
		m.Failures, m.LastError, m.LastStack = 0, "", ""
		switch res := &out.Result; {
		case res.Wish != Fail && res.Wish != Cancel:
			m.LastSuccessfulAt = now
		case res.Err != nil:
			m.LastError, m.LastStack = Shorten(res.Err.Error()), cutStack(res.Err)
		}
		m.Run = jobs.Run{}
		if m.NextAt.IsZero() && !out.Result.NextAt.IsZero() {
			m.NextAt, m.NextCause = storable(out.Result.NextAt), CauseChosen
		}
	case Recover:
		m.LastRecoveryAt = now
		m.Run = out.Run
	case Again, Snoozed:
		m.Run = out.Run
	default:
		m.Failures++
		m.Run = jobs.Run{Recoveries: out.Run.Recoveries, Losses: out.Run.Losses}
	}
	return m
}

// storable is the time nearest to t that an alarm can have, from 1970 to 2262. It is
// never the zero time, which would mean that nothing is due.
func storable(t time.Time) time.Time {
	return time.Unix(0, max(alarm.Nanos(t), 1)).UTC()
}

// nextRun returns the run that is due at the given time: the one that waits for
// its next execution, or else a new one.
func nextRun(m jobs.Meta, at time.Time) jobs.Run {
	if !m.Run.RetryAt.IsZero() {
		return m.Run
	}
	return jobs.Run{
		Number: m.RunCount + 1, Recoveries: m.Run.Recoveries, Losses: m.Run.Losses,
		Scheduled: at, Cause: m.NextCause,
	}
}

// CauseChosen is the Run.Cause of a run that the run before it chose the time of, with
// Result.NextAt.
const CauseChosen = "chosen"
