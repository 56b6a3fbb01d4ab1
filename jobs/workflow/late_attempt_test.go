package workflow_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// lateSteps is an Executor that lets the tasks of steps begin late.
type lateSteps struct {
	seam.Executor
	begin chan struct{}
}

func (x lateSteps) Go(name string, f func()) {
	x.Executor.Go(name, func() {
		if name == "step" {
			<-x.begin
		}
		f()
	})
}

// An attempt whose time is over before its task began has not failed: a Pause that stops it
// leaves it to the next stretch. The task of one that was given up never calls its function.
func TestAttemptThatDidNotBegin(t *testing.T) {
	for name, begins := range map[string]time.Duration{
		"in time":               5 * time.Second,
		"after its Timeout":     15 * time.Second,
		"after it was given up": 50 * time.Second,
		"after it goes on anew": 90 * time.Second,
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			w := workflow.New[int, int]("order", workflow.Config{Retry: jobs.Retry{MaxAttempts: 1}, Lease: 30 * time.Second})
			w.Func(func(c *workflow.Context, n int) (int, error) {
				return workflow.Step(c, "a", func(context.Context) (int, error) { calls++; return n, nil }, workflow.Timeout(10*time.Second))
			})
			late := lateSteps{seam.Seams{}.WithDefaults().Executor, make(chan struct{})}
			host, err := object.Open(object.Options{
				Storage: storage.Options{Engine: memstore.New(), Shards: 1, MinFreeBytes: -1}, Logger: slog.New(slog.DiscardHandler), Seams: seam.Seams{Executor: late},
			}, w)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Start(t.Context(), host, "1", 7); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if err := w.Pause(t.Context(), host, "1", "", time.Time{}); err != nil {
				t.Fatal(err)
			}
			release := time.AfterFunc(begins, func() { close(late.begin) })
			time.Sleep(70 * time.Second)
			if err := w.Resume(t.Context(), host, "1"); err != nil {
				t.Fatal(err)
			}
			if out, err := w.Wait(t.Context(), host, "1"); err != nil || out != 7 || calls != 1 {
				t.Errorf("%s: the run ends with %d, %v, after %d calls", name, out, err, calls)
			}
			release.Stop()
			if err := host.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}
