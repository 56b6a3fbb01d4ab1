package workerpool_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves J9. Case PL14. Tasks with no retries left are given up, and the ends of
// executions are counted by class, under names of outcomes without blanks.
func TestExecutionsByClass(t *testing.T) {
	fails := func(context.Context, *workerpool.Task[string]) (string, error) { return "", errors.New("no") }
	works := func(context.Context, *workerpool.Task[string]) (string, error) { return "", nil }
	retry := jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(0)}
	bad := workerpool.New(config{Name: "bad", Retry: retry, Work: fails})
	good := workerpool.New(config{Name: "good", Retry: retry, Work: works})
	h := inMemory(t, object.Options{}, bad, good)
	for _, p := range []*pool{bad, good} {
		must(p.EnqueueBatch(ctx, h, []workerpool.Item[string]{item("a"), item("b")}))
		if err := p.Drain(ctx, h); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		class, outcome string
		want           float64
	}{{"bad", "again", 2}, {"bad", "gave_up", 2}, {"bad", "done", 0}, {"good", "done", 2}, {"good", "gave_up", 0}} {
		got := metric(t, h, "holdfast_executions_total", map[string]string{"class": c.class, "outcome": c.outcome})
		if got != c.want {
			t.Errorf("%s %s: %v, want %v", c.class, c.outcome, got, c.want)
		}
	}
}
