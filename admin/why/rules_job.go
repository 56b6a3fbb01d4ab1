package why

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/recovery"
)

// jobRules are about the status and the executions of a job or a task.
var jobRules = []rule{
	{code: Paused, means: "the job is paused", do: []string{"resume it"},
		holds: func(f *facts) (Answer, bool) {
			m := &f.meta
			return Answer{
				Text: "It is paused.", Error: m.StopReason, Since: m.UpdatedAt, Until: m.PausedUntil, Next: f.later(m.PausedUntil),
			}, f.kind == aJob && m.Status == jobs.Paused
		}},
	{code: Pausing, means: "the job will be paused when its run has ended", do: []string{"wait, or resume it"},
		holds: func(f *facts) (Answer, bool) {
			return Answer{Text: "It will be paused when its run has ended.", Error: f.meta.StopReason, Until: f.meta.PausedUntil}, f.kind == aJob && f.meta.Pausing
		}},
	{code: Ended, means: "the job or the task has ended: it has failed, was stopped, was cancelled or is done", do: []string{"resume, retry or replay it if it has failed", "start another if it is done"},
		holds: ended},
	{code: Executing, live: true, means: "a run is under way, or was when the process ended", do: []string{"wait"},
		holds: executing},
	{code: HeldOutside, means: "a worker outside holds the task until the end of its lease", do: []string{"wait for its Ack", "wait for the end of the lease"},
		holds: func(f *facts) (Answer, bool) {
			x := f.run
			if x == nil || !x.Outside {
				return Answer{}, false
			}
			return Answer{Text: fmt.Sprintf("A worker outside holds it, attempt %d.", x.Run.Failed()+1), Since: x.Began, Until: x.Lease, Next: f.later(x.Lease)}, true
		}},
	{code: Lost, live: true, means: "the process or the instance that ran it is gone, and it is going to be recovered", do: []string{"wait for the recovery", "open the store, if no process has it open"},
		holds: lost},
	{code: Retry, means: "the last attempt has failed, and it is tried again later", do: []string{"wait", "mend what it needs", "trigger it to try at once"},
		holds: retry},
}

// ended tells of a job or a task that has ended.
func ended(f *facts) (Answer, bool) {
	switch {
	case f.kind == aJob && f.meta.Status.Ended():
		return endedJob(f), true
	case f.kind == aTask && f.task.Status.State.Ended():
		s := &f.task.Status
		a := Answer{Text: fmt.Sprintf("It has ended as %s.", s.State), Since: s.Ended}
		if s.State == workerpool.Dead {
			a.Text = "It has failed for good and is a dead letter."
			if n := len(s.Failures); n > 0 {
				a.Error = s.Failures[n-1].Error
			}
		}
		return a, true
	}
	return Answer{}, false
}

func endedJob(f *facts) Answer {
	m := &f.meta
	a := Answer{Text: fmt.Sprintf("It has ended as %s.", m.Status), Since: m.EndedAt, Error: m.LastError}
	if a.Since.IsZero() {
		a.Since = m.UpdatedAt
	}
	if a.Error == "" {
		a.Error = m.StopReason
	}
	end := m.RestEnd()
	switch {
	case m.Stale:
		a.Text += " It is stale."
	case m.Hooks == 0 && !m.StaleAt.IsZero():
		a.Text += " It becomes stale when it stays so."
	}
	if !m.RetireAt.IsZero() && m.Hooks == 0 {
		a.Text += " It is removed when its retention is over."
	}
	if m.Hooks == 0 {
		a.Until, a.Next = end, f.later(end)
	}
	return a
}

// executing tells of work that is under way, as far as is known.
func executing(f *facts) (Answer, bool) {
	x := f.run
	if x == nil {
		x = f.hook
	}
	switch {
	case x != nil && x.Outside:
		return Answer{}, false
	case f.kind == aPartition && len(f.pool.Executions) > 0:
		return executingTasks(f)
	case x == nil || !x.alive && !f.store.cold || f.heldBack(x):
		return Answer{}, false
	}
	a := Answer{Since: x.Began, Until: x.Lease}
	verb := "is under way"
	if f.store.cold {
		verb, a.Until = "was under way when the process ended", time.Time{}
	}
	switch {
	case x.Hook:
		a.Text = fmt.Sprintf("The call of a hook %s.", verb)
	case x.Run.Number == 0:
		a.Text = fmt.Sprintf("An execution %s.", verb)
	case f.kind == aTask:
		a.Text = fmt.Sprintf("Attempt %d %s.", x.Run.Failed()+1, verb)
	default:
		a.Text = fmt.Sprintf("Run %d %s, execution %d of it.", x.Run.Number, verb, x.Run.Attempt)
	}
	return a, true
}

// executingTasks is executing for a partition.
func executingTasks(f *facts) (Answer, bool) {
	n, verb := len(f.pool.Executions), "run"
	if f.store.cold {
		verb = "ran when the process ended"
	}
	return Answer{Text: fmt.Sprintf("Its tasks run: %d %s, %d wait.", n, verb, f.pool.Pending), Since: f.pool.Executions[0].Began}, true
}

// causes has a sentence for each cause of a loss.
var causes = map[recovery.Cause]string{
	recovery.CauseCrash:    "Its process has died",
	recovery.CauseShutdown: "A shutdown has cut it off",
	recovery.CauseStale:    "Its work is gone, though its process lives",
	recovery.CauseLease:    "Its lease has ended",

	recovery.CauseOwnerLost: "Another node has run it, which was replaced",
}

// lost tells of an execution without its work.
func lost(f *facts) (Answer, bool) {
	x := f.run
	if x == nil || x.alive || x.Outside || x.loss.Verb == "" {
		return Answer{}, false
	}
	does := "it is repeated"
	if x.loss.Verb == recovery.Fail {
		does = "it was lost too often and is given up"
	}
	if f.kind == aPartition {
		does = "its tasks are repeated"
	}
	text := fmt.Sprintf("%s; %s. It was recovered %d times before.", causes[x.loss.Cause], does, x.Run.Recoveries)
	at := f.next() // the alarm knows the limits of the definition
	switch {
	case f.heldBack(x) || f.alarmHeldBack(): // until its trial, whenever the alarm is due
		at = time.Time{}
	case at.IsZero():
		at = f.later(x.loss.At)
	}
	return Answer{Text: text, Since: x.Began, Next: at}, true
}

// retry tells of a run that waits for another attempt.
func retry(f *facts) (Answer, bool) {
	r, at, ok := f.progress()
	if !ok || !at.After(f.now) {
		return Answer{}, false
	}
	a := Answer{Until: at, Next: f.later(at), Error: r.LastError, Since: r.FirstAt}
	switch {
	case r.Recovering:
		a.Text = "Its last execution was lost, and it is repeated."
	case r.Failed() > 0:
		a.Text = fmt.Sprintf("Attempt %d has failed, and it is tried again.", r.Failed())
	default:
		a.Text = "It has asked to be run again later."
	}
	return a, true
}
