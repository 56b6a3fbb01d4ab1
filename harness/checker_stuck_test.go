package harness_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// unsteady is a workflow with a first step of another name in each repeat, if it is broken.
func unsteady(s *harness.Sim, broken bool) *workflow.Workflow[string, string] {
	w := workflow.New[string, string]("trip", workflow.Config{})
	calls := 0
	w.Func(func(ctx *workflow.Context, to string) (string, error) {
		name := "book"
		if calls++; broken && calls > 1 {
			name = "book again"
		}
		if _, err := workflow.Step(ctx, name, func(ctx context.Context) (string, error) {
			return to, s.World().Do(workflow.Key(ctx), nil)
		}); err != nil {
			return "", err
		}
		if err := workflow.Sleep(ctx, time.Hour); err != nil {
			return "", err
		}
		return "done", nil
	})
	return w
}

// journey runs it, and looks at nothing itself.
func journey(broken bool) harness.Scenario {
	return func(s *harness.Sim) {
		w := unsteady(s, broken)
		s.Host(w)
		s.OK(s.Retry(func() error { _, err := w.Start(s.Context(), s, "1", "Rome"); return err }))
		s.Advance(2 * time.Hour)
	}
}

// Proves F10. A run that is stuck at the end passes each other checker. NoStuck finds it, with
// the promise, the cause and the place, and the rows of the run in words.
func TestNoStuck(t *testing.T) {
	others := []harness.Option{harness.NoLostAck, harness.NoTornBatch, harness.OneAlarm, harness.NeverOrphaned, harness.RecoversWithin(time.Minute)}
	harness.Exhaust(t, journey(true), others...)
	harness.Exhaust(t, journey(false), append(others, harness.NoStuck)...)
	mustSay(t, problemOf(t, journey(true), append(others, harness.NoStuck)...),
		`NoStuck: trip/1 is stuck: `, `entry 1 of the function is step "book", the code asked for step "book again"`,
		"no job rests as stuck at the end. Holdfast itself promises F10: A run that cannot go on with this code is stuck",
		"job status", "stuck", `entry 0 step "book"`, `"Rome"`, "entry 1 sleep", "until 1h0m0s", "stretches done", "last stretch ended")
}

// A job that was stuck and has healed before the end is not stuck, nor is one that failed.
func TestNoStuckLooksAtTheEnd(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		broken, seen := true, false
		w := workflow.New[bool, string]("trip", workflow.Config{})
		w.Func(func(_ *workflow.Context, fails bool) (string, error) {
			if fails {
				return "", errors.New("no seat")
			}
			if broken {
				panic("at a loss")
			}
			return "done", nil
		})
		s.Host(w)
		s.OK(s.Retry(func() error { _, err := w.Start(s.Context(), s, "1", false); return err }))
		s.OK(s.Retry(func() error { _, err := w.Start(s.Context(), s, "2", true); return err }))
		s.OK(s.Retry(func() error {
			st, err := w.Status(s.Context(), s, "1")
			seen = st.Meta.Status == jobs.Stuck
			return err
		}))
		s.Sometimes("stuck on its way", seen)
		broken = false
		s.Advance(20 * time.Minute)
	}, harness.NoStuck)
}

// Proves F10. A job that rests as stuck with its recoveries used up is told with the reason.
func TestNoStuckTellsTheReason(t *testing.T) {
	_, err := harness.Explore(func(s *harness.Sim) {
		kills := false
		w := workflow.New[string, string]("trip", workflow.Config{})
		w.Func(func(ctx *workflow.Context, _ string) (string, error) {
			return workflow.Step(ctx, "kill", func(context.Context) (string, error) {
				kills = true // the scenario kills the process now
				s.Sleep(time.Hour)
				return "", nil
			})
		})
		s.Host(w)
		s.OK(s.Retry(func() error { _, err := w.Start(s.Context(), s, "1", ""); return err }))
		for range 2000 {
			s.Advance(time.Second)
			if kills {
				s.Crash(harness.Kill)
				kills = false
				s.Restart()
			}
		}
	}, harness.NoStuck, harness.Budget(1))
	var f *harness.Failure
	if !errors.As(err, &f) {
		t.Fatalf("%v", err)
	}
	mustSay(t, f.Problem+f.Detail, "trip/1 is stuck: ", "it waits for Resume: given up: recoveries")
}

// marked writes a byte before its JSON, so that metadata cannot be read at rest.
type marked struct{ object.JSON }

func (c marked) Encode(v any) ([]byte, error) {
	b, err := c.JSON.Encode(v)
	return append([]byte("!"), b...), err
}

func (c marked) Decode(b []byte, v any) error { return c.JSON.Decode(b[1:], v) }

// Proves F10. With a codec of the host's own the label tells.
func TestNoStuckByTheLabel(t *testing.T) {
	_, err := harness.Explore(journey(true), harness.NoStuck, harness.Budget(1), harness.HostOptions(func(o *object.Options) { o.Codec = marked{} }))
	if err == nil || !strings.Contains(err.Error(), "NoStuck: trip/1 is stuck by its label: its Status tells the cause") {
		t.Errorf("%v", err)
	}
}
