// Package workflowtest is a unit test of a workflow in one call:
//
//	out, err := workflowtest.Run(t, Orders, order,
//		workflowtest.Step("reserve", func(ctx context.Context) (Hold, error) { return Hold{ID: "h1"}, nil }),
//		workflowtest.Signal(time.Hour, Approved, true))
//
// Time is virtual, so a run that sleeps for a year takes milliseconds. Run executes the
// workflow once, and then again with a crash at each point that it has passed. So the function
// repeats from each stored part of its history, as it must after a crash or a deploy, and each
// time the outcome must be that of the first run. A function that does not do the same in each
// repeat fails the test: one that asks time.Now, math/rand or the order of a map, or that acts
// outside of its steps. Only tests import this package.
package workflowtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

const (
	id     = "test" // of the run
	budget = 5000   // crashes, chosen evenly if there are more points
)

// Run executes the workflow with an input, once without a crash and once for each point that
// it passes, with a crash there. It returns the outcome as Workflow.Wait does: the output, or
// an error that is a workflow.ErrFailed or ErrCancelled. It ends the test if an outcome differs
// from the first, if a run, or a job of With, is stuck, or if a run does not end.
//
// Outputs are equal if their JSON is, or if Out has a method Equal(Out) bool that says so. An
// output with times needs one, because a crash delays the run. Errors are equal if their texts
// are.
func Run[In, Out any](t testing.TB, w *workflow.Workflow[In, Out], in In, opts ...Option) (Out, error) {
	t.Helper()
	around := &world{steps: make(map[string]any), asked: make(map[string]bool)}
	for _, o := range opts {
		o(around)
	}
	slices.SortStableFunc(around.acts, func(a, b act) int { return int(a.after - b.after) })
	var first *ending[Out]
	_, err := harness.Explore(func(s *harness.Sim) {
		got := play(s, w, in, around)
		switch {
		case first == nil:
			first = got
		case got.started: // else it is another life of the id: its random numbers and keys are others
			got.compare(s, around, first)
		}
	}, harness.Budget(budget), harness.Shards(1), harness.NoStuck, harness.OneEnd, harness.HostOptions(around.host))
	if err != nil {
		t.Fatalf("workflowtest: %s: %s", w.Name(), around.text(err))
	}
	for _, name := range slices.Sorted(maps.Keys(around.steps)) {
		if !around.asked[name] {
			t.Errorf("workflowtest: %s: no run has asked for step %q: correct the name, or leave its stand-in out", w.Name(), name)
		}
	}
	return first.out, first.err
}

// text is the problem of a failure and its time line. A line for harness.Replay would be of
// no use, because the scenario is that of this package.
func (w *world) text(err error) string {
	f, ok := errors.AsType[*harness.Failure](err)
	if !ok {
		return err.Error()
	}
	problem := w.problem
	if problem == "" { // the simulation has found another
		problem = f.Problem + "\n" + f.Detail
	}
	if f.Timeline != "" {
		problem = strings.TrimSpace(problem) + "\n\nTIMELINE\n" + f.Timeline
	}
	return problem
}

// ending is how a run ended.
type ending[Out any] struct {
	out     Out
	err     error
	outside []string // as text, of each Outside
	started bool     // without a crash
}

// compare ends the simulation if a run has not ended as the first did.
func (e *ending[Out]) compare(s *harness.Sim, w *world, first *ending[Out]) {
	if got, want := e.outcome(), first.outcome(); got != want && !e.equals(first) {
		w.fail(s, "the outcome is another than in the first run: the function does not do the same in each repeat\nfirst: %s\nnow:   %s\n%s", want, got, remedy)
	}
	for i, got := range e.outside {
		if want := first.outside[i]; got != want {
			w.fail(s, "the outside is another than after the first run: a repeat has an effect outside of a step\nfirst: %s\nnow:   %s\n%s", want, got, outsideRemedy)
		}
	}
}

// equals asks the output, if it has a method for that.
func (e *ending[Out]) equals(first *ending[Out]) bool {
	out, ok := any(e.out).(interface{ Equal(Out) bool })
	return ok && e.err == nil && first.err == nil && out.Equal(first.out)
}

// Remedies.
const (
	remedy        = "Use Now and Rand of the Context, put what comes from outside into a step, and sort the keys of a map."
	outsideRemedy = "Put it into a step, and hand workflow.Key(ctx) to the other side, which then knows a repeat."
)

// outcome is the output or the error as text.
func (e *ending[Out]) outcome() string {
	if e.err != nil {
		return "error: " + e.err.Error()
	}
	raw, err := json.Marshal(e.out)
	if err != nil {
		return fmt.Sprintf("%+v", e.out)
	}
	return string(raw)
}
