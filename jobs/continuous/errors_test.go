package continuous_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves O12, Case JB10: the error of Open against a definition names one package, and the class
// once, for a mistake in any of its parts.
func TestMistakesNameOnePackage(t *testing.T) {
	run := func(context.Context, *continuous.Run[int]) error { return nil }
	for want, c := range map[string]continuous.Config[int]{
		"continuous: invalid: Name is empty":                                {Run: run},
		"continuous j: invalid: Run is nil":                                 {Name: "j"},
		"continuous j: invalid: Missed is 9: want RunOnce, RunEach or Skip": {Name: "j", Run: run, Missed: 9},
		"continuous j: invalid: Retry.MaxAttempts must not be negative: -1": {Name: "j", Run: run, Retry: jobs.Retry{MaxAttempts: -1}},
		"continuous j: invalid: schedule: jitter -1ns is negative":          {Name: "j", Run: run, Schedule: jobs.Every(1e9).WithJitter(-1)},
		"continuous j: invalid: Migrate needs a Version: without one no value is of another version": {
			Name: "j", Run: run, Migrate: func(string, []byte) (int, error) { return 0, nil },
		},
	} {
		_, err := object.Open(object.Options{Dir: t.TempDir()}, continuous.New(c))
		if err == nil || err.Error() != want || !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("error %q, want %q", err, want)
		}
	}
}
