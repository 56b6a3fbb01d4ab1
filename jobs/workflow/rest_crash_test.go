package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// gone returns an error unless the store has no row of a run, or all that an ended run has.
func gone(store *storage.Store, id storage.ID) error {
	var meta jobs.Meta
	var out string
	exists, err := harness.Stored(store, id, jobs.MetaKey, &meta)
	if err != nil {
		return err
	}
	done, err := harness.Stored(store, id, "out", &out)
	if err != nil || done != (exists && meta.Status == jobs.Completed) {
		return fmt.Errorf("status %q with output %v, %w", meta.Status, done, err)
	}
	return nil
}

// Proves F12, F13. A run that has completed is purged when its time is over, in one batch: a
// late Wait gets the output before, and ErrNotFound after.
// Case WF16.
func TestCrashRetention(t *testing.T) {
	id := storage.ID{Class: "order", Name: "1"}
	whole := harness.Invariant("wholly there or wholly gone", func(store *storage.Store) error { return gone(store, id) })
	crashes.Try(t, func(s *harness.Sim) {
		w := workflow.New[int, string]("order", workflow.Config{Retention: jobs.Retention{Completed: time.Hour}})
		w.Func(func(c *workflow.Context, n int) (string, error) { return do(s, c, "a") })
		s.Host(w)
		start(s, w, "1", 7)
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == "a", out, err)
		ended := status(s, w, "1").Meta.EndedAt
		s.Advance(ended.Add(time.Hour - time.Second).Sub(s.Now()))
		out, err = ends(s, w, "1")
		s.Always("kept for an hour", err == nil && out == "a", out, err)
		s.Go("late", func() {
			var out string
			err := s.Retry(func() (err error) {
				out, err = w.Wait(s.Context(), s, "1")
				return err
			})
			s.Always("wholly there or wholly gone", err == nil && out == "a" || errors.Is(err, jobs.ErrNotFound), out, err)
		})
		s.Advance(2 * time.Minute)
		err = s.Retry(func() error {
			_, err := w.Wait(s.Context(), s, "1")
			return err
		})
		s.Always("gone", errors.Is(err, jobs.ErrNotFound), err)
		s.Finally("nothing left", func() error {
			var meta jobs.Meta
			exists, err := harness.Stored(s.Store(), id, jobs.MetaKey, &meta)
			if err != nil || exists {
				return fmt.Errorf("%v, %w", meta, err)
			}
			return nil
		})
	}, append([]harness.Option{whole}, promises...)...)
}

// queue has n runs come at once, of which two may execute at a time, and checks that all end in
// the order of their arrival.
func queue(s *harness.Sim, n int) {
	c := &crowd{s: s}
	var order []int
	w := workflow.New[int, int]("order", workflow.Config{Concurrency: 2})
	w.Func(func(ctx *workflow.Context, i int) (int, error) {
		return workflow.Step(ctx, "a", func(sc context.Context) (int, error) {
			defer c.enter()()
			s.World().Do(workflow.Key(sc), nil)
			order = append(order, i)
			return i, s.SleepContext(sc, 500*time.Millisecond)
		})
	})
	s.Host(w)
	for i := range n {
		start(s, w, fmt.Sprint(i), i)
	}
	st := status(s, w, fmt.Sprint(n-1))
	s.Always("queued", s.Crashes() > 0 || st.Queued && st.Meta.Status == jobs.Running, st)
	s.Advance(10 * time.Minute)
	for i := range n {
		out, err := ends(s, w, fmt.Sprint(i))
		s.Always("the output", err == nil && out == i, out, err)
	}
	s.Finally("two at a time, in order", func() error {
		alone := s.Crashes() > 1 // crashes in a row may have cut off all runs, which are then tried one after another
		if c.most > 2 || c.most < 2 && !alone || len(order) < n || len(order) > n+2*s.Crashes() {
			return fmt.Errorf("%d at a time, order %v", c.most, order)
		}
		for at, i := range order { // the two that begin together may change places
			if s.Crashes() == 0 && (i < at-1 || i > at+1) {
				return fmt.Errorf("order %v", order)
			}
		}
		return nil
	})
}

// Proves J16. A crash loses no run of a queue, and no more of them execute at a time after it.
// Cases 40 and WF19.
func TestCrashQueue(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) { queue(s, 6) }, promises...)
}

// Proves J16. Two of a hundred runs execute at a time, and all end, in the order of their arrival.
func TestQueueOfAHundred(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) { queue(s, 100) }, promises...)
}

// Proves F5, F7. A run waits for its child while a signal comes, and takes both, each once,
// whichever comes first.
func TestCrashSignalBesideChild(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		children := newChildren(s)
		w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			out, err := workflow.Each(c, "both", []int{0, 1}, 0, func(c *workflow.Context, i int) (string, error) {
				if i == 0 {
					v, err := workflow.Child(c, children, "c", task{N: n, Sleeps: time.Minute})
					return fmt.Sprint(v), err
				}
				return approved.Wait(c, 0)
			})
			if err != nil {
				return "", err
			}
			again, err := approved.Wait(c, 10*time.Minute)
			return fmt.Sprint(out, again), err
		})
		s.Host(w, children)
		start(s, w, "1", 7)
		s.Advance(time.Minute - time.Millisecond)
		for i := range 2 {
			s.Go("client", func() {
				s.Sleep(time.Duration(i) * time.Millisecond) // the second comes with the child's result
				s.OK(s.Retry(func() error {
					return approved.Send(s.Context(), s, w, "1", fmt.Sprint("yes", i), object.Idempotent(fmt.Sprint(i), 0))
				}))
			})
		}
		s.Advance(5 * time.Minute)
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && (out == "[7 yes0]yes1" || s.Crashes() > 0 && out == "[7 yes1]yes0"), out, err)
		s.Finally("one child", func() error { return errors.Join(once(s, "c"), familyEnds(s, "order", "child")) })
	}, familyPromises...)
}
