package workerpool_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Pools and time, in a simulation without crashes.

// begun returns when each attempt of a task was begun, since start.
func begun(s *harness.Sim, in string) (at []time.Duration) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, e := range s.World().Log() {
		if e.Key == "work/"+in {
			at = append(at, e.Time.Sub(start))
		}
	}
	return at
}

// Proves W6. A task with a delay or a time runs then, and not before; a past
// time is now.
func TestDelays(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := newPool(s, config{})
		s.Host(p)
		now := s.Now()
		enqueue(s, p, "delay", workerpool.Delay(90*time.Second))
		enqueue(s, p, "at", workerpool.At(now.Add(30*time.Second)))
		enqueue(s, p, "past", workerpool.At(now.Add(-time.Hour)))
		s.Advance(2 * time.Minute)
		for in, want := range map[string]time.Duration{"delay": 90 * time.Second, "at": 30 * time.Second, "past": 0} {
			if got := begun(s, in); len(got) != 1 || got[0] != want {
				s.Errorf("%s began at %v, want %v", in, got, want)
			}
		}
	})
}

// Case 8. Case 19. The wait for a retry counts from the failure, not from the
// begin, and a new task does not pull it forward.
func TestRetryCountsFromTheFailure(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := newPool(s, config{
			Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(20 * time.Second)},
			Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) {
				if t.In == "other" {
					return "", nil
				}
				s.Sleep(10 * time.Second)
				return "", errors.New("no")
			},
		})
		s.Host(p)
		enqueue(s, p, "slow")
		s.Advance(15 * time.Second)
		enqueue(s, p, "other")
		s.Advance(time.Minute)
		if got := begun(s, "slow"); len(got) != 2 || got[0] != 0 || got[1] != 30*time.Second {
			s.Errorf("attempts began at %v, want 0 and 30s", got)
		}
		if got := begun(s, "other"); len(got) != 1 || got[0] != 15*time.Second {
			s.Errorf("the other task began at %v, want 15s", got)
		}
	})
}

// Case 4. The work, the status, the dead letter and the events tell the same
// number of an attempt.
func TestAttemptsAreNumberedOnce(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		var seen []int
		p := newPool(s, config{
			Events: true, Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Second)},
			Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) {
				seen = append(seen, t.Attempt)
				return "", errors.New("no")
			},
		})
		s.Host(p)
		id := enqueue(s, p, "a")
		s.Advance(10 * time.Second)
		info := status(s, p, id)
		if len(seen) != 2 || seen[0] != 1 || seen[1] != 2 || info.Attempt != 2 || len(info.Failures) != 2 || info.Failures[1].Attempt != 2 {
			s.Errorf("the work saw %v, the status is %+v", seen, info)
		}
		var kinds string
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			events, err := h.Events(ctx, p.ID("0"), 0, 100)
			for _, e := range events {
				kinds += e.Kind + " "
			}
			return err
		}))
		if want := "start failure retry start failure exhausted "; kinds != want {
			s.Errorf("events %q, want %q", kinds, want)
		}
	})
}

// A long work keeps its lease; an orderly stop cuts it off without a cost.
func TestLongWorkAndShutdown(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := newPool(s, config{
			Lease: 3 * time.Second,
			Work: func(ctx context.Context, t *workerpool.Task[string]) (string, error) {
				for range 60 { // a minute
					s.Sleep(time.Second)
					if ctx.Err() != nil {
						return "", ctx.Err()
					}
				}
				return "done", nil
			},
		})
		s.Host(p)
		id := enqueue(s, p, "long")
		s.Advance(50 * time.Second)
		if n := attempts(s, "long"); n != 1 {
			s.Errorf("case 30: the work was begun %d times", n)
		}
		s.Shutdown()
		s.Restart()
		s.Advance(2 * time.Minute)
		info := status(s, p, id)
		if info.State != workerpool.Done || len(info.Failures) > 0 || info.Attempt > 2 {
			s.Errorf("O14: the task is %+v", info)
		}
		stats(s, p)
	})
}

// Proves W8. Case 27. An idempotency key is forgotten after its time, and not before,
// however its task ended. An ended task is kept for the time of the Retention.
func TestKeysAndTasksAreForgotten(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := newPool(s, config{
			Retention: jobs.Retention{Completed: 10 * time.Minute, Cancelled: 10 * time.Minute}, Retry: jobs.Retry{MaxAttempts: 1},
			Work: func(context.Context, *workerpool.Task[string]) (string, error) { return "", errors.New("no") },
		})
		s.Host(p)
		id := enqueue(s, p, "a") // remembered for an hour
		s.Advance(time.Second)
		if _, err := p.DiscardDead(s.Context(), s, id); err != nil {
			s.Errorf("DiscardDead: %v", err)
		}
		if info := status(s, p, id); info.State != workerpool.Cancelled {
			s.Errorf("W2: a discarded dead letter is %+v", info)
		}
		s.Advance(10 * time.Minute)
		if _, err := p.Status(s.Context(), s, id); !errors.Is(err, jobs.ErrNotFound) {
			s.Errorf("the status of a forgotten task: %v", err)
		}
		if again := enqueue(s, p, "a"); again != id {
			s.Errorf("W8: within its time the key gives task %s, want %s", again, id)
		}
		s.Advance(time.Hour)
		if again := enqueue(s, p, "a"); again == id {
			s.Errorf("case 27: the key of a task that is gone is not forgotten")
		}
		stats(s, p)
	})
}

// Case 19. OnEmpty is called when the last task has ended, and again for the next
// last task; not for the tasks before.
func TestOnEmpty(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		p := newPool(s, config{OnEmpty: func(_ context.Context, partition int) error {
			s.World().Do("empty", nil)
			return nil
		}})
		s.Host(p)
		s.OK(s.Retry(func() error { return p.Pause(s.Context(), s) }))
		enqueue(s, p, "a", workerpool.Key("k"))
		enqueue(s, p, "b", workerpool.Key("k"))
		s.OK(s.Retry(func() error { return p.Resume(s.Context(), s) }))
		finally(s, func() {
			if n := s.World().Count("empty"); n < 1 || n > 1+s.Crashes() {
				s.Errorf("OnEmpty was called %d times with %d crashes", n, s.Crashes())
			}
		})
	})
}

// Proves W5. A refused task is tried again and ends as a dead letter; a worker
// learns by his heartbeat that the task was cancelled.
func TestNackAndCancelledClaims(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := workerpool.New(config{Name: "pool", Concurrency: 2, Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Second)}})
		s.Host(p)
		ctx := s.Context()
		id := enqueue(s, p, "a")
		for n := 1; n <= 2; n++ {
			got := must(p.Claim(ctx, s, 1, time.Minute))
			if len(got) != 1 || got[0].Task.Attempt != n {
				s.Fatalf("claim %d: %+v", n, got)
			}
			s.Advance(40 * time.Second)
			lease := must(p.Heartbeat(ctx, s, got[0].Lease))
			if want := s.Now().Add(time.Minute); !lease.Until.Equal(want) || lease.Cancelling {
				s.Errorf("the lease is %+v, want until %v", lease, want)
			}
			s.Advance(40 * time.Second)
			s.OK(p.Nack(ctx, s, lease, errors.New("no")))
			if err := p.Nack(ctx, s, lease, nil); !errors.Is(err, jobs.ErrStaleExecution) {
				s.Errorf("a second Nack: %v", err)
			}
			s.Advance(2 * time.Second)
		}
		expect(s, p, id, workerpool.Dead)

		other := enqueue(s, p, "b")
		enqueue(s, p, "c")
		enqueue(s, p, "d")
		got := must(p.Claim(ctx, s, 9, 0))
		if len(got) != crashLimit {
			s.Fatalf("W3: claimed %d, the pool allows %d", len(got), crashLimit)
		}
		if state := must(p.Cancel(ctx, s, other)); state != workerpool.Running {
			s.Errorf("Cancel says %s", state)
		}
		lease := must(p.Heartbeat(ctx, s, got[0].Lease))
		if !lease.Cancelling {
			s.Errorf("the worker is not told: %+v", lease)
		}
		s.OK(p.Nack(ctx, s, lease, errors.New("as you wish")))
		expect(s, p, other, workerpool.Cancelled)
		stats(s, p)
	})
}

// A hook that fails is called again; replaying the task before that asks for it
// once more, and no call is left over.
func TestReplayBeforeTheHookWasTold(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		p := newPool(s, config{
			Retry: jobs.Retry{MaxAttempts: 1},
			Work:  func(context.Context, *workerpool.Task[string]) (string, error) { return "", errors.New("no") },
			OnDead: func(context.Context, workerpool.DeadLetter[string]) error {
				s.World().Do("told", nil)
				if s.World().Count("told") < 4 {
					return errors.New("not now")
				}
				return nil
			},
		})
		s.Host(p)
		id := enqueue(s, p, "a")
		s.Advance(100 * time.Millisecond)
		for range 3 {
			must(p.Replay(s.Context(), s, id))
			s.Advance(100 * time.Millisecond)
		}
		s.Advance(time.Hour)
		if n := s.World().Count("told"); n < 4 || n > 7 {
			s.Errorf("the hook was called %d times", n)
		}
		if o, err := s.Store().Find(p.ID("0")); err != nil {
			s.Errorf("%v", err)
		} else if _, armed, _ := s.Store().Alarm(o); armed {
			s.Errorf("an idle pool has an alarm")
		}
		expect(s, p, id, workerpool.Dead)
	})
}
