package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// smallBatches lets a turn write 8 KiB.
func smallBatches(o *object.Options) { o.MaxValueBytes, o.MaxBatchBytes = 4096, 8192 }

// Proves F1, F2, F14. The values of branches that end at the same time, and the variables that are
// set between two steps, are more than a batch takes. They are stored in several, before the
// next step begins.
func TestCrashMoreThanABatch(t *testing.T) {
	shown := make([]*workflow.Var[string], 4)
	for i := range shown {
		shown[i] = workflow.NewVar[string](fmt.Sprint("shown", i))
	}
	large := strings.Repeat("x", 2500)
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, int]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, _ int) (int, error) {
			out, err := workflow.Each(c, "part", eight, 0, func(c *workflow.Context, i int) (string, error) {
				return workflow.Step(c, "a", func(ctx context.Context) (string, error) {
					s.World().Do(workflow.Key(ctx), nil)
					return large, s.SleepContext(ctx, time.Second)
				})
			})
			if err != nil {
				return 0, err
			}
			for i, v := range shown {
				v.Set(c, large[i:])
			}
			if err := workflow.Sleep(c, time.Hour); err != nil {
				return 0, err
			}
			return len(strings.Join(out, "")), nil
		})
		s.Host(w)
		start(s, w, "1", 0)
		s.Advance(time.Minute)
		for i, v := range shown {
			s.OK(s.Retry(func() error {
				got, ok, err := v.Get(s.Context(), s, w, "1")
				s.Always("shown", err != nil || ok && got == large[i:], i, ok, len(got))
				return err
			}))
		}
		s.Advance(time.Hour)
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == 8*len(large), out, err)
		s.Finally("each step", func() error {
			if n := len(steps(s)); n != 8 {
				return fmt.Errorf("%d steps", n)
			}
			return onceEach(s, "order/")
		})
	}, append(promises, harness.HostOptions(smallBatches), crashes.Budget(60))...)
}

// Proves F6. An Atomic that leaves no room for its entry in the batch has failed, and has changed
// nothing. With the greatest change that leaves room it is stored.
func TestAtomicLargerThanABatch(t *testing.T) {
	stores := func(second int) (fits bool) {
		harness.Run(t, func(s *harness.Sim) {
			calls := 0
			w := workflow.New[int, string]("order", workflow.Config{})
			w.Func(func(c *workflow.Context, _ int) (string, error) {
				_, err := workflow.Atomic(c, "large", func(ctx context.Context, tx *workflow.Tx) (string, error) {
					calls++
					return "value", errors.Join(tx.Put(ctx, "a", make([]byte, 4000)), tx.Put(ctx, "b", make([]byte, second)))
				})
				n, count := workflow.Atomic(c, "count", func(ctx context.Context, tx *workflow.Tx) (n int, err error) {
					for _, err = range tx.List(ctx, "") {
						n++
					}
					return n, err
				})
				return fmt.Sprint(n, " ", textOf(err)), count
			})
			s.Host(w)
			start(s, w, "1", 0)
			s.Advance(10 * time.Minute)
			st := status(s, w, "1")
			s.Always("completed", st.Meta.Status == jobs.Completed && st.Entries == 2 && calls == 1, st, calls)
			out, err := ends(s, w, "1")
			fits = out == "2 no error"
			s.Always("whole or not at all", err == nil && (fits || out == `0 step "large": the changes and the value do not fit in one batch, make them in several: order/1: object: turn writes too much: more than 8192 bytes`), out, err)
		}, harness.HostOptions(smallBatches))
		return fits
	}
	least, most := 3800, 4096
	if !stores(least) || stores(most) {
		t.Fatal("the bound is not between")
	}
	for most-least > 1 { // each size up to the bound, and none beyond it
		if middle := (least + most) / 2; stores(middle) {
			least = middle
		} else {
			most = middle
		}
	}
	for _, size := range []int{least - 1, least} {
		if !stores(size) {
			t.Errorf("%d bytes are not stored", size)
		}
	}
	for _, size := range []int{most, most + 1} {
		if stores(size) {
			t.Errorf("%d bytes are stored", size)
		}
	}
}

// Proves F1, F7. A child ends with the greatest output of a child behind a step with a large
// value. The step and the answer are more than a batch takes, so the entry goes before, and the
// step is not repeated.
func TestEndLargerThanABatch(t *testing.T) {
	const output = (32<<10-1024)/4*3 - 1024
	harness.Run(t, func(s *harness.Sim) {
		leaf := workflow.New[int, string]("leaf", workflow.Config{})
		leaf.Func(func(c *workflow.Context, _ int) (string, error) {
			_, err := workflow.Step(c, "large", func(ctx context.Context) (string, error) {
				s.World().Do(workflow.Key(ctx), nil)
				return strings.Repeat("x", 16_000), nil
			})
			return strings.Repeat("x", output-2), err
		})
		w := workflow.New[int, int]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (int, error) {
			out, err := workflow.Child(c, leaf, "c", n)
			return len(out), err
		})
		s.Host(w, leaf)
		start(s, w, "1", 0)
		s.Advance(10 * time.Minute)
		st := status(s, leaf, "c")
		s.Always("the child has completed", st.Meta.Status == jobs.Completed, st)
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == output-2, out, err)
		s.Always("the step once", len(s.World().Log()) == 1, s.World().Log())
	}, harness.HostOptions(func(o *object.Options) { o.MaxValueBytes, o.MaxBatchBytes = 32<<10, 64<<10 }))
}
