package jobs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// Proves J21, J22: a negative time of a Retention, one at which the job is gone before it is
// stale, and a hook for a time that never comes are refused. A job may be gone as it becomes
// stale, and Forever is no time.
func TestRetentionIsValidated(t *testing.T) {
	hook := func(context.Context, *jobs.Retired) error { return nil }
	for name, c := range map[string]struct {
		r     jobs.Retention
		wrong bool
	}{
		"zero":                      {jobs.Retention{}, false},
		"hooks":                     {jobs.Retention{StaleAfter: 1, OnStale: hook, OnDelete: hook}, false},
		"OnDelete alone":            {jobs.Retention{OnDelete: hook}, false},
		"OnStale without its time":  {jobs.Retention{OnStale: hook, Failed: 1}, true},
		"gone as it is stale":       {jobs.Retention{StaleAfter: 5, Failed: 5, Stopped: 5}, false},
		"Failed before it is stale": {jobs.Retention{StaleAfter: 5, Failed: 4}, true},
		"Stopped before it":         {jobs.Retention{StaleAfter: 5, Stopped: 4}, true},
		"Completed before it":       {jobs.Retention{StaleAfter: 5, Completed: 4, Cancelled: 4}, false},
		"kept":                      {jobs.Retention{StaleAfter: 5, Failed: jobs.Forever, Stopped: jobs.Forever}, false},
		"Completed below zero":      {jobs.Retention{Completed: -1}, true},
		"Cancelled below zero":      {jobs.Retention{Cancelled: -1}, true},
		"Failed below zero":         {jobs.Retention{Failed: -1}, true},
		"Stopped below zero":        {jobs.Retention{Stopped: -1}, true},
		"StaleAfter below zero":     {jobs.Retention{StaleAfter: -1}, true},
	} {
		if err := c.r.Validate(); errors.Is(err, jobs.ErrInvalid) != c.wrong || err != nil && !c.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Proves J21: a Retention has a time for each status of a job that has ended, and for no other.
func TestRetentionFor(t *testing.T) {
	r := jobs.Retention{Completed: 1, Cancelled: 2, Failed: 3, Stopped: 4}
	want := map[jobs.Status]time.Duration{jobs.Completed: 1, jobs.Cancelled: 2, jobs.Failed: 3, jobs.Stopped: 4}
	for _, s := range []jobs.Status{jobs.Completed, jobs.Cancelled, jobs.Failed, jobs.Stopped, jobs.Running, jobs.Paused, jobs.Stuck} {
		if got := r.For(s); got != want[s] {
			t.Errorf("a job that is %s is kept for %v, want %v", s, got, want[s])
		}
	}
	if kept := (jobs.Retention{Failed: jobs.Forever}).For(jobs.Failed); kept != 0 {
		t.Errorf("a job that is kept for ever goes after %v", kept)
	}
}
