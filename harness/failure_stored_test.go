package harness_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// A failure shows a job in words: its status, its runs, its open execution and its
// alarm, before the crash, after it and at the end.
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

// A failure shows the rows of a workflow in words: its history, its signals, Vars and children,
// each in its line, with times as in the timeline. The engine's runs are its stretches.
func TestFailureShowsAWorkflowInWords(t *testing.T) {
	boarded, late := workflow.NewSignal[string]("boarded"), workflow.NewSignal[string]("late")
	progress := workflow.NewVar[string]("progress")
	said := problemOf(t, func(s *harness.Sim) {
		leg := workflow.New[string, string]("leg", workflow.Config{})
		leg.Func(func(ctx *workflow.Context, to string) (string, error) { return to, workflow.Sleep(ctx, 24*time.Hour) })
		trips := workflow.New[string, string]("trip", workflow.Config{Signals: workflow.Signals{boarded, late}})
		trips.Func(func(ctx *workflow.Context, to string) (string, error) {
			if _, err := workflow.Step(ctx, "pay", func(context.Context) (string, error) { return "paid", s.World().Do("pay", nil) }); err != nil {
				return "", err
			}
			progress.Set(ctx, "booked")
			if _, err := boarded.Wait(ctx, time.Hour); err != nil {
				return "", err
			}
			return workflow.Child(ctx, leg, ctx.ID()+"-1", to)
		})
		s.Host(trips, leg)
		s.OK(s.Retry(func() error { _, err := trips.Start(s.Context(), s, "1", "Rome"); return err }))
		s.Advance(time.Minute)
		for name, signal := range []*workflow.Signal[string]{late, boarded} {
			s.OK(s.Retry(func() error {
				return signal.Send(s.Context(), s, trips, "1", "seat 4", object.Idempotent(fmt.Sprint(name), 0))
			}))
		}
		s.Advance(time.Minute)
	}, harness.NoDoubleEffect("pay"))
	mustSay(t, said, "child of entry 3", "leg/1-1", `entry 0 step "pay"`, `"paid"`, `entry 1 wait "boarded"`, "until 1h0m",
		`entry 2 signal "boarded"`, `"seat 4"`, `entry 3 child "leg/1-1"`, "recorded", `signal 0 "late"`, `var "progress"`, `"booked"`,
		"stretches done", "last stretch ended")
	for _, word := range []string{"runs done", "last success", `\x00`} {
		if strings.Contains(said, word) {
			t.Errorf("it says %s:\n%s", word, said)
		}
	}
}
