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

// historyOf is the history of a generation in one line, "gone" if it was not kept.
func historyOf[In, Out any](s *harness.Sim, w *workflow.Workflow[In, Out], id string, generation uint64) (line string) {
	s.OK(s.Retry(func() error {
		entries, err := w.HistoryOf(s.Context(), s, id, generation, 0, 0)
		if errors.Is(err, jobs.ErrNotFound) {
			line, err = "gone", nil
			return err
		}
		var names []string
		for i, e := range entries {
			s.Always("in order", e.Seq == uint64(i), e)
			names = append(names, strings.TrimSpace(e.Kind+" "+e.Name))
		}
		line = strings.Join(names, ", ")
		return err
	}))
	return line
}

// keys are those of a run that begin with a prefix.
func keys(s *harness.Sim, w *workflow.Workflow[int, int], id, prefix string) (found []string) {
	s.OK(s.Retry(func() error {
		return s.WithHost(func(ctx context.Context, h *object.Host) error {
			in, err := h.Inspect(ctx, w.ID(id))
			found = nil
			for _, k := range in.Keys {
				if strings.HasPrefix(k.Key, prefix) {
					found = append(found, k.Key)
				}
			}
			return err
		})
	}))
	return found
}

// generations is a workflow of some generations, each with a step, a sleep and a step.
func generations(s *harness.Sim, last, keep int) *workflow.Workflow[int, int] {
	w := workflow.New[int, int]("order", workflow.Config{KeepGenerations: keep})
	w.Func(func(c *workflow.Context, n int) (int, error) {
		if _, err := do(s, c, fmt.Sprint("a", n)); err != nil {
			return 0, err
		}
		if err := workflow.Sleep(c, time.Minute); err != nil {
			return 0, err
		}
		if _, err := do(s, c, fmt.Sprint("b", n)); err != nil || n == last {
			return n, err
		}
		return w.ContinueAs(c, n+1)
	})
	return w
}

// Proves F16. A run begins anew three times, and the histories of the two generations before the
// present one are kept, whole, with their last entry; an older one is gone. Terminate removes all.
func TestCrashKeepGenerations(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		w := generations(s, 3, 2)
		s.Host(w)
		start(s, w, "1", 0)
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == 3, out, err)
		for g, want := range []string{"gone", "step a1, sleep, step b1", "step a2, sleep, step b2", "step a3, sleep, step b3", "gone"} {
			got := historyOf(s, w, "1", uint64(g))
			s.Always("the history", got == want, g, got)
		}
		st := status(s, w, "1")
		s.Always("counted", st.Generation == 3 && st.Kept == 2 && st.Entries == 3 && len(entriesOf(s, w, "1")) == 3, st)
		s.Always("nothing else", len(keys(s, w, "1", "g/")) == 9 && len(keys(s, w, "1", "e/")) == 0)
		s.OK(s.Retry(func() error {
			if err := w.Terminate(s.Context(), s, "1", ""); !errors.Is(err, jobs.ErrNotFound) {
				return err
			}
			return nil
		}))
		s.Always("all gone", len(keys(s, w, "1", "")) == 0, keys(s, w, "1", ""))
	}, promises...)
}

// Proves F16. By default no history of an earlier generation stays, and one page of a kept one is
// read as that of the present one.
func TestNoGenerationIsKeptByDefault(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		none, two := generations(s, 2, 0), generations(s, 2, 2)
		s.Host(none)
		start(s, none, "1", 0)
		s.Advance(time.Hour)
		s.Always("none", historyOf(s, none, "1", 1) == "gone" && historyOf(s, none, "1", 2) == "step a2, sleep, step b2" && len(keys(s, none, "1", "g/")) == 0)
		s.Restart(harness.WithCode(two))
		start(s, two, "2", 0)
		s.Advance(time.Hour)
		page, err := two.HistoryOf(s.Context(), s, "2", 0, 1, 1)
		s.Always("a page", err == nil && len(page) == 1 && page[0].Seq == 1 && page[0].Kind == "sleep", page, err)
		_, err = two.HistoryOf(s.Context(), s, "3", 0, 0, 0)
		s.Always("no such run", errors.Is(err, jobs.ErrNotFound), err)
		_, err = two.HistoryOf(s.Context(), s, "2", 3, 0, 0)
		s.Always("no such generation", errors.Is(err, jobs.ErrNotFound) && strings.Contains(err.Error(), "order/2: the history of generation 3"), err)
	}, promises...)
}

// Proves F16. A deploy with another KeepGenerations counts for the generations that begin under
// it: one that keeps more finds no history of before, one that keeps fewer removes at most 16 with
// each begin, and one that keeps none removes all.
func TestKeepGenerationsChanges(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		const last = 1000
		code := func(keep int) *workflow.Workflow[int, int] { return generations(s, last, keep) }
		w := code(0)
		s.Host(w)
		start(s, w, "1", 0)
		until := func(keep int, generation uint64) workflow.Status {
			w = code(keep)
			s.Restart(harness.WithCode(w))
			for status(s, w, "1").Generation < generation {
				s.Advance(time.Minute)
			}
			st := status(s, w, "1")
			s.Always("that generation", st.Generation == generation, st)
			return st
		}
		s.Always("nothing to keep", until(50, 1).Kept == 0)
		s.Always("kept since", until(50, 41).Kept == 40 && historyOf(s, w, "1", 0) == "gone" && historyOf(s, w, "1", 1) == "step a1, sleep, step b1")
		for i, kept := range []uint64{25, 10, 1, 1} {
			g := uint64(42 + i)
			st := until(1, g)
			s.Always("at most 16 go", st.Kept == kept, st)
			s.Always("the oldest", historyOf(s, w, "1", g-kept) == fmt.Sprintf("step a%d, sleep, step b%d", g-kept, g-kept) && historyOf(s, w, "1", g-kept-1) == "gone")
		}
		st := until(0, 46)
		s.Always("all go", st.Kept == 0 && len(keys(s, w, "1", "g/")) == 0 && historyOf(s, w, "1", 45) == "gone", st)
		s.Always("the present one", strings.HasPrefix(historyOf(s, w, "1", 46), "step a46") && len(keys(s, w, "1", "e/")) > 0)
	}, promises...)
}

// Proves F16. A history that is larger than a batch is kept: ContinueAs moves no entry.
func TestLargeHistoryIsKept(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		const entries = 20 // of 1 MiB; a batch has at most 16
		w := workflow.New[int, int]("order", workflow.Config{KeepGenerations: 1, MaxBytes: 64 << 20})
		w.Func(func(c *workflow.Context, n int) (int, error) {
			for range entries {
				if _, err := workflow.Step(c, "s", func(context.Context) (string, error) { return strings.Repeat("x", 1<<20), nil }); err != nil {
					return 0, err
				}
			}
			if n == 2 {
				return n, nil
			}
			return w.ContinueAs(c, n+1)
		})
		s.Host(w)
		start(s, w, "1", 0)
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == 2, out, err)
		for g, want := range []int{0, entries, entries} {
			n := 0
			for {
				page, err := w.HistoryOf(s.Context(), s, "1", uint64(g), uint64(n), 0)
				if n += len(page); err != nil || len(page) == 0 {
					s.Always("gone", (want == 0) == errors.Is(err, jobs.ErrNotFound), g, err)
					break
				}
			}
			s.Always("all of it", n == want, g, n)
		}
	}, promises...)
}

// Check reads the history of a generation that will be kept.
func TestCheckOfAKeptGeneration(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		w := generations(s, 3, 2)
		s.Host(w)
		start(s, w, "1", 0)
		s.Advance(90 * time.Second)
		other := workflow.New[int, int]("order", workflow.Config{})
		other.Func(func(c *workflow.Context, n int) (int, error) { _, err := do(s, c, "other"); return n, err })
		s.Shutdown()
		for code, want := range map[*workflow.Workflow[int, int]]int{w: 0, other: 1} {
			found := 0
			for d, err := range code.Check(s.Context(), s.Store(), workflow.CheckOptions{}) {
				s.Always("diverged", err == nil && errors.Is(d.Err, workflow.ErrDiverged), d, err)
				found++
			}
			s.Always("found", found == want, found)
		}
	})
}

// Proves F16, F1. Retry takes the failed step out of a history that will be kept.
func TestRetryInAKeptGeneration(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		fails := true
		w := workflow.New[int, int]("order", workflow.Config{KeepGenerations: 1, Retry: jobs.Retry{MaxAttempts: 1}})
		w.Func(func(c *workflow.Context, n int) (int, error) {
			if _, err := do(s, c, "a"); err != nil {
				return 0, err
			}
			_, err := workflow.Step(c, "b", func(context.Context) (int, error) {
				if fails && n == 1 {
					return 0, errNo
				}
				return n, nil
			})
			if err != nil || n == 1 {
				return n, err
			}
			return w.ContinueAs(c, n+1)
		})
		s.Host(w)
		start(s, w, "1", 0)
		_, err := ends(s, w, "1")
		s.Always("failed", errors.Is(err, workflow.ErrFailed), err)
		fails = false
		s.OK(w.Retry(s.Context(), s, "1"))
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == 1, out, err)
		for g := range uint64(2) {
			s.Always("the history", historyOf(s, w, "1", g) == "step a, step b", g, historyOf(s, w, "1", g))
		}
	}, promises...)
}
