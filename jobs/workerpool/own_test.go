package workerpool_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// Proves J6: work reaches its own definition. Each task submits one further task of its
// own pool, once, also with a crash at any point.
func TestTaskSubmitsToItsOwnPool(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		s.Host(Crawl)
		s.OK(s.Retry(func() error {
			_, err := Crawl.Enqueue(s.Context(), s, "a/b/c", workerpool.Idempotent("a/b/c", time.Hour))
			return err
		}))
		s.Advance(time.Minute)
		s.Finally("three tasks are done", func() error {
			st, err := Crawl.Stats(s.Context(), s)
			s.Always("three tasks are done", err != nil || st.Submitted == 3 && st.Done == 3, st)
			return err
		})
	}, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)
}

// Proves J6: the pool of a task is the pool itself, for a claimed task too.
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
