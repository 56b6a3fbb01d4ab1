package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// Proves J9: attempts counts executions in all, the wait counts from the
// failure, and the reason of the end is carried.
func TestRetryNext(t *testing.T) {
	boom, fatal := errors.New("boom"), errors.New("fatal")
	r := jobs.Retry{
		MaxAttempts: 3, Backoff: jobs.Constant(10 * time.Second), MaxElapsed: time.Minute,
		RetryIf: func(err error) bool { return err != fatal },
	}
	tests := []struct {
		name   string
		r      jobs.Retry
		run    jobs.Run
		now    time.Time
		err    error
		at     time.Time
		reason jobs.Reason
	}{
		{"first failure", r, jobs.Run{Failures: 1, FirstAt: noon}, noon.Add(5 * time.Second), boom, noon.Add(15 * time.Second), notGivenUp},
		{"last failure", r, jobs.Run{Failures: 3, FirstAt: noon}, noon, boom, time.Time{}, jobs.ReasonAttempts},
		{"too late", r, jobs.Run{Failures: 2, FirstAt: noon}, noon.Add(51 * time.Second), boom, time.Time{}, jobs.ReasonDuration},
		{"just in time", r, jobs.Run{Failures: 2, FirstAt: noon}, noon.Add(50 * time.Second), boom, noon.Add(time.Minute), notGivenUp},
		{"hopeless", r, jobs.Run{Failures: 1, FirstAt: noon}, noon, fatal, time.Time{}, jobs.ReasonNotRetryable},
		{"crashes cost no attempt", r, jobs.Run{Attempt: 9, Recoveries: 8, Failures: 1, FirstAt: noon}, noon, boom, noon.Add(10 * time.Second), notGivenUp},
		{"no limit of time", jobs.Retry{MaxAttempts: 3, Backoff: jobs.Constant(time.Hour)}, jobs.Run{Failures: 1, FirstAt: noon}, noon, boom, noon.Add(time.Hour), notGivenUp},
		{"a nanosecond", jobs.Retry{MaxAttempts: 3, Backoff: jobs.Constant(2), MaxElapsed: 1}, jobs.Run{Failures: 1, FirstAt: noon}, noon, boom, time.Time{}, jobs.ReasonDuration},
		{"zero value", jobs.Retry{}, jobs.Run{Failures: 1, FirstAt: noon}, noon, boom, time.Time{}, jobs.ReasonAttempts},
	}
	for _, tt := range tests {
		at, reason := next(tt.r, tt.run, tt.now, tt.err, nil)
		if !at.Equal(tt.at) || reason != tt.reason {
			t.Errorf("%s: at %s for %q, want %s for %q", tt.name, at, reason, tt.at, tt.reason)
		}
	}
}
