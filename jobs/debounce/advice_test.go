package debounce_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves J14, J13, D3: a flush that is snoozed shows the same events again, a
// permanent error gives it up, and a generation that is dropped has one line.
func TestAdviceForFlushes(t *testing.T) {
	var r loglines.Recorder
	harness.Run(t, func(s *harness.Sim) {
		var seen []flush
		job := debounce.New(config{
			Name: "hooks", Quiet: time.Minute, Exhausted: debounce.Drop, Retry: jobs.Retry{MaxAttempts: 5},
			Flush: func(_ context.Context, f *flush) error {
				if seen = append(seen, *f); len(seen) == 1 {
					return jobs.Snooze(time.Hour)
				}
				return jobs.Permanent(errors.New("boom"))
			},
		})
		s.Host(job)
		_, err := job.Add(s.Context(), s, name, event{ID: "a"})
		s.OK(err)
		s.Advance(2 * time.Minute)
		_, err = job.Add(s.Context(), s, name, event{ID: "b"})
		s.OK(err)
		s.Advance(time.Hour)
		s.Always("the same events, twice", len(seen) >= 2 && seen[0].Count == 1 && seen[1].Count == 1 && seen[1].Attempt == 1 && seen[0].Key == seen[1].Key, seen)
		st, err := job.Status(s.Context(), s, name)
		s.OK(err)
		s.Always("given up, and the next", st.Flushed == 2 && st.EventsDropped == 2, st)
		lines := r.From(slog.LevelInfo)
		s.Always("a line each", len(lines) == 2 && lines[0].Level == slog.LevelError && lines[0].Attrs["reason"] == "permanent", r.Text(slog.LevelInfo))
	}, harness.HostOptions(func(o *object.Options) { o.Logger = r.Logger() }))
}
