package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

var checks = []harness.Option{harness.NoLostAck, harness.NoTornBatch, harness.OneAlarm, harness.NeverOrphaned}

// Proves K2. An open breaker that was seen is open after each crash, until its time; then it
// is half open, with no call; and no crash leaves a state between two.
func TestCrashOpen(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		b := breaker.New(breaker.Config{Name: "bank", Failures: 2, OpenFor: time.Hour})
		s.Host(b)
		until := opened(s, b)
		s.Advance(until.Add(-1).Sub(s.Now()))
		st := stateSeen(s, b)
		s.Always("open", st.State == breaker.Open && st.Until.Equal(until), st)
		s.Advance(1)
		st = stateSeen(s, b)
		s.Always("half open", st.State == breaker.HalfOpen && !st.Since.Before(until), st)
		s.OK(s.Retry(func() error {
			return b.Do(s.Context(), s, "eu", func(context.Context) error { return nil })
		}))
		s.Eventually(time.Minute, "closed", func() bool { // a crash between the call and its count leaves the probe to another
			_, _ = try(s, b, nil)
			return stateSeen(s, b).State == breaker.Closed
		})
	}, checks...)
}

// opened makes calls that fail until the breaker is seen open.
func opened(s *harness.Sim, b *breaker.Breaker) time.Time {
	for range 20 {
		_, _ = try(s, b, errDown)
		if st := stateSeen(s, b); st.State == breaker.Open {
			return st.Until
		}
	}
	s.Fatalf("the breaker does not open")
	return time.Time{}
}

// stateSeen asks for the state until there is an answer.
func stateSeen(s *harness.Sim, b *breaker.Breaker) (st breaker.Status) {
	s.OK(s.Retry(func() (err error) {
		st, err = b.Status(s.Context(), s, "eu")
		return err
	}))
	return st
}

// Proves K3. Tasks behind an open breaker wait at no attempt, and all end when the
// dependency is back.
func TestCrashTasksBehindIt(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		b := breaker.New(breaker.Config{Name: "bank", Failures: 1, OpenFor: time.Minute})
		back := s.Now().Add(50 * time.Second)
		pool := workerpool.New(workerpool.Config[int, int]{
			Name: "charge", Concurrency: 2, Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Exponential(time.Second, time.Second)},
			Work: func(ctx context.Context, t *workerpool.Task[int]) (int, error) {
				return t.In, b.Do(ctx, t, "eu", func(context.Context) error {
					if s.Now().Before(back) {
						return errDown
					}
					s.World().Do(t.OutsideKey, nil)
					return nil
				})
			},
		})
		s.Host(b, pool)
		for i := range 3 {
			s.OK(s.Retry(func() error {
				_, err := pool.Enqueue(s.Context(), s, i, workerpool.Unique(fmt.Sprint(i)))
				return err
			}))
		}
		s.Advance(time.Hour)
		if s.Crashes() > 2 { // a task may be held back (A8)
			s.Advance(3 * time.Hour)
		}
		s.OK(s.Retry(func() error {
			dead, err := pool.DeadLetters(s.Context(), s, workerpool.TaskID{}, 10)
			s.Always("no dead letter", len(dead) == 0, dead)
			return err
		}))
		s.Finally("each was done", func() error {
			done := map[string]bool{}
			for _, e := range s.World().Log() {
				done[e.Key] = true
			}
			if len(done) != 3 {
				return errors.New("not three tasks were done")
			}
			return nil
		})
	}, append(checks, crashes.Budget(200))...)
}

// Proves K3. A message whose handler meets an open breaker waits in its queue, at no attempt.
func TestMessageBehindIt(t *testing.T) {
	run(t, breaker.Config{Failures: 1, OpenFor: time.Hour}, func(s *harness.Sim, b *breaker.Breaker) {
		fail(s, b, 1)
		class := object.Define("shop", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
		pay := object.Handle(class, "pay", func(st *object.State, ctx context.Context, n int) (int, error) {
			return n, b.Do(ctx, st, "eu", func(context.Context) error {
				s.World().Do("paid", nil)
				return st.Storage().Put(ctx, "paid", n)
			})
		}, object.Sent(func(int) int { return 0 }))
		order := object.Handle(class, "order", func(st *object.State, ctx context.Context, n int) (int, error) {
			return 0, pay.Send(ctx, st, "till", n)
		})
		s.Shutdown()
		s.Host(b, class)
		s.Must(order.Call(s.Context(), s, "web", 7))
		s.Advance(time.Hour - time.Second)
		s.Always("it waits", s.World().Count("paid") == 0)
		s.Advance(time.Minute)
		s.Always("it was paid", s.World().Count("paid") == 1)
	})
}
