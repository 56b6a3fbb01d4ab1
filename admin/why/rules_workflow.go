package why

import (
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
)

// Kinds of workflow.Wait.
const (
	waitSignal  = "signal"
	waitSleep   = "sleep"
	waitChild   = "child"
	waitBreaker = "breaker"
	waitRetry   = "retry"
)

// workflowRules are about the waits of a workflow, about breakers, and about runs that go on badly.
var workflowRules = []rule{
	{code: WaitsForSignal, means: "a workflow waits for a signal", do: []string{"send the signal"},
		holds: waitRule(waitSignal, "It waits for a signal.")},
	{code: WaitsForTimer, means: "a workflow sleeps", do: []string{"wait for the time"},
		holds: waitRule(waitSleep, "It sleeps.")},
	{code: WaitsForChild, means: "a workflow waits for its child", do: []string{"ask for the reason of the child"},
		holds: func(f *facts) (Answer, bool) {
			a, ok := waitRule(waitChild, "It waits for its child.")(f)
			a.Because = f.child.linked()
			return a, ok
		}},
	{code: Step, means: "a step of a workflow waits for its next attempt", do: []string{"wait", "mend what it needs"},
		holds: waitRule(waitRetry, "A step has failed, or has asked to be run again, and is tried later.")},
	{code: BreakerOpen, means: "the breaker of a dependency is open", do: []string{"mend the dependency", "reset the breaker"},
		holds: breakerOpen},
	{code: Stuck, means: "a run cannot go on with this code, or in this process", do: []string{"deploy code that follows its history", "resume it"},
		holds: func(f *facts) (Answer, bool) {
			m := &f.meta
			a := Answer{Text: "It cannot go on, and is tried again.", Error: m.LastError, Since: m.Run.FirstAt, Until: m.Run.RetryAt, Next: f.later(m.Run.RetryAt)}
			if m.Run.RetryAt.IsZero() {
				a.Text = "It was lost too often, and waits for Resume or Cancel."
			}
			return a, f.kind == aJob && m.Status == jobs.Stuck
		}},
	{code: Undoing, means: "a workflow has failed or was cancelled, and its undos run", do: []string{"wait for its end"},
		holds: func(f *facts) (Answer, bool) {
			ok := f.jobType("workflow") && f.flow.Undoing && !f.meta.Status.Ended()
			text := "Its function has returned an error, and the steps are undone."
			if f.flow.Cancelling {
				text = "It was cancelled, and its steps are undone."
			}
			return Answer{Text: text, Name: f.flow.Undo, Error: f.flow.CancelReason}, ok
		}},
}

// waitsFor is the first wait of a suspended run that a rule is about, in the order of the rules;
// nil: there is none.
func (f *facts) waitsFor() *workflow.Wait {
	for _, kind := range [...]string{waitSignal, waitSleep, waitChild, waitRetry, waitBreaker} {
		if w := f.waitOf(kind); w != nil {
			return w
		}
	}
	return nil
}

// waitOf is the first wait of a kind of a suspended run; nil: there is none. One that has come
// makes the run due.
func (f *facts) waitOf(kind string) *workflow.Wait {
	if !f.jobType("workflow") || !f.running() || !f.meta.Run.RetryAt.IsZero() || f.due() {
		return nil
	}
	for i, w := range f.flow.Waits {
		if w.Kind == kind {
			return &f.flow.Waits[i]
		}
	}
	return nil
}

// waitRule is the rule for a kind of wait.
func waitRule(kind, text string) func(f *facts) (Answer, bool) {
	return func(f *facts) (Answer, bool) {
		w := f.waitOf(kind)
		if w == nil {
			return Answer{}, false
		}
		return Answer{Text: text, Name: w.Name, Since: f.flow.Since, Until: w.Until, Next: f.wake(w.Until)}, true
	}
}

// wake is when a run goes on: at the time of its wait, or sooner for another of its waits.
func (f *facts) wake(until time.Time) time.Time {
	if at := f.next(); !at.IsZero() {
		return at
	}
	return f.later(until)
}

// breakerOpen tells of a breaker, or of a run that waits for one.
func breakerOpen(f *facts) (Answer, bool) {
	if f.kind == aBreaker && f.circuit.State == breaker.Open {
		b := &f.circuit
		return Answer{Text: "The breaker is open and refuses calls.", Error: b.Cause, Since: b.Since, Until: b.Until, Next: f.later(b.Until)}, true
	}
	return waitRule(waitBreaker, "The breaker of a step is open.")(f)
}
