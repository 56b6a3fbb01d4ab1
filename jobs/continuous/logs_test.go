package continuous_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// logged has the hosts of a simulation write to r.
func logged(r *loglines.Recorder) harness.Option {
	return harness.HostOptions(func(o *object.Options) { o.Logger = r.Logger() })
}

// Proves J13, Case JB1: a failed execution has one line of the log. It is a warning with
// the time of the next attempt, or an error if the run is given up. A success has no
// line.
func TestFailuresAreLogged(t *testing.T) {
	var r loglines.Recorder
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour), Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Second)},
			Run: func(_ context.Context, run *continuous.Run[tally]) error {
				if run.Number == 2 {
					return errors.New("boom")
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Minute)
		s.Always("a success has no line", r.Text(slog.LevelInfo) == "", r.Text(slog.LevelInfo))
		began := s.Now()
		s.Advance(time.Hour)
		st, _ := know(s, j, "a")
		want := fmt.Sprintf("WARN execution failed class=counter object=a run=2 attempt=1 error=boom next=%s\n"+
			"ERROR run given up class=counter object=a run=2 attempt=2 error=boom reason=attempts",
			st.Meta.CreatedAt.Add(time.Hour+time.Second).Format(time.RFC3339))
		s.Always("two lines", r.Text(slog.LevelInfo) == want, "\n"+r.Text(slog.LevelInfo), "\n"+want, began)
	}, logged(&r))
}

// Proves J13, Case JB2: the stack of a panic is in the log and in the metadata, cut
// to its limit, and not in the text of the error; a success forgets it.
func TestStackOfAPanic(t *testing.T) {
	var r loglines.Recorder
	harness.Run(t, func(s *harness.Sim) {
		deep := 0
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour),
			Run: func(_ context.Context, run *continuous.Run[tally]) error {
				if deep < 2 {
					deep++
					sink(deep * deep * 100)
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		for range 2 {
			s.Advance(time.Minute)
			st, _ := know(s, j, "a")
			s.Always("the text has no stack", st.Meta.LastError == "panic: ouch", st.Meta.LastError)
			s.Always("the stack is stored", strings.Contains(st.Meta.LastStack, "logs_test.go") && len(st.Meta.LastStack) <= object.MaxStackBytes,
				len(st.Meta.LastStack), st.Meta.LastStack)
			s.Advance(time.Hour)
		}
		lines := r.From(slog.LevelInfo)
		s.Always("one line for each", len(lines) == 2, r.Text(slog.LevelInfo))
		for _, l := range lines {
			s.Always("with the stack", strings.Contains(l.Attrs["stack"], "logs_test.go") && !strings.Contains(l.Attrs["error"], "\n"), l.Attrs)
		}
		st, _ := know(s, j, "a")
		s.Always("a success forgets it", st.Meta.RunCount > 0 && st.Meta.LastStack == "", st.Meta)
	}, logged(&r))
}

// sink panics below as many frames.
func sink(depth int) {
	if depth == 0 {
		panic("ouch")
	}
	sink(depth - 1)
}

// Proves J13: a run that a crash cuts off has the line of its recovery, and no other.
func TestRecoveryIsLoggedOnce(t *testing.T) {
	var r loglines.Recorder
	harness.Run(t, func(s *harness.Sim) {
		j := ticking(s, continuous.Config[tally]{
			Schedule: jobs.Every(time.Hour),
			Run: func(ctx context.Context, run *continuous.Run[tally]) error {
				if !run.Recovering {
					s.Sleep(time.Hour)
				}
				return nil
			},
		})
		s.Host(j)
		start(s, j, "a")
		s.Advance(time.Second)
		s.Crash(harness.Kill)
		s.Restart()
		s.Advance(time.Minute)
		lines := r.From(slog.LevelInfo)
		s.Always("one line", len(lines) == 1 && lines[0].Text == "recovered" && lines[0].Attrs["cause"] == "crash", r.Text(slog.LevelInfo))
	}, logged(&r))
}
