package workflow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// nothing is a branch that ends at once.
func nothing(c *workflow.Context, name string) *workflow.Branch[string] {
	return workflow.Go(c, name, func(*workflow.Context) (string, error) { return name, nil })
}

// A branch that cannot be begun tells so where it is waited for, and makes no entry.
func TestBranchNotBegun(t *testing.T) {
	for name, wrong := range map[string]bool{"": true, "a#b": true, "a]/": true, "undo/a": true, strings.Repeat("x", 129): true, strings.Repeat("x", 128): false, "a/b": false} {
		got := outcome(t, func(c *workflow.Context, _ *workflow.Workflow[int, string]) (string, error) {
			b := nothing(c, name)
			_, err := b.Wait(c)
			i, firstErr := workflow.First(c, b)
			return fmt.Sprint(errors.Is(err, jobs.ErrInvalid), errors.Is(firstErr, jobs.ErrInvalid), i, c.Entries() == 0), nil
		})
		if want := fmt.Sprint(wrong, wrong, map[bool]int{true: -1}[wrong], wrong); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

// A scope has 1,000 branches that it has not waited for, and not one more.
func TestBranchesAtMost(t *testing.T) {
	got := outcome(t, func(c *workflow.Context, _ *workflow.Workflow[int, string]) (string, error) {
		first := nothing(c, "b")
		for range 998 {
			nothing(c, "b")
		}
		_, last := nothing(c, "last").Wait(c) // frees its place
		thousandth := nothing(c, "b")
		_, over := nothing(c, "b").Wait(c)
		_, err := first.Wait(c)
		_, again := nothing(c, "b").Wait(c)
		_, err2 := thousandth.Wait(c)
		return fmt.Sprint(last, errors.Is(over, workflow.ErrMisuse), err, again, err2), nil
	})
	if got != "<nil> true <nil> <nil> <nil>" {
		t.Error(got)
	}
}

// Wait and First are refused in another scope than that of the branch, and First of nothing, of a branch twice,
// and of a loser.
func TestBranchMisuse(t *testing.T) {
	var refused []string
	got := outcome(t, func(c *workflow.Context, _ *workflow.Workflow[int, string]) (string, error) {
		refused = nil
		is := func(err, target error) { refused = append(refused, fmt.Sprint(errors.Is(err, target))) }
		a, b := nothing(c, "a"), workflow.Go(c, "b", func(c *workflow.Context) (int, error) { return 0, workflow.Sleep(c, time.Hour) })
		in := workflow.Go(c, "in", func(other *workflow.Context) (string, error) {
			_, err := a.Wait(other)
			is(err, workflow.ErrMisuse)
			_, err = workflow.First(other, a)
			is(err, workflow.ErrMisuse)
			return "", nil
		})
		if _, err := in.Wait(c); err != nil {
			return "", err
		}
		_, err := workflow.First(c)
		is(err, jobs.ErrInvalid)
		_, err = workflow.First(c, a, b, a)
		is(err, workflow.ErrMisuse)
		if i, err := workflow.First(c, b, a); i != 1 || err != nil {
			return "", fmt.Errorf("%d: %w", i, err)
		}
		_, err = workflow.First(c, b)
		is(err, workflow.ErrMisuse)
		v, err := a.Wait(c)
		return v, err
	})
	if got != "a" || strings.Join(refused, " ") != "true true true true true" {
		t.Error(got, refused)
	}
}

// deployed runs a function until it waits for the signal, and then a changed one in its repeat. It
// returns the trouble of the run, or its output.
func deployed(t *testing.T, before, after func(c *workflow.Context, s *harness.Sim) error) (text string, effects []string) {
	t.Helper()
	harness.Run(t, func(s *harness.Sim) {
		fn := before
		w := workflow.New[int, string]("order", workflow.Config{Signals: workflow.Signals{approved}, Retry: jobs.Retry{MaxAttempts: 1}})
		w.Func(func(c *workflow.Context, _ int) (string, error) {
			if err := fn(c, s); err != nil {
				return "", err
			}
			return approved.Wait(c, 0)
		})
		s.Host(w)
		start(s, w, "1", 7)
		s.Advance(time.Minute)
		fn = after
		sends(s, w, "1", "yes")
		s.Advance(10 * time.Second)
		st := status(s, w, "1")
		if text = st.Meta.LastError; st.Meta.Status == jobs.Completed {
			text = "completed"
		}
		effects = steps(s)
	})
	return text, effects
}

// worker returns a function that begins two branches of one name with the steps, waits for them in
// order, or in the other if swapped is true, and then asks for the First of the branches.
func worker(swapped bool, a, b []string, fails bool, first ...int) func(c *workflow.Context, s *harness.Sim) error {
	return func(c *workflow.Context, s *harness.Sim) error {
		branch := func(names []string) *workflow.Branch[string] {
			return workflow.Go(c, "part", func(c *workflow.Context) (string, error) {
				for _, name := range names {
					if name == "sleep" {
						if err := workflow.Sleep(c, time.Hour); err != nil {
							return "", err
						}
						continue
					}
					if _, err := do(s, c, name); err != nil {
						return "", err
					}
				}
				if fails {
					return "", errNo
				}
				return "", nil
			})
		}
		all := []*workflow.Branch[string]{branch(a), branch(b), nothing(c, "none")}
		var compete []workflow.Waiter
		for _, i := range first {
			compete = append(compete, all[i])
		}
		if len(compete) > 0 {
			if _, err := workflow.First(c, compete...); err != nil {
				return err
			}
			return workflow.Sleep(c, time.Millisecond) // so that the history goes on behind it
		}
		if swapped {
			all[0], all[1] = all[1], all[0]
		}
		for _, b := range all[:2] {
			if _, err := b.Wait(c); err != nil {
				return err
			}
		}
		return nil
	}
}

// Proves F3, F17, F18. A repeat that does not follow its branches is stuck and runs no step; of a branch that
// has lost, or that is not waited for, entries may be left over.
func TestBranchesDiverge(t *testing.T) {
	ab, a := []string{"a", "b"}, []string{"a"}
	c := []string{"c", "sleep"}
	for name, change := range map[string]struct {
		before, after func(c *workflow.Context, s *harness.Sim) error
		want          string
	}{
		"the same":                   {worker(false, ab, a, false), worker(false, ab, a, false), "completed"},
		"a step more":                {worker(false, a, a, false), worker(false, ab, a, false), "the code goes on in branch part[0], which had ended"},
		"a step less":                {worker(false, ab, a, false), worker(false, a, a, false), `entry 2 of branch part[0] is step "b", the code ended before it`},
		"it fails":                   {worker(false, a, a, false), worker(false, a, a, true), `branch "part" had succeeded, and has failed now: no`},
		"another order":              {worker(false, a, a, false), worker(true, a, a, false), "the code waits for branch \"part\", which is number 1 of its scope, and had waited for number 0"},
		"a loser with less":          {worker(false, a, c, false, 0, 1), worker(false, a, nil, false, 0, 1), "completed"},
		"a loser with more":          {worker(false, a, c, false, 0, 1), worker(false, a, append(c, "d"), false, 0, 1), "completed"},
		"a loser that only has more": {worker(false, a, nil, false, 1, 0), worker(false, []string{"a", "d"}, nil, false, 1, 0), "completed"},
		"a winner with more":         {worker(false, a, c, false, 0, 1), worker(false, ab, c, false, 0, 1), "the code goes on in branch part[0], which had ended"},
		"other branches":             {worker(false, a, c, false, 0, 1), worker(false, a, c, false, 0, 2), "asks for the First of the branches [0 2] of its scope, and had asked for [0 1]"},
		"branches turned round":      {worker(false, a, c, false, 0, 1), worker(false, a, c, false, 1, 0), "asks for the First of the branches [1 0] of its scope, and had asked for [0 1]"},
	} {
		text, effects := deployed(t, change.before, change.after)
		if !strings.Contains(text, change.want) {
			t.Errorf("%s: %q, want %q", name, text, change.want)
		}
		for _, e := range effects {
			if e == "d#1" || strings.HasSuffix(name, "more") && e == "b#1" {
				t.Errorf("%s: step %s has run", name, e)
			}
		}
	}
}

// Proves F18. If several branches have ended, the one that ended first wins, wherever it stands.
func TestFirstOfEndedBranches(t *testing.T) {
	got := outcome(t, func(c *workflow.Context, _ *workflow.Workflow[int, string]) (string, error) {
		after := func(name string, d time.Duration) *workflow.Branch[string] {
			return workflow.Go(c, name, func(c *workflow.Context) (string, error) { return name, workflow.Sleep(c, d) })
		}
		a, b := after("a", 200*time.Millisecond), after("b", 100*time.Millisecond)
		if err := workflow.Sleep(c, 500*time.Millisecond); err != nil {
			return "", err
		}
		i, err := workflow.First(c, a, b)
		_, lost := a.Wait(c)
		v, winner := b.Wait(c)
		return fmt.Sprint(i, err, errors.Is(lost, workflow.ErrCancelled), v, winner), nil
	})
	if got != "1 <nil> trueb<nil>" {
		t.Error(got)
	}
}
