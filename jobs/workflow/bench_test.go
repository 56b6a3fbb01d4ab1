package workflow_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

func openBench(b *testing.B, defs ...object.Definition) *object.Host {
	b.Helper()
	h, err := object.Open(object.Options{Dir: b.TempDir()}, defs...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { h.Shutdown(context.Background()) })
	return h
}

// stepping is a workflow of n empty steps.
func stepping(c workflow.Config) *workflow.Workflow[int, int] {
	w := workflow.New[int, int]("steps", c)
	w.Func(func(c *workflow.Context, n int) (int, error) {
		for i := range n {
			if _, err := workflow.Step(c, "step", func(context.Context) (int, error) { return i, nil }); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	return w
}

// BenchmarkSteps is the cost of a step: a commit, and what it allocates.
func BenchmarkSteps(b *testing.B) {
	w := stepping(workflow.Config{MaxEntries: 1 << 30, MaxBytes: 1 << 40})
	h := openBench(b, w)
	b.ReportAllocs()
	ctx := context.Background()
	if _, err := w.Start(ctx, h, "1", b.N); err != nil {
		b.Fatal(err)
	}
	if _, err := w.Wait(ctx, h, "1"); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRuns is a run of three steps from its start to its output, 256 at a time.
func BenchmarkRuns(b *testing.B) {
	w := stepping(workflow.Config{Concurrency: 1024, Retention: jobs.Retention{Completed: time.Hour}})
	h := openBench(b, w)
	b.ReportAllocs()
	b.SetParallelism(128)
	ctx := context.Background()
	ids := make(chan int, b.N)
	for i := range b.N {
		ids <- i
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id := strconv.Itoa(<-ids)
			if _, err := w.Start(ctx, h, id, 3); err != nil {
				b.Error(err)
				return
			}
			if _, err := w.Wait(ctx, h, id); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
