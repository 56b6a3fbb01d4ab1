package harness_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
)

// What a failure shows of a job are words: its status, its runs, its open
// execution and its alarm, before the crash, after it and at the end.
func TestFailureShowsAJobInWords(t *testing.T) {
	said := problemOf(t, func(s *harness.Sim) {
		reports := continuous.New(continuous.Config[int]{Name: "report", Schedule: jobs.Every(time.Hour), Run: func(_ context.Context, run *continuous.Run[int]) error {
			s.World().Do("mail", nil)
			run.State++
			return nil
		}})
		s.Host(reports)
		s.OK(s.Retry(func() error { _, err := reports.Start(s.Context(), s, "daily", 0); return err }))
		s.Advance(time.Minute)
	}, harness.NoDoubleEffect("mail"))
	mustSay(t, said, "job status", "executing", "running", "attempts", "execution began", "0s, opening 1",
		"runs done", "last recovery", "open execution", "since opening 1", "alarm", "at 1h0m0.1s")
	for line := range strings.Lines(said) {
		if n := len(strings.TrimSpace(line)); n > 92 && !strings.Contains(line, "harness.Replay(") {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
