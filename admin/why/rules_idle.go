package why

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// idleRules are about objects and jobs that wait for a time or an event, or for nothing.
var idleRules = []rule{
	{code: Collecting, means: "a debounce collects events for the next flush", do: []string{"wait", "flush it now"},
		holds: func(f *facts) (Answer, bool) {
			ok := f.jobType("debounce") && f.buffer.Waiting > 0 && (f.running() && f.alarm != nil || f.meta.Status == jobs.Executing)
			a := Answer{Text: fmt.Sprintf("%d events wait for the next flush.", f.buffer.Waiting), Since: f.buffer.First}
			if f.running() {
				a.Next = f.next()
			}
			return a, ok
		}},
	{code: Scheduled, means: "the alarm is set, and its time has not come", do: []string{"wait", "trigger the job to run it at once"},
		holds: scheduled},
	{code: NeedsTrigger, means: "the job has no schedule and was not triggered", do: []string{"trigger it"},
		holds: func(f *facts) (Answer, bool) {
			text := "It has no schedule and runs when it is triggered."
			if f.planned == unknown {
				text = "No alarm is set, so it runs when it is triggered. That is right if its definition has no schedule, and a mistake otherwise."
			}
			return Answer{Text: text, Since: f.meta.UpdatedAt}, f.jobType("continuous") && f.running() && f.alarm == nil && f.planned != has
		}},
	{code: NeedsEvent, means: "a debounce has no events, and ends by itself if none comes", do: []string{"add an event"},
		holds: func(f *facts) (Answer, bool) {
			ok := f.jobType("debounce") && f.running() && f.buffer.Waiting == 0 && f.buffer.Closed == 0
			return Answer{Text: "It has no events.", Since: f.meta.UpdatedAt, Next: f.next()}, ok && f.meta.Run.RetryAt.IsZero()
		}},
	{code: IdleByDesign, means: "no alarm is set and nothing is due", do: []string{"call it"},
		holds: func(f *facts) (Answer, bool) {
			idle := f.kind == plainObject && f.run == nil || f.kind == aBreaker && f.circuit.State != breaker.Open ||
				f.kind == aPartition && f.pool.Pending == 0 && f.pool.Running == 0 && f.hook == nil && f.pool.Mode == workerpool.Active
			return Answer{Text: "Nothing is due."}, idle && f.exists && f.alarm == nil && !f.orphaned()
		}},
	{code: Orphan, means: "something is to be done and no alarm is set, or rows contradict one another", do: []string{"recover --repair", "report a bug"},
		holds: func(f *facts) (Answer, bool) {
			a := Answer{Text: "No alarm wakes it, though it has something to do."}
			if f.finding != nil && !f.finding.Suspect {
				a.Error = f.finding.Problem
			}
			return a, f.orphaned()
		}},
}

// scheduled tells of an alarm in the future that no other rule explains.
func scheduled(f *facts) (Answer, bool) {
	if f.alarm == nil || f.due() || f.alarm.Attempts > 0 {
		return Answer{}, false
	}
	a := Answer{Text: "Its alarm is set.", Until: f.alarm.Due, Next: f.next()}
	switch f.kind {
	case plainObject:
		return a, true
	case aPartition:
		return a, f.pool.Pending == 0 && f.pool.Running == 0
	case aJob:
		if f.jobType("continuous") {
			a.Text = fmt.Sprintf("Run %d is due later.", f.meta.RunCount+1)
		}
		return a, f.running() && !f.knownWait()
	}
	return Answer{}, false
}

// knownWait reports whether a rule of its own tells why a running job has its alarm.
func (f *facts) knownWait() bool {
	if _, at, ok := f.progress(); ok && at.After(f.now) {
		return true
	}
	switch f.meta.Type {
	case "debounce":
		return f.buffer.Waiting > 0 || f.buffer.Closed == 0 && f.meta.Run.RetryAt.IsZero()
	case "workflow":
		return f.waitsFor() != nil
	}
	return false
}

// orphaned reports whether nothing wakes an object that has something to do (R3), or whether its
// rows contradict one another. A suspicion of the scrubber counts if the rows of the type tell
// that something is due.
func (f *facts) orphaned() bool {
	switch {
	case f.kind == aTask || !f.exists:
		return false
	case f.finding != nil && !f.finding.Suspect:
		return true
	case !f.running() || f.alarm != nil:
		return false
	case f.jobType("debounce"):
		return f.buffer.Waiting > 0 || f.buffer.Closed > 0 || !f.meta.Run.RetryAt.IsZero()
	case f.jobType("workflow"):
		w := f.waitsFor()
		return w == nil || !w.Until.IsZero()
	case f.jobType("continuous"):
		return f.planned == has || !f.meta.Run.RetryAt.IsZero() || !f.meta.NextAt.IsZero()
	}
	return true
}
