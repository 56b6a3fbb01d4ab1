package workerpool_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/crashes"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// crawl visits a path, and submits the rest of it as a further task. The name crawl
// inside of Work would be an initialization cycle.
var crawl = workerpool.New(workerpool.Config[string, int]{
	Name: "crawl", Concurrency: 2,
	Work: func(ctx context.Context, t *workerpool.Task[string]) (int, error) {
		_, rest, more := strings.Cut(t.In, "/")
		if more {
			if _, err := t.Pool().Enqueue(ctx, t, rest, workerpool.Idempotent(t.OutsideKey, time.Hour)); err != nil {
				return 0, err
			}
		}
		return len(t.In), nil
	},
})

func ExampleTask_Pool() {
	withHost(func(h *object.Host) {
		first := must(crawl.Enqueue(ctx, h, "usr/local"))
		fmt.Println(crawl.Wait(ctx, h, first.ID))
		fmt.Println(crawl.Wait(ctx, h, workerpool.TaskID{Number: 2})) // the further task
	}, crawl)
	// Output:
	// 9 <nil>
	// 5 <nil>
}

// Proves J6: work reaches its own definition. Each task submits one further task of its
// own pool, once, whatever crashes.
func TestTaskSubmitsToItsOwnPool(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		s.Host(crawl)
		s.OK(s.Retry(func() error {
			_, err := crawl.Enqueue(s.Context(), s, "a/b/c", workerpool.Idempotent("a/b/c", time.Hour))
			return err
		}))
		s.Advance(time.Minute)
		s.Finally("three tasks are done", func() error {
			st, err := crawl.Stats(s.Context(), s)
			s.Always("three tasks are done", err != nil || st.Submitted == 3 && st.Done == 3, st)
			return err
		})
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}

// The pool of a task is the pool itself, for a claimed task too.
func TestTaskKnowsItsPool(t *testing.T) {
	h := open(t, t.TempDir(), parcels)
	must(parcels.Enqueue(ctx, h, "to Lyon"))
	claim := must(parcels.Claim(ctx, h, 1, 0))[0]
	if p, ok := claim.Task.Pool().(*workerpool.Pool[string, string]); !ok || p != parcels {
		t.Errorf("the pool is %v, want parcels", claim.Task.Pool())
	}
	if p := new(workerpool.Task[string]).Pool(); p != nil {
		t.Errorf("the pool of a task made by hand is %v, want nil", p)
	}
}
