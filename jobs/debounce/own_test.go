package debounce_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
)

// Proves J6: work reaches its own definition. Each flush of a page is one event of the
// second stage, also with a crash at any point.
func TestFlushAddsToItsOwnDefinition(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		s.Host(Sums)
		for i, id := range []string{"a", "b"} {
			s.OK(s.Retry(func() error {
				_, err := Sums.Add(s.Context(), s, id, i+1, debounce.EventID("e"))
				return err
			}))
		}
		s.Advance(time.Minute)
		s.Finally("two events have reached the second stage", func() error {
			st, err := Sums.Status(s.Context(), s, "all")
			s.Always("two events", err != nil || st.EventsFlushed == 2, st)
			return err
		})
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}

// A flush that a program has made by itself has no definition.
func TestFlushWithoutADefinition(t *testing.T) {
	if j := new(debounce.Flush[int, int]).Job(); j != nil {
		t.Errorf("Job is %v, want nil", j)
	}
}
