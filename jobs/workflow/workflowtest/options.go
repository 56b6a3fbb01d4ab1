package workflowtest

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/internal/standin"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// Option is a part of the world that the run finds.
type Option func(*world)

// world is all that a run finds beside its input.
type world struct {
	steps  map[string]any // stand-ins
	asked  map[string]bool
	defs   []object.Definition
	acts   []act
	begins []func()
	looks  []func() any

	problem string // of a run
}

// act is something that happens to the run.
type act struct {
	after time.Duration
	what  string
	do    func(s *harness.Sim, w verbs) error
}

// verbs are those that acts call.
type verbs interface {
	workflow.Named
	Cancel(ctx context.Context, from object.Caller, id, reason string) error
}

// Step has fn stand in for the step with this name, in the workflow and in those of With.
// It must have the type of the step. A step without a stand-in runs its own function. A
// stand-in that no run has asked for fails the test.
func Step[T any](name string, fn func(ctx context.Context) (T, error)) Option {
	return func(w *world) { w.steps[name] = fn }
}

// Undo has fn stand in for the undo with this name. Unlike that of a step, it need not be
// asked for.
func Undo(name string, fn func(ctx context.Context) error) Option {
	return func(w *world) { w.steps["undo "+name], w.asked["undo "+name] = fn, true }
}

// Signal sends a signal that long after the start. Leave a second between a signal and the
// time at which the run gives up its wait, because a crash delays the run by 100 ms.
func Signal[T any](after time.Duration, signal *workflow.Signal[T], v T) Option {
	return func(w *world) {
		key := fmt.Sprint(len(w.acts))
		w.acts = append(w.acts, act{after, fmt.Sprintf("signal %q", signal.Name()), func(s *harness.Sim, w verbs) error {
			return signal.Send(s.Context(), s, w, id, v, object.Idempotent(key, 0))
		}})
	}
}

// Cancel cancels the run that long after the start.
func Cancel(after time.Duration) Option {
	return func(w *world) {
		w.acts = append(w.acts, act{after, "Cancel", func(s *harness.Sim, w verbs) error {
			return w.Cancel(s.Context(), s, id, "cancelled by the test")
		}})
	}
}

// With adds definitions that the workflow uses: those of its children, and of objects and
// jobs that get messages.
func With(defs ...object.Definition) Option {
	return func(w *world) { w.defs = append(w.defs, defs...) }
}

// Outside has begin called before each run, and look at its end: the value that look returns
// must be the same each time. For example, begin empties the book of a bank that knows keys,
// and look returns the book. So an effect outside of a step is found, because each repeat does
// it again.
func Outside(begin func(), look func() any) Option {
	return func(w *world) { w.begins, w.looks = append(w.begins, begin), append(w.looks, look) }
}

// host gives a host the stand-ins.
func (w *world) host(o *object.Options) {
	o.Seams.Probe = standin.Probe{Probe: o.Seams.Probe, Step: func(name string) any {
		w.asked[name] = true
		return w.steps[name]
	}}
}
