package why

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// poolRules are about a partition of a worker pool and its tasks.
var poolRules = []rule{
	{code: PoolPaused, means: "the pool is paused and begins no task", do: []string{"resume the pool"},
		holds: func(f *facts) (Answer, bool) {
			return Answer{Text: "The pool is paused."}, f.pending() && f.pool.Mode == workerpool.Paused
		}},
	{code: Draining, means: "the pool refuses tasks until those it has are done", do: []string{"wait for its last task", "resume the pool"},
		holds: func(f *facts) (Answer, bool) {
			return Answer{Text: fmt.Sprintf("The pool is draining; %d tasks are left.", f.pool.Pending+f.pool.Running)}, f.kind == aPartition && f.pool.Mode == workerpool.Draining
		}},
	{code: NoWorkHere, means: "the pool has no Work in the program, and no worker outside has claimed the task", do: []string{"start workers that claim tasks"},
		holds: noWorkHere},
	{code: WaitsForTime, means: "the task was submitted for a later time", do: []string{"wait for the time"},
		holds: waitsForTime},
	{code: BehindKey, means: "earlier tasks of the same key have not ended", do: []string{"wait for the task in `because`, or cancel it"},
		holds: func(f *facts) (Answer, bool) {
			t := &f.task
			return Answer{
				Text: fmt.Sprintf("%s of its key before it.", f.before()), Name: t.Status.Key, Since: t.Status.Enqueued, Because: f.ahead.linked(),
			}, f.kind == aTask && t.Spot == workerpool.BehindKey
		}},
	{code: InLine, means: "other tasks of its queue are before it", do: []string{"wait", "raise Concurrency, or the priority of such tasks"},
		holds: func(f *facts) (Answer, bool) {
			t := &f.task
			ok := f.waits() && f.pool.Mode != workerpool.Paused && t.Ahead > 0
			return Answer{Text: fmt.Sprintf("%s of its queue before it.", f.before()), Name: t.Status.Queue, Since: since(f)}, ok
		}},
	{code: WorkersBusy, means: "as many tasks run as may", do: []string{"wait for the task in `because`", "raise Concurrency"},
		holds: func(f *facts) (Answer, bool) {
			inside, _ := f.inside()
			ok := f.waits() && f.pool.Mode != workerpool.Paused && inside > 0 && !f.due()
			return Answer{Text: fmt.Sprintf("All workers are busy: %d tasks run.", len(f.pool.Executions)), Since: since(f), Because: f.ahead.linked()}, ok
		}},
}

// pending reports whether f is a partition with tasks that wait, or such a task, or a partition
// that is paused.
func (f *facts) pending() bool {
	return f.kind == aPartition || f.kind == aTask && f.task.Status.State == workerpool.Pending
}

// before counts the tasks before a task.
func (f *facts) before() string {
	switch {
	case f.task.More:
		return fmt.Sprintf("More than %d tasks are", workerpool.MaxPlace)
	case f.task.Ahead == 1:
		return "1 task is"
	}
	return fmt.Sprintf("%d tasks are", f.task.Ahead)
}

// noWorkHere tells of tasks that no worker here takes. A partition that has a Work begins a ready
// task in the turn that makes it ready, or leaves its alarm due.
func noWorkHere(f *facts) (Answer, bool) {
	inside, outside := f.inside()
	ready := f.waits() || f.kind == aPartition && f.pool.Pending > 0 && f.alarm == nil
	if !ready || inside > 0 || f.due() || f.pool.Mode == workerpool.Paused {
		return Answer{}, false
	}
	a := Answer{Text: "No worker takes tasks of this pool.", Since: since(f)}
	if outside > 0 {
		a.Text = fmt.Sprintf("It waits for a worker outside; %d tasks are claimed.", outside)
		a.Since = f.pool.Executions[outside-1].Began
	}
	return a, true
}

// since is when a task was submitted.
func since(f *facts) (t time.Time) {
	if f.kind == aTask {
		return f.task.Status.Enqueued
	}
	return t
}

// waitsForTime tells of a task with a time, or of a partition with such tasks alone.
func waitsForTime(f *facts) (Answer, bool) {
	switch {
	case f.kind == aPartition && f.pool.Pending > 0 && len(f.pool.Executions) == 0 && f.pool.Mode != workerpool.Paused && f.alarm != nil && !f.due():
		return Answer{Text: fmt.Sprintf("Its %d tasks wait for a time.", f.pool.Pending), Until: f.alarm.Due, Next: f.next()}, true
	case f.kind != aTask || f.task.Spot != workerpool.ForTime:
		return Answer{}, false
	}
	_, _, retries := f.progress()
	at := f.task.Status.NotBefore
	return Answer{Text: "It was submitted for a later time.", Since: f.task.Status.Enqueued, Until: at, Next: f.later(at)}, !retries && at.After(f.now)
}
