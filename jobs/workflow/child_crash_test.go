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
	"github.com/holdfast-dev/holdfast/storage"
)

// familyPromises are the checks of stories with a parent and children, which have many points.
var familyPromises = append(promises, crashes.Budget(150), harness.NoLostMessage, harness.AtMostOncePerCrash("child/"))

// task is the input of a child.
type task struct {
	N      int
	Sleeps time.Duration
	Fails  bool
	// Lingers is how long the child goes on after a cancel.
	Lingers time.Duration
}

// newChildren makes the class of the children: each does a step, sleeps, and returns its
// number or an error.
func newChildren(s *harness.Sim) *workflow.Workflow[task, int] {
	w := workflow.New[task, int]("child", workflow.Config{})
	w.Func(func(c *workflow.Context, t task) (int, error) {
		workflow.Undo(c, "u", func(ctx context.Context) error {
			s.World().Do("undone "+c.ID(), nil)
			return nil
		})
		if _, err := do(s, c, "work"); err != nil {
			return 0, err
		}
		if t.Sleeps > 0 {
			if err := workflow.Sleep(c, t.Sleeps); err != nil {
				if t.Lingers > 0 {
					err = errors.Join(err, workflow.Sleep(workflow.WithoutCancel(c), t.Lingers))
				}
				return 0, err
			}
		}
		if t.Fails {
			return 0, errors.New("out of stock")
		}
		return t.N, nil
	})
	return w
}

// worked counts the effects of the step of a child.
func worked(s *harness.Sim, id string) (n int) {
	for _, e := range s.World().Log() {
		if strings.HasPrefix(e.Key, "child/"+id+"/") {
			n++
		}
	}
	return n
}

// has returns an error unless the number of effects is between one and one more than the
// number of crashes.
func once(s *harness.Sim, id string) error {
	if n := worked(s, id); n < 1 || n > 1+s.Crashes() {
		return fmt.Errorf("child %s did its step %d times in %d crashes", id, n, s.Crashes())
	}
	return nil
}

// familyEnds returns an error if a message is under way or an execution is open.
func familyEnds(s *harness.Sim, classes ...string) error {
	for _, class := range classes {
		n, err := crashes.UnderWay(s.Store(), class)
		if err != nil || n > 0 {
			return fmt.Errorf("%d messages to %s under way, %w", n, class, err)
		}
	}
	return nil
}

// Proves F7. A parent has one child for each Child and one result of it: its output, its error,
// or that its id is in use.
// Case WF12.
func TestCrashChild(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		children := newChildren(s)
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			trace := ""
			for _, id := range []string{"good", "bad", "used", "good"} {
				v, err := workflow.Child(c, children, id, task{N: n, Fails: id == "bad", Sleeps: time.Minute})
				var told *workflow.ChildError
				switch {
				case err == nil:
					trace += fmt.Sprint(v, " ")
				case !errors.As(err, &told) || told.Child != "child/"+id:
					return "", fmt.Errorf("not of the child %s: %w", id, err)
				case errors.Is(err, workflow.ErrFailed) && !errors.Is(err, workflow.ErrExists):
					trace += told.Text + " "
				case errors.Is(err, workflow.ErrExists) && !errors.Is(err, workflow.ErrFailed):
					trace += id + " exists "
				default:
					return "", err
				}
			}
			return trace, nil
		})
		s.Host(w, children)
		start(s, children, "used", task{N: 1, Sleeps: time.Hour})
		start(s, w, "1", 7)
		s.Advance(10 * time.Minute)
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == "7 out of stock used exists good exists ", out, err)
		s.Advance(time.Hour)
		used, err := ends(s, children, "used")
		s.Always("the child in use goes on", err == nil && used == 1, used, err)
		s.Finally("each child once", func() error {
			return errors.Join(once(s, "good"), once(s, "bad"), once(s, "used"), familyEnds(s, "order", "child"))
		})
	}, familyPromises...)
}

// Proves F3, F7, F8. A run that is cancelled cancels its child, which undoes its step.
func TestCrashChildCancelled(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		children := newChildren(s)
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			_, err := workflow.Child(c, children, "c", task{N: n, Sleeps: 100 * time.Hour})
			return "", err
		})
		s.Host(w, children)
		start(s, w, "1", 7)
		s.Advance(time.Minute)
		s.OK(s.Retry(func() error { return w.Cancel(s.Context(), s, "1", "no more") }))
		s.Advance(time.Minute)
		_, err := ends(s, w, "1")
		s.Always("cancelled", errors.Is(err, workflow.ErrCancelled), err)
		_, err = ends(s, children, "c")
		s.Always("the child too", errors.Is(err, workflow.ErrCancelled), err)
		st := status(s, children, "c")
		s.Always("its reason", st.Meta.Status == jobs.Cancelled && st.Meta.StopReason == "no more", st)
		s.Finally("undone", func() error {
			n := s.World().Count("undone c")
			if n < 1 || n > 1+s.Crashes() {
				return fmt.Errorf("undone %d times", n)
			}
			return errors.Join(once(s, "c"), familyEnds(s, "order", "child"))
		})
	}, familyPromises...)
}

// parentOf is how a message of a parent names it, as it is encoded.
type parentOf struct {
	Class      string `json:"class"`
	Name       string `json:"name"`
	Life       string `json:"life"`
	Generation uint64 `json:"generation"`
	Place      uint64 `json:"place"`
}

// cancelling is the cancel of a child, as it is encoded.
type cancelling struct {
	Parent parentOf `json:"parent"`
}

// forger is an object that sends the cancel of a child in the place of the parent.
type forger struct{ st *object.State }

func newForgers() (*object.Class[forger], *object.Method[cancelling, int]) {
	class := object.Define("forger", func(_ context.Context, st *object.State) (*forger, error) { return &forger{st}, nil })
	return class, object.Handle(class, "cancel", func(f *forger, ctx context.Context, c cancelling) (int, error) {
		return 0, f.st.Driver().Answer(ctx, storage.ID{Class: "child", Name: "c"}, "cancel child", c)
	})
}

// Proves F7. A cancel that overtakes the start of its child leaves a mark, and the start ends
// the child at once: it does nothing, and its parent has one answer.
func TestCrashChildCancelledBeforeItsStart(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		children := newChildren(s)
		forgers, cancel := newForgers()
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			if err := workflow.Sleep(c, time.Hour); err != nil { // entry 0
				return "", err
			}
			_, first := workflow.Child(c, children, "c", task{N: n}) // entries 1 and 2
			second, err := workflow.Child(c, children, "c", task{N: n})
			return fmt.Sprint(errors.Is(first, workflow.ErrCancelled), " ", second), err
		})
		s.Host(w, children, forgers)
		start(s, w, "1", 7)
		life := status(s, w, "1").Meta.CreationID
		for _, place := range []uint64{1, 9} { // the second fits no start
			s.OK(s.Retry(func() error {
				_, err := cancel.Call(s.Context(), s, "1", cancelling{parentOf{"order", "1", life, 0, place}})
				return err
			}))
		}
		s.Advance(time.Minute)
		s.OK(s.Retry(func() error {
			_, err := children.Status(s.Context(), s, "c")
			if !errors.Is(err, jobs.ErrNotFound) {
				s.OK(err)
				s.Always("the mark is no run", harness.Unknown(err))
				return err
			}
			return nil
		}))
		s.Advance(2 * time.Hour)
		out, err := ends(s, w, "1")
		s.Always("the first is cancelled, the second runs", err == nil && out == "true 7", out, err)
		s.Finally("the child that was cancelled did nothing", func() error {
			return errors.Join(once(s, "c"), familyEnds(s, "order", "child"))
		})
	}, familyPromises...)
}

// Proves F7. A parent that is terminated leaves no child behind, and the child of its earlier
// life does not answer the run that was started under its id, though its answer comes while that
// waits for a child in the same place.
func TestCrashChildOfAnEarlierLife(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		children := newChildren(s)
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			v, err := workflow.Child(c, children, fmt.Sprint("c", n), task{N: n, Sleeps: 24 * time.Hour, Lingers: time.Hour})
			return fmt.Sprint("child ", v), err
		})
		s.Host(w, children)
		start(s, w, "1", 1)
		s.Advance(time.Minute)
		s.OK(s.Retry(func() error {
			err := w.Terminate(s.Context(), s, "1", "wrong")
			if errors.Is(err, jobs.ErrNotFound) { // a repeat
				err = nil
			}
			return err
		}))
		start(s, w, "1", 2)
		s.Advance(30 * time.Minute)
		before, later := status(s, children, "c1"), status(s, children, "c2")
		s.Always("the first child is being cancelled", before.Cancelling && !before.Meta.Status.Ended(), before)
		s.Always("the second sleeps", !later.Cancelling && later.Meta.Status == jobs.Running, later)
		s.Advance(time.Hour)
		before = status(s, children, "c1")
		s.Always("the first child has ended", before.Meta.Status == jobs.Cancelled, before)
		st := status(s, w, "1")
		s.Always("the parent waits for the second", st.Meta.Status == jobs.Running && len(st.Waits) == 1 && st.Waits[0].Name == "child/c2", st)
		s.Advance(24 * time.Hour)
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == "child 2", out, err)
		s.Finally("no orphan", func() error {
			return errors.Join(once(s, "c1"), once(s, "c2"), familyEnds(s, "order", "child"))
		})
	}, familyPromises...)
}
