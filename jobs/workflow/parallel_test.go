package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// Runs with branches, signals, children, cancels and sleeps, on goroutines and a real disk.
func TestManyRuns(t *testing.T) {
	var ran atomic.Int64
	leaf := workflow.New[int, int]("leaf", workflow.Config{})
	leaf.Func(func(c *workflow.Context, n int) (int, error) {
		return workflow.Step(c, "double", func(context.Context) (int, error) { return 2 * n, nil })
	})
	shown := workflow.NewVar[int]("shown")
	w := workflow.New[int, int]("order", workflow.Config{Signals: workflow.Signals{approved}, Concurrency: 8})
	w.Func(func(c *workflow.Context, n int) (int, error) {
		workflow.Undo(c, "all", func(context.Context) error { return nil })
		parts, err := workflow.Each(c, "part", []int{1, 2, 3, 4}, 2, func(c *workflow.Context, i int) (int, error) {
			return workflow.Step(c, "add", func(context.Context) (int, error) { ran.Add(1); return i + n, nil })
		})
		if err != nil {
			return 0, err
		}
		shown.Set(c, parts[0])
		quick := workflow.Go(c, "quick", func(c *workflow.Context) (int, error) {
			return workflow.Step(c, "add", func(context.Context) (int, error) { ran.Add(1); return n, nil })
		})
		never := workflow.Go(c, "never", func(c *workflow.Context) (int, error) { return 0, workflow.Sleep(c, time.Hour) })
		workflow.Go(c, "alive", func(c *workflow.Context) (int, error) { return 0, workflow.Sleep(c, 2*time.Hour) })
		if i, err := workflow.First(c, never, quick); err != nil || i != 1 && c.Err() == nil && n%4 != 0 {
			return 0, fmt.Errorf("%d has won: %w", i, err)
		}
		if _, err := quick.Wait(c); err != nil {
			return 0, err
		}
		if _, err := approved.Wait(c, 0); err != nil {
			return 0, err
		}
		if err := workflow.Sleep(c, time.Millisecond); err != nil {
			return 0, err
		}
		return workflow.Child(c, leaf, fmt.Sprint(n), parts[3])
	})
	h, err := object.Open(object.Options{Dir: t.TempDir()}, w, leaf)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	var all sync.WaitGroup
	const runs = 40
	for i := range runs {
		all.Go(func() {
			id := fmt.Sprint(i)
			if _, err := w.Start(ctx, h, id, i); err != nil {
				t.Error(err)
			}
			if i%4 == 0 {
				if err := w.Cancel(ctx, h, id, "enough"); err != nil {
					t.Error(err)
				}
			} else if err := approved.Send(ctx, h, w, id, "yes"); err != nil {
				t.Error(err)
			}
			out, err := w.Wait(ctx, h, id)
			switch {
			case i%4 == 0 && !errors.Is(err, workflow.ErrCancelled):
				t.Errorf("run %d: %d, %v", i, out, err)
			case i%4 != 0 && (err != nil || out != 2*(i+4)):
				t.Errorf("run %d: %d, %v", i, out, err)
			}
		})
	}
	all.Wait()
	if n := ran.Load(); n < 5*runs*3/4 || n > 5*runs {
		t.Errorf("%d steps have run", n)
	}
	if err := h.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}
