package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// opens makes calls that fail until the breaker is seen open, and returns until when.
func opens(s *harness.Sim, b *breaker.Breaker) (until time.Time) {
	for range 20 {
		_ = s.Retry(func() error {
			err := b.Do(s.Context(), s, "eu", func(context.Context) error { return errNo })
			if errors.Is(err, errNo) || errors.Is(err, breaker.ErrOpen) {
				return nil
			}
			return err
		})
		var st breaker.Status
		s.OK(s.Retry(func() (err error) {
			st, err = b.Status(s.Context(), s, "eu")
			return err
		}))
		if st.State == breaker.Open {
			return st.Until
		}
	}
	s.Fatalf("the breaker does not open")
	return until
}

// Proves K3, F1. Steps behind an open breaker wait on disk, at no attempt and with no entry, until
// it may let them through, and then run once each.
// Case WF23.
func TestCrashThrough(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		b := breaker.New(breaker.Config{Name: "bank", Failures: 2, OpenFor: time.Hour})
		w := workflow.New[int, string]("order", workflow.Config{})
		var first time.Time
		w.Func(func(c *workflow.Context, n int) (string, error) {
			return workflow.Step(c, "charge", func(ctx context.Context) (string, error) {
				if first.IsZero() {
					first = s.Now()
				}
				s.World().Do(workflow.Key(ctx), nil)
				return "paid", nil
			}, workflow.Through(b, "eu"), workflow.Retry(jobs.Retry{MaxAttempts: 1}))
		})
		s.Host(w, b)
		until := opens(s, b)
		start(s, w, "1", 7)
		s.Advance(30 * time.Minute)
		st := status(s, w, "1")
		s.Always("waits for the breaker", st.Meta.Status == jobs.Running && st.Entries == 0 && len(st.Waits) == 1 &&
			st.Why == "wf-breaker" && st.Waits[0].Kind == "breaker" && st.Waits[0].Name == "charge" && !st.Due.Before(until), st, until)
		s.Advance(2 * time.Hour)
		out, err := ends(s, w, "1")
		s.Always("completed", err == nil && out == "paid", out, err)
		s.Finally("behind the outage", func() error {
			if first.Before(until) {
				return fmt.Errorf("the step ran at %s, before %s", first, until)
			}
			return nil
		})
	}, promises...)
}

// Proves K3. An outage of many probes fills no history, and the retries of the step are all there
// behind it. A value that cannot be encoded, and a Permanent error, open no breaker.
func TestThroughALongOutage(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		b := breaker.New(breaker.Config{Name: "bank", Failures: 1, OpenFor: time.Minute})
		back := s.Now().Add(2*time.Hour + 30*time.Second)
		calls := 0
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			return workflow.Step(c, "charge", func(ctx context.Context) (string, error) {
				calls++
				if s.Now().Before(back) {
					return "", errNo
				}
				return "paid", nil
			}, workflow.Through(b, "eu"), workflow.Retry(jobs.Retry{MaxAttempts: 1000, MaxElapsed: 3 * time.Hour, Backoff: jobs.Constant(time.Second)}))
		})
		bad := workflow.New[int, string]("bad", workflow.Config{})
		bad.Func(func(c *workflow.Context, n int) (string, error) {
			_, err := workflow.Step(c, "charge", func(ctx context.Context) (func(), error) { return func() {}, nil }, workflow.Through(b, "us"))
			return "", err
		})
		none := workflow.New[int, string]("none", workflow.Config{})
		none.Func(func(c *workflow.Context, n int) (string, error) {
			_, err := workflow.Step(c, "charge", func(ctx context.Context) (int, error) { return 1, nil }, workflow.Through(nil, "us"))
			return "", err
		})
		s.Host(w, bad, none, b)
		start(s, w, "1", 7)
		start(s, bad, "1", 7)
		start(s, none, "1", 7)
		s.Advance(3 * time.Hour)
		out, err := ends(s, w, "1")
		s.Always("completed", err == nil && out == "paid", out, err)
		s.Always("one attempt a probe", calls > 100 && calls < 140, calls)
		_, err = ends(s, bad, "1")
		s.Always("failed at once", errors.Is(err, workflow.ErrFailed) && strings.Contains(err.Error(), "encode the value of the step"), err)
		st, err := b.Status(s.Context(), s, "us")
		s.Always("the breaker is closed", err == nil && st.State == breaker.Closed && st.Failures == 0, st, err)
		_, err = ends(s, none, "1")
		s.Always("no breaker", errors.Is(err, workflow.ErrFailed) && strings.Contains(err.Error(), "Through has no breaker"), err)
	})
}

// Proves K3, F8. A Cancel reaches a step behind an open breaker. Snooze in a step waits at no
// attempt too; with a panic or a timeout it is a failure.
func TestCrashSnoozedSteps(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		b := breaker.New(breaker.Config{Name: "bank", Failures: 2, OpenFor: time.Hour})
		ready := s.Now().Add(10 * time.Minute)
		once := workflow.Retry(jobs.Retry{MaxAttempts: 1})
		w := workflow.New[string, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, in string) (string, error) {
			switch in {
			case "cancelled":
				return workflow.Step(c, "charge", func(ctx context.Context) (string, error) {
					s.World().Do("charged", nil)
					return "", nil
				}, workflow.Through(b, "eu"))
			case "panics":
				return workflow.Step(c, "polls", func(ctx context.Context) (string, error) { panic(jobs.Snooze(time.Minute)) }, once)
			}
			return workflow.Step(c, "polls", func(ctx context.Context) (string, error) {
				if s.Now().Before(ready) {
					return "", jobs.Snooze(time.Minute)
				}
				return "there", nil
			}, once)
		})
		s.Host(w, b)
		opens(s, b)
		for _, id := range []string{"cancelled", "polls", "panics"} {
			start(s, w, id, id)
		}
		s.Advance(time.Minute)
		s.OK(s.Retry(func() error { return w.Cancel(s.Context(), s, "cancelled", "no more") }))
		s.Advance(2 * time.Hour)
		_, err := ends(s, w, "cancelled")
		s.Always("cancelled", errors.Is(err, workflow.ErrCancelled) && s.World().Count("charged") == 0, err)
		out, err := ends(s, w, "polls")
		st := status(s, w, "polls")
		s.Always("polled", err == nil && out == "there" && st.Entries == 1, out, err, st)
		_, err = ends(s, w, "panics")
		s.Always("panicked", errors.Is(err, workflow.ErrFailed), err)
	}, promises...)
}
