package why

import (
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
)

// facts are all that the rules look at: the stored rows of one object or one task, and the facts
// of the process that has the store open.
type facts struct {
	id     storage.ID
	taskID string // empty: of the object
	now    time.Time
	kind   kind

	store storeFacts
	live  *liveFacts // nil: no process has the store open, or it says nothing of the object

	unread    bool  // the host has ended, so no row can be read
	damage    error // of the rows of the object, none of which is among the facts then; nil: they are whole
	exists    bool
	lastEvent object.EventInfo   // of an object that does not exist
	letters   int                // dead letters
	dead      *object.DeadLetter // the newest of them that is an alarm's
	alarm     *object.AlarmState
	finding   *recovery.Finding // how its rows contradict one another
	run       *execution        // an open execution of the job, the object or the task
	hook      *execution        // an open call of a hook

	meta    jobs.Meta
	planned schedule // of a continuous job
	buffer  debounce.Look
	flow    workflow.Look
	circuit breaker.Status

	pool workerpool.Look
	task workerpool.TaskLook

	ahead *facts // of the task that is first in the chain of the key, or the oldest that runs
	child *facts // of the child that a workflow waits for
	other *facts // of the object that the turn waits for
}

// kind is a sort of thing that has reasons of its own.
type kind uint8

const (
	plainObject kind = iota
	aJob
	aPartition
	aTask
	aBreaker
)

// schedule tells whether the definition of a job has one.
type schedule uint8

const (
	unknown schedule = iota // the definition was not given
	has
	hasNone
)

// storeFacts are those of the whole store.
type storeFacts struct {
	failed   string // the error that has ended it
	closing  bool
	cold     bool // no process has it open
	dormant  bool
	noSpace  string
	previous storage.Previous
	parked   bool // the class is not registered
}

// execution is an open execution.
type execution struct {
	engine.Execution
	alive bool            // its work runs in this process
	loss  recovery.Action // if it is not alive
}

// jobType tells whether f is of a job of the type.
func (f *facts) jobType(name string) bool { return f.kind == aJob && f.meta.Type == name }

// running reports whether a job waits for its next run, or for an event.
func (f *facts) running() bool { return f.kind == aJob && f.meta.Status == jobs.Running }

// due reports whether the alarm is due.
func (f *facts) due() bool { return f.alarm != nil && !f.alarm.Due.After(f.now) }

// next is the time of the alarm if it is to come; else zero.
func (f *facts) next() time.Time {
	if f.alarm == nil || f.due() || f.store.cold {
		return time.Time{}
	}
	return f.alarm.Due
}

// later is t if it is to come in this process; else zero.
func (f *facts) later(t time.Time) time.Time {
	if f.store.cold || !t.After(f.now) {
		return time.Time{}
	}
	return t
}

// progress is the run that waits for its next execution; ok is false if none does.
func (f *facts) progress() (r jobs.Run, at time.Time, ok bool) {
	switch {
	case f.kind == aTask && f.task.Status.State == workerpool.Pending && f.task.Run.Number > 0:
		return f.task.Run, f.task.Status.NotBefore, true
	case f.running() && !f.meta.Run.RetryAt.IsZero():
		return f.meta.Run, f.meta.Run.RetryAt, true
	}
	return r, at, false
}

// waits reports whether a task waits for a worker: it is ready, or its time has come.
func (f *facts) waits() bool {
	if f.kind != aTask || f.task.Status.State != workerpool.Pending {
		return false
	}
	return f.task.Spot == workerpool.InQueue || f.task.Spot == workerpool.ForTime && !f.task.Status.NotBefore.After(f.now)
}

// inside counts the executions of a pool that run in the process of the pool, and outside those
// that workers outside hold.
func (f *facts) inside() (inside, outside int) {
	for _, x := range f.pool.Executions {
		if x.Outside {
			outside++
		} else {
			inside++
		}
	}
	return inside, outside
}

// record is how object.HeldWork names the execution.
func (x *execution) record() string { return strings.TrimSpace(x.Subject + " " + x.Key) }
