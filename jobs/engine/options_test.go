package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/recovery"
)

// An option that is less than zero is refused by its name and value.
func TestNegativeOptionsAreNamed(t *testing.T) {
	for want, o := range map[string]engine.Options{
		"Timeout must not be negative: -1ns":          {Timeout: -1},
		"Lease must not be negative: -1ns":            {Lease: -1},
		"Heartbeat must not be negative: -1ns":        {Heartbeat: -1},
		"StaleThreshold must not be negative: -1ns":   {Limits: recovery.Limits{StaleThreshold: -1}},
		"RecoveryDelay must not be negative: -1ns":    {Limits: recovery.Limits{RecoveryDelay: -1}},
		"MergeEnds must not be negative: -1":          {MergeEnds: -1},
		"Retry.MaxAttempts must not be negative: -1":  {Retry: jobs.Retry{MaxAttempts: -1}},
		"Retry.MaxElapsed must not be negative: -1ns": {Retry: jobs.Retry{MaxElapsed: -1}},
	} {
		if err := o.Validate(); !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}
