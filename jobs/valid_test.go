package jobs_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/storage"
)

// Each policy and status is valid, and other values are not. A job has ended with three
// of the statuses.
func TestValidValues(t *testing.T) {
	for m, want := range map[jobs.Missed]bool{jobs.RunOnce: true, jobs.RunEach: true, jobs.Skip: true, jobs.Skip + 1: false} {
		if m.Valid() != want {
			t.Errorf("Missed %d is valid: %t", m, !want)
		}
	}
	for e, want := range map[jobs.Exhausted]bool{jobs.Keep: true, jobs.Fail: true, jobs.Purge: true, jobs.Purge + 1: false} {
		if e.Valid() != want {
			t.Errorf("Exhausted %d is valid: %t", e, !want)
		}
	}
	for s, want := range map[jobs.Status]bool{
		jobs.None: false, jobs.Initializing: false, jobs.Running: false, jobs.Executing: false, jobs.Paused: false,
		jobs.Stopped: true, jobs.Failed: true, jobs.Terminated: true,
	} {
		if s.Ended() != want || !s.Valid() {
			t.Errorf("status %s has ended: %t, is valid: %t", s, s.Ended(), s.Valid())
		}
	}
	if jobs.Status("other").Valid() {
		t.Error("another status is valid")
	}
	for limit, want := range map[time.Duration]bool{-1: false, 0: true, 1: true} {
		if err := jobs.Every(time.Second).WithJitter(limit).Validate(); (err == nil) != want || err != nil && !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("a jitter of %v: %v", limit, err)
		}
	}
}

// Proves J15: a value that cannot be read has the error of its codec, with at most 512
// bytes of its text.
func TestCauseOfADecodeError(t *testing.T) {
	for length, want := range map[int]int{511: 511, 512: 512, 513: 512, 600: 512} {
		cause := errors.New(strings.Repeat("x", length))
		e := &jobs.DecodeError{Err: cause}
		if got := strings.Count(e.Error(), "x"); got != want {
			t.Errorf("of a cause of %d bytes %d are told, want %d", length, got, want)
		}
		if !errors.Is(e, cause) {
			t.Error("the cause is lost")
		}
	}
}

// Proves J15: the error of a value that cannot be read names the value, both versions,
// the cause, and the ways forward and back.
func TestTextsOfDecodeErrors(t *testing.T) {
	id, cause := storage.ID{Class: "c", Name: "n"}, errors.New("no")
	for want, e := range map[string]*jobs.DecodeError{
		`c/n: state, stored under version "v1" and read under version "v2", does not decode: no: give Config.Migrate, or go back to version "v1"`: {
			Stored: "v1", Version: "v2", Err: cause, Field: "Migrate",
		},
		`c/n: state, stored under version "v1" and read under version "v2", is not migrated: no: mend Config.Migrate, or go back to version "v1"`: {
			Stored: "v1", Version: "v2", Err: cause, Field: "Migrate", Migrated: true,
		},
		`c/n: state, stored under no version and read under no version, does not decode: no: give Config a Version, and Config.Migrate, or go back to the program that stored it`: {
			Err: cause, Field: "Migrate",
		},
		`c/n: state, stored under version "v1" and read under version "v1", does not decode: no: give Config another Version, and Config.Migrate, or go back to the program that stored it`: {
			Stored: "v1", Version: "v1", Err: cause, Field: "Migrate",
		},
	} {
		if got := e.Of(id, "state").Error(); got != want {
			t.Errorf("the text is %q, want %q", got, want)
		}
	}
}
