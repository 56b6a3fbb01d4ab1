package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// crowded is a caller whose first calls find the mailbox of the breaker full.
type crowded struct {
	object.Caller
	left *int
	err  error
}

func (c crowded) Invoke(ctx context.Context, r *object.Request) error {
	if *c.left > 0 {
		*c.left--
		return fmt.Errorf("bank/eu: %w", c.err)
	}
	return c.Caller.Invoke(ctx, r)
}

// Proves K3. A call that cannot ask the breaker, because too many wait for it, has not run, and its
// error makes a job wait for 1 to 1.5 s; another error of the call makes it wait for none.
func TestBusyBreaker(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		b := breaker.New(breaker.Config{Name: "bank"})
		type desk struct{ st *object.State }
		class := object.Define("desk", func(_ context.Context, st *object.State) (*desk, error) { return &desk{st}, nil })
		ask := object.Handle(class, "ask", func(d *desk, ctx context.Context, refused error) (waits []time.Duration, _ error) {
			for range 20 {
				left := 1
				err := b.Do(ctx, crowded{d.st, &left, refused}, "eu", func(context.Context) error {
					s.Errorf("K3: the call has run")
					return nil
				})
				s.Always("the error", errors.Is(err, refused) && !errors.Is(err, breaker.ErrOpen) && object.Retryable(err) == object.Retryable(refused), err)
				if d, ok := engine.SnoozeDelay(err); ok {
					waits = append(waits, d)
				}
			}
			return waits, nil
		})
		s.Host(b, class)
		waits, err := ask.Call(s.Context(), s, "d", object.ErrOverloaded)
		s.OK(err)
		s.Always("each waits", len(waits) == 20, waits)
		for i, d := range waits { // sixteen in a row differ
			want := time.Second + time.Duration((i+1)%16)*31_250*time.Microsecond
			s.Always("the wait", d == want, d, " is not ", want)
		}
		waits, err = ask.Call(s.Context(), s, "d", object.ErrReset)
		s.Always("no wait after another error", err == nil && len(waits) == 0, waits, err)
	})
}

// mute is a caller whose second call finds the mailbox of the breaker full: that of an end.
type mute struct {
	object.Caller
	calls int
}

func (m *mute) Invoke(ctx context.Context, r *object.Request) error {
	if m.calls++; m.calls == 2 {
		return fmt.Errorf("bank/eu: %w", object.ErrOverloaded)
	}
	return m.Caller.Invoke(ctx, r)
}

// Proves K1. The end of a call that finds the mailbox full counts for nothing, and the error is that of
// the call. A probe with such an end is one that hangs: OpenFor later, and not before, the breaker
// opens again.
func TestEndThatCannotBeTold(t *testing.T) {
	run(t, breaker.Config{Failures: 1, OpenFor: time.Minute}, func(s *harness.Sim, b *breaker.Breaker) {
		err := b.Do(s.Context(), &mute{Caller: s}, "eu", func(context.Context) error { return errDown })
		s.Always("the error of the call", err == errDown, err)
		is(s, b, breaker.Closed)
		fail(s, b, 1)
		s.Advance(time.Minute)
		err = b.Do(s.Context(), &mute{Caller: s}, "eu", func(context.Context) error { return nil }) // the probe
		s.Always("the error of the probe", err == nil, err)
		s.Advance(time.Minute - 1)
		refused(s, b)
		is(s, b, breaker.HalfOpen)
		s.Advance(1)
		refused(s, b)
		is(s, b, breaker.Open)
		s.Advance(time.Minute)
		goes(s, b)
		is(s, b, breaker.Closed)
	})
}

// Proves K3. A task that cannot ask the breaker waits at no attempt.
func TestTaskBehindABusyBreaker(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		b := breaker.New(breaker.Config{Name: "bank"})
		left := 3
		pool := workerpool.New(workerpool.Config[string, int]{
			Name: "transfers", Retry: jobs.Retry{MaxAttempts: 1},
			Work: func(ctx context.Context, t *workerpool.Task[string]) (int, error) {
				return t.Attempt, b.Do(ctx, crowded{t, &left, object.ErrOverloaded}, "eu", func(context.Context) error {
					s.World().Do("call", nil)
					return nil
				})
			},
		})
		s.Host(b, pool)
		task, err := pool.Enqueue(s.Context(), s, "x")
		s.OK(err)
		s.Advance(2900 * time.Millisecond)
		s.Always("it waits for 1 s at least, three times", s.World().Count("call") == 0)
		s.Advance(10 * time.Second)
		st, err := pool.Status(s.Context(), s, task.ID)
		s.Always("done at the first attempt", err == nil && st.State == workerpool.Done && st.Result == 1 && s.World().Count("call") == 1, st, err)
	})
}
