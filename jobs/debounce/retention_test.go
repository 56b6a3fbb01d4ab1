package debounce_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves J21, J22, J23: an object whose flush has failed for good becomes stale and is removed with
// its events, each at the time of its Retention and not a millisecond before, and both hooks are called.
func TestRetentionOfAFailedObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		called := make(chan string, 10)
		var seen []string
		note := func(hook string) func(context.Context, *jobs.Retired) error {
			return func(_ context.Context, r *jobs.Retired) error {
				called <- hook + " " + r.ID + " " + r.Status.String()
				return nil
			}
		}
		j := debounce.New(debounce.Config[string, struct{}]{
			Name: "posts", MaxEvents: 1, Quiet: time.Minute,
			Flush:     func(context.Context, *debounce.Flush[string, struct{}]) error { return errors.New("boom") },
			Retention: jobs.Retention{Failed: 2 * time.Hour, StaleAfter: time.Hour, OnStale: note("stale"), OnDelete: note("delete")},
		})
		h := newDisk(t).open(object.Options{}, j)
		if _, err := j.Add(t.Context(), h, "a", "x"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		m := func() jobs.Meta {
			st, err := j.Status(t.Context(), h, "a")
			if err != nil {
				t.Fatal(err)
			}
			return st.Meta
		}
		ended := m().EndedAt
		if m().Status != jobs.Failed || ended.IsZero() {
			t.Fatalf("it is %+v", m())
		}
		at := func(d time.Duration, want ...string) {
			t.Helper()
			time.Sleep(time.Until(ended.Add(d)))
			synctest.Wait()
			for len(called) > 0 {
				seen = append(seen, <-called)
			}
			if !slices.Equal(seen, want) {
				t.Errorf("after %v called are %q, want %q", d, seen, want)
			}
		}
		at(time.Hour - time.Millisecond)
		if m().Stale {
			t.Error("it is stale too early")
		}
		at(time.Hour, "stale a failed")
		if !m().Stale {
			t.Error("it is not stale")
		}
		at(2*time.Hour-time.Millisecond, "stale a failed")
		if m().Status != jobs.Failed {
			t.Error("it is gone too early")
		}
		at(2*time.Hour, "stale a failed", "delete a failed")
		if st, err := j.Status(t.Context(), h, "a"); !errors.Is(err, jobs.ErrNotFound) || st.Events != 0 {
			t.Errorf("it is still there: %+v, %v", st, err)
		}
		shut(t, h)
	})
}

// Proves J21: Open refuses a Retention that cannot be kept, and names its field.
func TestRetentionIsRefused(t *testing.T) {
	for field, r := range map[string]jobs.Retention{"Retention.Failed": {Failed: time.Hour, StaleAfter: time.Hour + 1}, "Retention.StaleAfter": {StaleAfter: -1}} {
		j := debounce.New(debounce.Config[string, struct{}]{
			Name: "posts", Quiet: time.Minute, Retention: r,
			Flush: func(context.Context, *debounce.Flush[string, struct{}]) error { return nil },
		})
		if _, err := object.Open(object.Options{Dir: t.TempDir()}, j); !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
