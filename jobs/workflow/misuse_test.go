package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// Each operation within a step is refused, and leaves the history as it is.
func TestOperationInStep(t *testing.T) {
	other := workflow.New[int, int]("other", workflow.Config{})
	for name, op := range map[string]func(c *workflow.Context) error{
		`Sleep`: func(c *workflow.Context) error { return workflow.Sleep(c, time.Hour) },
		`Step "b"`: func(c *workflow.Context) error {
			_, err := workflow.Step(c, "b", func(context.Context) (int, error) { return 0, nil })
			return err
		},
		`Atomic "b"`: func(c *workflow.Context) error {
			_, err := workflow.Atomic(c, "b", func(context.Context, *workflow.Tx) (int, error) { return 0, nil })
			return err
		},
		`Wait for signal "approved"`: func(c *workflow.Context) error { _, err := approved.Wait(c, 0); return err },
		`Child "other/1"`:            func(c *workflow.Context) error { _, err := workflow.Child(c, other, "1", 1); return err },
		`Each "b"`: func(c *workflow.Context) error {
			_, err := workflow.Each(c, "b", []int{1}, 1, func(*workflow.Context, int) (int, error) { return 0, nil })
			return err
		},
		`Go "b"`: func(c *workflow.Context) error { _, err := nothing(c, "b").Wait(c); return err },
	} {
		got := outcome(t, func(c *workflow.Context, _ *workflow.Workflow[int, string]) (string, error) {
			text, err := workflow.Step(c, "a", func(context.Context) (string, error) {
				err := op(c)
				if !errors.Is(err, workflow.ErrMisuse) {
					return "", fmt.Errorf("no ErrMisuse: %w", err)
				}
				return err.Error(), nil
			})
			if err == nil && c.Entries() != 1 {
				err = fmt.Errorf("%d entries", c.Entries())
			}
			return text, err
		})
		advice := "do it between two, or use Each"
		if name == "Sleep" {
			advice = "sleep between two"
		}
		if want := "workflow: misuse: " + name + " inside step \"a\": a step is one thing; " + advice; got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
}

// An operation that returns no error makes the run stuck if a step uses it.
func TestOperationInStepStuck(t *testing.T) {
	for name, op := range map[string]func(c *workflow.Context){
		"Undo":    func(c *workflow.Context) { workflow.Undo(c, "b", nil) },
		"Patched": func(c *workflow.Context) { workflow.Patched(c, "b") },
		"Set":     func(c *workflow.Context) { shown.Set(c, "b") },
	} {
		harness.Run(t, func(s *harness.Sim) {
			w := workflow.New[int, string]("order", workflow.Config{})
			w.Func(func(c *workflow.Context, _ int) (string, error) {
				return workflow.Step(c, "a", func(context.Context) (string, error) {
					op(c)
					return "", nil
				})
			})
			s.Host(w)
			start(s, w, "1", 0)
			s.RunUntilIdle()
			st := status(s, w, "1")
			s.Always("stuck", st.Meta.Status == jobs.Stuck && strings.Contains(st.Meta.LastError, " misuse: "+name+" inside step \"a\": a step is one thing; do it between two, or use Each"), st)
		})
	}
}

// An operation on a goroutine of the function's own is refused while the function is in one.
func TestStrayGoroutine(t *testing.T) {
	w := workflow.New[int, string]("order", workflow.Config{})
	w.Func(func(c *workflow.Context, _ int) (string, error) {
		stepping, stray := make(chan struct{}), make(chan error)
		go func() {
			<-stepping
			stray <- workflow.Sleep(c, time.Hour)
		}()
		return workflow.Step(c, "a", func(context.Context) (string, error) {
			close(stepping)
			err := <-stray
			if !errors.Is(err, workflow.ErrMisuse) {
				return "", fmt.Errorf("the stray goroutine slept: %w", err)
			}
			return err.Error(), nil
		})
	})
	host := inMemory(t, w)
	if _, err := w.Start(t.Context(), host, "1", 0); err != nil {
		t.Fatal(err)
	}
	out, err := w.Wait(t.Context(), host, "1")
	if want := "workflow: misuse: Sleep inside step \"a\": a step is one thing; sleep between two"; err != nil || out != want {
		t.Errorf("%q, %v", out, err)
	}
}

// A goroutine of the function's own that outlives the stretch ends at its next operation, and
// the run takes no notice.
func TestStrayGoroutineEnds(t *testing.T) {
	returned, ended, slept := make(chan struct{}), make(chan struct{}), false
	w := workflow.New[int, string]("order", workflow.Config{})
	w.Func(func(c *workflow.Context, _ int) (string, error) {
		go func() {
			defer close(ended)
			<-returned
			_ = workflow.Sleep(c, time.Hour)
			slept = true
		}()
		return do0(c)
	})
	host := inMemory(t, w)
	if _, err := w.Start(t.Context(), host, "1", 0); err != nil {
		t.Fatal(err)
	}
	if out, err := w.Wait(t.Context(), host, "1"); err != nil || out != "a" {
		t.Fatal(out, err)
	}
	close(returned)
	<-ended
	if slept {
		t.Error("the stray goroutine went on behind its Sleep")
	}
	st, err := w.Status(t.Context(), host, "1")
	if err != nil || st.Meta.Status != jobs.Completed || st.Entries != 1 {
		t.Error(st, err)
	}
}

// do0 is a step without an effect.
func do0(c *workflow.Context) (string, error) {
	return workflow.Step(c, "a", func(context.Context) (string, error) { return "a", nil })
}

// A deferred recover does not stop a suspension: the function is not entered behind it, and
// goes on when its time has come.
func TestRecoverStopsNoSuspension(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		recovered := []any{}
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, _ int) (out string, err error) {
			defer func() {
				if v := recover(); v != nil {
					recovered = append(recovered, v)
				}
			}()
			sleepy := func() (err error) {
				defer func() { recovered = append(recovered, recover()) }()
				return workflow.Sleep(c, time.Hour)
			}
			if err := sleepy(); err != nil {
				return "", err
			}
			return do(s, c, "a")
		})
		s.Host(w)
		began := s.Now()
		start(s, w, "1", 0)
		s.Advance(30 * time.Minute)
		st := status(s, w, "1")
		s.Always("asleep", st.Meta.Status == jobs.Running && len(st.Waits) == 1, st)
		s.Advance(30 * time.Minute)
		out, err := ends(s, w, "1")
		s.Always("the end", err == nil && out == "a" && s.Now().Sub(began) == time.Hour, out, err)
		s.Always("nothing to recover", fmt.Sprint(recovered) == "[<nil> <nil>]", recovered)
		happened(s, "order/1", "a")
	})
}
