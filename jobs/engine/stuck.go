package engine

import (
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// A job of JobOptions.Stuck that fails keeps its run. Its status tells which of two sorts of
// trouble it has:
//
//   - stuck with Run.RetryAt: its code has failed. It is begun again at that time, which is its
//     alarm, and again after each further failure.
//   - stuck without Run.RetryAt: crashes have used up its recoveries, so that it may kill each
//     process that runs it. It has no alarm and rests until Resume.

// stuckMeta returns m, which endedMeta has made of before, as that of a job that rests with
// its recoveries used up. The run keeps its number, because it is not over.
func stuckMeta(m, before jobs.Meta, out Outcome) jobs.Meta {
	m.Failures, m.Run = before.Failures, out.Run
	m.Run.RetryAt = time.Time{}
	return m
}

// newlyStuck reports whether a job that is stuck after an outcome is to be told of: not at each
// failure of a run that has failed before.
func newlyStuck(out Outcome) bool { return out.Kind == GaveUp || out.Run.Failures == 1 }

// unstuckRun returns the run of a stuck job that resumes now: all its attempts and recoveries
// are before it again.
func unstuckRun(r jobs.Run, now time.Time) jobs.Run {
	r, _ = progressedRun(r)
	r.Earlier, r.Failures = r.Failed(), 0
	r.FirstAt, r.RetryAt = now, now
	return r
}
