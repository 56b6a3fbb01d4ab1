package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// failing is a step whose attempts all fail with err. Each has an effect "try/" and its key.
func failing(s *harness.Sim, c *workflow.Context, name string, err error, opts ...workflow.StepOption) error {
	_, failed := workflow.Step(c, name, func(ctx context.Context) (int, error) {
		s.World().Do("try/"+workflow.Key(ctx), nil)
		return 0, err
	}, opts...)
	return failed
}

// tried are the times of the attempts of failing, counted from a time.
func tried(s *harness.Sim, from time.Time) (at []time.Duration) {
	for _, e := range s.World().Log() {
		at = append(at, e.Time.Sub(from))
	}
	return at
}

// outcomeOf tells how a step has failed, as a text.
func outcomeOf(err error) string {
	var e *workflow.StepError
	if !errors.As(err, &e) {
		return fmt.Sprintf("no StepError: %v", err)
	}
	return fmt.Sprintf("%s: %s after %d, panicked %v, timed out %v", e.Step, e.Text, e.Attempts, e.Panicked, errors.Is(err, workflow.ErrTimeout))
}

// The attempts at a step that fails are counted over crashes, and none is earlier than its
// entry says. Waits of 500 ms are in memory and those of 10 s suspend the run.
// Case WF5.
func TestCrashFailedAttempts(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		backoff := jobs.Exponential(500*time.Millisecond, time.Hour).WithFactor(20)
		w := workflow.New[int, string]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 4, Backoff: backoff}})
		w.Func(func(c *workflow.Context, _ int) (string, error) { return outcomeOf(failing(s, c, "a", errNo)), nil })
		s.Host(w)
		began := s.Now()
		start(s, w, "1", 7)
		out, err := ends(s, w, "1")
		s.Always("four attempts", err == nil && out == "a: no after 4, panicked false, timed out false", out, err)
		entries := entriesOf(s, w, "1")
		s.Always("three tries and a step", len(entries) == 4, entries)
		for i, e := range entries[:3] {
			wait := []time.Duration{500 * time.Millisecond, 10 * time.Second, 200 * time.Second}[i]
			s.Always("the try", e.Kind == "try" && e.Attempts == i+1 && e.Until.Sub(e.At) == wait && e.Error == "no", e)
			for _, at := range tried(s, time.Time{}) {
				at := time.Time{}.Add(at)
				s.Always("no attempt while the step waits", !at.After(e.At) || !at.Before(e.Until), at, e)
			}
		}
		s.Always("the step", entries[3].Kind == "step" && entries[3].Attempts == 4, entries[3])
		s.Finally("the attempts", func() error {
			at := tried(s, began)
			if n := len(at); n < 4 || n > 4+s.Crashes() {
				return fmt.Errorf("%d attempts with %d crashes: %v", n, s.Crashes(), at)
			}
			return nil
		})
	}, promises...)
}

// A step that has failed twice before and then succeeds goes on with its value.
func TestCrashLastAttempt(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			v, err := workflow.Step(c, "a", func(ctx context.Context) (string, error) {
				s.World().Do("try/"+workflow.Key(ctx), nil)
				if s.World().Count("try/"+workflow.Key(ctx)) < 3 {
					return "", errNo
				}
				return "value", nil
			})
			if err != nil {
				return "", err
			}
			_, err = do(s, c, "b")
			return v, err
		})
		s.Host(w)
		start(s, w, "1", 7)
		out, err := ends(s, w, "1")
		s.Always("the value of the third attempt", err == nil && out == "value", out, err)
		happened(s, "order/1", "b")
	}, promises...)
}

// attempt is a case of TestAttempts.
type attempt struct {
	name string
	step func(s *harness.Sim, c *workflow.Context) error
	want string
	at   []time.Duration // of the attempts
	ends time.Duration
}

// The attempts are made at exact times, and end as the options and the error say.
func TestAttempts(t *testing.T) {
	every10 := func(r jobs.Retry) workflow.StepOption {
		r.Backoff = jobs.Constant(10 * time.Second)
		return workflow.Retry(r)
	}
	fails := func(err error, opts ...workflow.StepOption) func(s *harness.Sim, c *workflow.Context) error {
		return func(s *harness.Sim, c *workflow.Context) error { return failing(s, c, "a", err, opts...) }
	}
	acts := func(act func(ctx context.Context, s *harness.Sim) error, opts ...workflow.StepOption) func(s *harness.Sim, c *workflow.Context) error {
		return func(s *harness.Sim, c *workflow.Context) error {
			_, err := workflow.Step(c, "a", func(ctx context.Context) (int, error) {
				s.World().Do("try/"+workflow.Key(ctx), nil)
				return 0, act(ctx, s)
			}, opts...)
			return err
		}
	}
	sec := func(n ...float64) (at []time.Duration) {
		for _, n := range n {
			at = append(at, time.Duration(n*float64(time.Second)))
		}
		return at
	}
	const once, twice, thrice = "a: no after 1, panicked false, timed out false", "a: no after 2, panicked false, timed out false", "a: no after 3, panicked false, timed out false"
	for _, a := range []attempt{
		{"the default", fails(errNo), thrice, sec(0, 1, 3), 3 * time.Second},
		{"one attempt", fails(errNo, every10(jobs.Retry{MaxAttempts: 1})), once, sec(0), 0},
		{"no number of attempts", fails(errNo, every10(jobs.Retry{})), once, sec(0), 0},
		{"MaxElapsed reached", fails(errNo, every10(jobs.Retry{MaxAttempts: 9, MaxElapsed: 20 * time.Second})), thrice, sec(0, 10, 20), 20 * time.Second},
		{"MaxElapsed passed", fails(errNo, every10(jobs.Retry{MaxAttempts: 9, MaxElapsed: 20*time.Second - 1})), twice, sec(0, 10), 10 * time.Second},
		{"Permanent", fails(jobs.Permanent(errNo)), once, sec(0), 0},
		{"a panic", acts(func(context.Context, *harness.Sim) error { panic("oh") }, every10(jobs.Retry{MaxAttempts: 2})),
			"a: panic: oh after 2, panicked true, timed out false", sec(0, 10), 10 * time.Second},
		{"Timeout", acts(func(ctx context.Context, s *harness.Sim) error { return s.SleepContext(ctx, time.Hour) }, every10(jobs.Retry{MaxAttempts: 2}), workflow.Timeout(time.Minute)),
			"a: workflow: timed out after 2, panicked false, timed out true", sec(0, 70), 130 * time.Second},
		{"just before the Timeout", acts(func(ctx context.Context, s *harness.Sim) error { s.Sleep(time.Minute - 1); return errNo }, every10(jobs.Retry{MaxAttempts: 2}), workflow.Timeout(time.Minute)),
			twice, []time.Duration{0, 70*time.Second - 1}, 130*time.Second - 2},
		{"a step that ignores its end for less than Lease", acts(func(_ context.Context, s *harness.Sim) error { s.Sleep(89 * time.Second); return errNo }, every10(jobs.Retry{MaxAttempts: 2}), workflow.Timeout(time.Minute)),
			"a: workflow: timed out: no after 2, panicked false, timed out true", sec(0, 99), 188 * time.Second},
		{"a step that ignores its end for longer than Lease", acts(func(_ context.Context, s *harness.Sim) error { s.Sleep(time.Hour); return errNo }, every10(jobs.Retry{MaxAttempts: 2}), workflow.Timeout(time.Minute)),
			"a: workflow: timed out, and did not return after 2, panicked false, timed out true", sec(0, 100), 190 * time.Second},
		{"a step that ignores its end, and succeeds", acts(func(_ context.Context, s *harness.Sim) error { s.Sleep(89 * time.Second); return nil }, workflow.Timeout(time.Minute)),
			"no StepError: <nil>", sec(0), 89 * time.Second},
	} {
		t.Run(a.name, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				w := workflow.New[int, string]("order", workflow.Config{})
				w.Func(func(c *workflow.Context, _ int) (string, error) { return outcomeOf(a.step(s, c)), nil })
				s.Host(w)
				began := s.Now()
				start(s, w, "1", 7)
				out, err := ends(s, w, "1")
				s.Always("the outcome", err == nil && out == a.want, out, err)
				s.Always("the end", s.Now().Sub(began) == a.ends, s.Now().Sub(began))
				s.Advance(3 * time.Hour) // all steps that were given up return
				s.Always("the attempts", fmt.Sprint(tried(s, began)) == fmt.Sprint(a.at), tried(s, began))
				s.Always("late returns count for nothing", status(s, w, "1").Entries == max(len(a.at), 1), status(s, w, "1"))
			})
		})
	}
}

// A step that ignores its end is given up under crashes too, and the run goes on.
func TestCrashStepGivenUp(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Lease: 10 * time.Second})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			_, err := workflow.Step(c, "a", func(context.Context) (int, error) {
				s.Sleep(time.Hour)
				return 0, nil
			}, workflow.Timeout(5*time.Second), workflow.Retry(jobs.Retry{MaxAttempts: 2}))
			out := outcomeOf(err)
			_, err = do(s, c, "b")
			return out, err
		})
		s.Host(w)
		start(s, w, "1", 7)
		out, err := ends(s, w, "1")
		s.Always("given up", err == nil && out == "a: workflow: timed out, and did not return after 2, panicked false, timed out true", out, err)
		happened(s, "order/1", "b")
	}, promises...)
}
