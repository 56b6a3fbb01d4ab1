package workerpool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves W6. Case PL9. A delayed task does not begin in a turn that is made a
// millisecond, or a nanosecond, before its time, and begins at it.
func TestDelaysAreExact(t *testing.T) {
	for _, before := range []time.Duration{500 * time.Millisecond, time.Millisecond, 1} {
		harness.Run(t, func(s *harness.Sim) {
			p := newPool(s, config{})
			s.Host(p)
			enqueue(s, p, "delayed", workerpool.Delay(time.Minute))
			s.Advance(time.Minute - before)
			enqueue(s, p, "other")
			s.Advance(0)
			if got := begun(s, "delayed"); len(got) != 0 {
				s.Errorf("%v before its time it began at %v", before, got)
			}
			s.Advance(before)
			if got := begun(s, "delayed"); len(got) != 1 || got[0] != time.Minute {
				s.Errorf("it began at %v, want 1m", got)
			}
		})
	}
}

// Proves W6. Case PL10. A task that fails often keeps its first and its last 50 failures,
// and all of them up to 100.
func TestFirstAndLastFailuresAreKept(t *testing.T) {
	for _, attempts := range []int{100, 101, 130} {
		p := workerpool.New(config{
			Name: "failures", Retry: jobs.Retry{MaxAttempts: attempts, Backoff: jobs.Constant(0)},
			Work: func(_ context.Context, t *workerpool.Task[string]) (string, error) {
				return "", fmt.Errorf("try %d", t.Attempt)
			},
		})
		h := inMemory(t, object.Options{}, p)
		ref := must(p.Enqueue(ctx, h, "a"))
		if _, err := p.Wait(ctx, h, ref.ID); !errors.Is(err, workerpool.ErrFailed) {
			t.Fatal(err)
		}
		var got, want []int
		for _, f := range must(p.Status(ctx, h, ref.ID)).Failures {
			got = append(got, f.Attempt)
		}
		for i := 1; i <= attempts; i++ {
			if i <= 50 || i > attempts-50 {
				want = append(want, i)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %d failures these are kept: %v", attempts, got)
		}
	}
}

// Proves W3. Case PL12. Exactly Concurrency tasks run at a time, and when one ends, one
// begins.
func TestConcurrencyIsExact(t *testing.T) {
	const limit = 3
	began, free := make(chan struct{}, 100), make(chan struct{})
	p := workerpool.New(config{Name: "exact", Concurrency: limit, Work: func(context.Context, *workerpool.Task[string]) (string, error) {
		began <- struct{}{}
		<-free
		return "", nil
	}})
	h := inMemory(t, object.Options{}, p)
	freeAll := sync.OnceFunc(func() { close(free) })
	defer freeAll()
	for range 3 * limit {
		must(p.Enqueue(ctx, h, "a"))
	}
	for range limit {
		<-began
	}
	for done := range uint64(2 * limit) {
		if s := must(p.Stats(ctx, h)); s.Running != limit || s.Pending != 2*limit-done {
			t.Fatalf("after %d: %+v, want %d to run", done, s, limit)
		}
		free <- struct{}{}
		<-began
	}
	freeAll()
	if err := p.Drain(ctx, h); err != nil {
		t.Error(err)
	}
}
