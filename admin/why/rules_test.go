package why

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
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

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// in is a time that is to come, and ago one that has passed.
func in(d time.Duration) time.Time  { return now.Add(d) }
func ago(d time.Duration) time.Time { return now.Add(-d) }

// hostile is a name, a key or an error that a user may choose.
const hostile = "<script>\x1b[2J"

func armed(at time.Time) *object.AlarmState { return &object.AlarmState{Due: at, Scheduled: at} }

// with are the facts of a job.
func job(kind string, s jobs.Status, set ...func(*facts)) *facts {
	f := &facts{kind: aJob, exists: true, meta: jobs.Meta{Type: kind, Status: s, UpdatedAt: ago(time.Hour), CreatedAt: ago(time.Hour)}}
	return f.with(set...)
}

func (f *facts) with(set ...func(*facts)) *facts {
	for _, fn := range set {
		fn(f)
	}
	return f
}

func alarmAt(at time.Time) func(*facts) { return func(f *facts) { f.alarm = armed(at) } }

// pending are the facts of a task that waits.
func pending(spot workerpool.Spot, set ...func(*facts)) *facts {
	f := &facts{kind: aTask, taskID: "0-1", exists: true}
	f.task.Spot = spot
	f.task.Status.Enqueued, f.task.Status.Key, f.task.Status.Queue = ago(time.Hour), hostile, hostile
	f.pool.Stats = workerpool.Stats{Submitted: 1, Pending: 1}
	return f.with(set...)
}

// runs adds an execution of a task to its pool.
func runs(outside bool) func(*facts) {
	return func(f *facts) {
		x := engine.Execution{Began: ago(time.Minute), Lease: in(time.Minute), Outside: outside}
		f.pool.Executions = append(f.pool.Executions, workerpool.LookExecution{Execution: x, Number: 7})
		f.alarm = armed(in(time.Minute))
	}
}

func live(e object.Explanation) *facts {
	return &facts{exists: true, live: &e}
}

// suspended are the facts of a workflow that waits.
func suspended(w workflow.Wait, set ...func(*facts)) *facts {
	f := job("workflow", jobs.Running, set...)
	f.flow.Waits, f.flow.Since = []workflow.Wait{w}, ago(time.Hour)
	return f
}

// row is a row of the test: facts and the answer that they give.
type row struct {
	name  string
	facts *facts
	want  Answer // its Code, Since, Until, Next, Name and Error
	also  []Code
}

var open = execution{Execution: engine.Execution{Began: ago(time.Minute), Lease: in(time.Minute), Run: jobs.Run{Number: 3, Attempt: 1}}, alive: true}

// gone is an execution of a process that has died.
var gone = execution{Execution: open.Execution, loss: recovery.Action{Verb: recovery.Rerun, At: in(time.Second), Cause: recovery.CauseCrash}}

var outside = execution{Execution: engine.Execution{Began: ago(time.Minute), Lease: in(time.Minute), Outside: true}}

// rows has the facts of each code.
func rows() []row {
	failing := jobs.Run{Number: 2, Failures: 1, FirstAt: ago(time.Minute), RetryAt: in(time.Second), LastError: hostile}
	return []row{
		{"a failed store", &facts{store: storeFacts{failed: hostile, closing: true}, unread: true}, Answer{Code: StorageFailed, Error: hostile}, nil},
		{"damaged rows", &facts{damage: errors.New(hostile), store: storeFacts{cold: true, previous: storage.Previous{Epoch: 1, Clean: true}}}, Answer{Code: NotOpen}, []Code{Unreadable}},
		{"damaged rows in a host", &facts{damage: errors.New(hostile)}, Answer{Code: Unreadable, Error: hostile}, nil},
		{"a shutdown", &facts{store: storeFacts{closing: true}, unread: true}, Answer{Code: Closing}, nil},
		{"a dormant store", &facts{store: storeFacts{cold: true, dormant: true}}, Answer{Code: Dormant}, []Code{NotOpen, Absent}},
		{"a dormant store with a host", job("continuous", jobs.Running, alarmAt(ago(1)), func(f *facts) { f.store.dormant = true }), Answer{Code: Dormant}, []Code{AlarmQueued}},
		{"a new store", &facts{store: storeFacts{cold: true}}, Answer{Code: NotOpen}, []Code{Absent}},
		{"a killed program", job("continuous", jobs.Executing, func(f *facts) { f.store.cold, f.run = true, &gone }), Answer{Code: NotOpen}, []Code{Executing, Lost}},
		{"a full disk", job("continuous", jobs.Paused, func(f *facts) { f.store.noSpace = hostile }), Answer{Code: NoSpace, Error: hostile}, []Code{Paused}},
		{"a class that is gone", job("continuous", jobs.Running, alarmAt(ago(1)), func(f *facts) { f.store.parked = true }), Answer{Code: Parked}, []Code{AlarmQueued}},
		{"nothing", &facts{lastEvent: object.EventInfo{At: ago(time.Hour), Kind: hostile}, letters: 2}, Answer{Code: Absent, Since: ago(time.Hour), Name: hostile}, nil},
		{"no job", &facts{kind: aJob}, Answer{Code: Absent}, nil},
		{"no task", &facts{kind: aTask}, Answer{Code: Absent}, nil},
		{"a constructor", live(object.Explanation{Constructor: &object.ConstructorFailure{Times: 2, Error: hostile, Next: in(time.Second)}}),
			Answer{Code: ConstructorFailing, Error: hostile, Until: in(time.Second)}, []Code{IdleByDesign}},
		{"a refused call", live(object.Explanation{Deadlock: &object.RefusedCall{At: ago(time.Minute - 1), To: storage.ID{Class: "a", Name: "b"}, Error: hostile}}),
			Answer{Code: DeadlockRefused, Error: hostile, Since: ago(time.Minute - 1), Name: "a/b"}, []Code{IdleByDesign}},
		{"a call refused long ago", live(object.Explanation{Deadlock: &object.RefusedCall{At: ago(time.Minute)}}), Answer{Code: IdleByDesign}, nil},
		{"a turn", live(object.Explanation{Turn: &object.TurnState{Method: hostile, Since: ago(young)}}), Answer{Code: TurnRunning, Since: ago(young), Name: hostile}, []Code{IdleByDesign}},
		{"a young turn", live(object.Explanation{Turn: &object.TurnState{Since: ago(young - 1)}}), Answer{Code: IdleByDesign}, nil},
		{"a turn that waits", live(object.Explanation{Turn: &object.TurnState{Since: ago(young), WaitsFor: []storage.ID{{Class: "a", Name: "b"}}}}),
			Answer{Code: TurnWaits, Since: ago(young), Name: "a/b"}, []Code{IdleByDesign}},
		{"a lent turn", live(object.Explanation{LentTurns: 1, Lent: []object.TurnState{{Method: hostile, Since: ago(young)}}}), Answer{Code: TurnLent, Since: ago(young), Name: hostile}, []Code{IdleByDesign}},
		{"a turn lent just now", live(object.Explanation{LentTurns: 1, Lent: []object.TurnState{{Since: ago(young - 1)}}}), Answer{Code: IdleByDesign}, nil},
		{"a mailbox", live(object.Explanation{Mailbox: object.Mailbox{Calls: 1, Oldest: ago(young)}}), Answer{Code: Mailbox, Since: ago(young)}, []Code{IdleByDesign}},
		{"a young mailbox", live(object.Explanation{Mailbox: object.Mailbox{Calls: 1, Oldest: ago(young - 1)}}), Answer{Code: IdleByDesign}, nil},
		{"a full mailbox", live(object.Explanation{Mailbox: object.Mailbox{Calls: 1, Oldest: ago(1), Refusing: true}}), Answer{Code: Mailbox, Since: ago(1)}, []Code{IdleByDesign}},
		{"a slow disk", live(object.Explanation{NotDurable: true, Syncing: ago(young)}), Answer{Code: NotDurable, Since: ago(young)}, []Code{IdleByDesign}},
		{"a disk", live(object.Explanation{NotDurable: true, Syncing: ago(young - 1)}), Answer{Code: IdleByDesign}, nil},

		{"a pause", job("continuous", jobs.Paused, func(f *facts) { f.meta.StopReason = hostile }), Answer{Code: Paused, Since: ago(time.Hour), Error: hostile}, nil},
		{"a pause with an end", job("debounce", jobs.Paused, alarmAt(in(9)), func(f *facts) { f.meta.PausedUntil = in(9) }),
			Answer{Code: Paused, Since: ago(time.Hour), Until: in(9), Next: in(9)}, nil},
		{"a pause to come", job("continuous", jobs.Executing, func(f *facts) { f.run, f.meta.Pausing = &open, true }), Answer{Code: Pausing}, []Code{Executing}},
		{"a failure", job("continuous", jobs.Failed, func(f *facts) { f.meta.LastError = hostile }), Answer{Code: Ended, Since: ago(time.Hour), Error: hostile}, nil},
		{"an end with a retention", job("workflow", jobs.Completed, alarmAt(in(9)), func(f *facts) { f.meta.EndedAt, f.meta.RetireAt = ago(3), in(9) }),
			Answer{Code: Ended, Since: ago(3), Until: in(9), Next: in(9)}, nil},
		{"a dead task", &facts{kind: aTask, exists: true, task: workerpool.TaskLook{Status: workerpool.Status[struct{}]{State: workerpool.Dead, Ended: ago(3), Failures: []workerpool.Failure{{Error: "x"}, {Error: hostile}}}}},
			Answer{Code: Ended, Since: ago(3), Error: hostile}, nil},
		{"a run", job("workflow", jobs.Executing, func(f *facts) { f.run = &open }), Answer{Code: Executing, Since: open.Began, Until: open.Lease}, nil},
		{"a claimed task", pending(workerpool.NoSpot, runs(true), func(f *facts) { f.task.Status.State, f.run = workerpool.Running, &outside }),
			Answer{Code: HeldOutside, Since: outside.Began, Until: outside.Lease, Next: outside.Lease}, nil},
		{"a lost run", job("continuous", jobs.Executing, func(f *facts) { f.run = &gone }), Answer{Code: Lost, Since: gone.Began, Next: in(time.Second)}, nil},
		{"a lost run with an alarm", job("continuous", jobs.Executing, alarmAt(in(9)), func(f *facts) { f.run = &gone }), Answer{Code: Lost, Since: gone.Began, Next: in(9)}, nil},
		{"a lost run whose alarm is held back", job("continuous", jobs.Executing, alarmAt(ago(1)), func(f *facts) {
			f.run, f.live = &gone, &object.Explanation{Held: []object.HeldWork{{NotBefore: in(9)}}}
		}), Answer{Code: Lost, Since: gone.Began}, []Code{AlarmSuspect, AlarmQueued}},
		{"a lost run whose alarm is on trial", job("continuous", jobs.Executing, alarmAt(ago(1)), func(f *facts) {
			f.run, f.live = &gone, &object.Explanation{Held: []object.HeldWork{{OnTrial: true}}}
		}), Answer{Code: Lost, Since: gone.Began, Next: in(time.Second)}, []Code{AlarmSuspect, AlarmQueued}},
		{"a failed run", job("continuous", jobs.Running, alarmAt(in(time.Second)), func(f *facts) { f.meta.Run = failing }),
			Answer{Code: Retry, Since: ago(time.Minute), Until: in(time.Second), Next: in(time.Second), Error: hostile}, nil},
		{"a failed task", pending(workerpool.ForTime, func(f *facts) { f.task.Run, f.task.Status.NotBefore = failing, in(time.Second) }),
			Answer{Code: Retry, Since: ago(time.Minute), Until: in(time.Second), Next: in(time.Second), Error: hostile}, nil},
		{"a failed alarm", (&facts{exists: true, alarm: &object.AlarmState{Due: in(9), Scheduled: ago(9), Attempts: 1, LastError: hostile}}).with(),
			Answer{Code: AlarmRetry, Since: ago(9), Until: in(9), Next: in(9), Error: hostile}, nil},
		{"a dead alarm", &facts{exists: true, dead: &object.DeadLetter{Died: ago(9), LastError: hostile}}, Answer{Code: AlarmDead, Since: ago(9), Error: hostile}, []Code{IdleByDesign}},
		{"a suspect", job("continuous", jobs.Executing, func(f *facts) {
			f.run, f.live = &open, &object.Explanation{Held: []object.HeldWork{{Execution: open.record(), Before: 2, NotBefore: in(9)}}}
		}), Answer{Code: AlarmSuspect, Until: in(9)}, nil},
		{"a suspect on disk", &facts{exists: true, alarm: &object.AlarmState{Due: in(9), Crashes: 2}}, Answer{Code: AlarmSuspect}, []Code{Scheduled}},
		{"no suspect", &facts{exists: true, alarm: &object.AlarmState{Due: in(9), Crashes: 1}}, Answer{Code: Scheduled, Until: in(9), Next: in(9)}, nil},
		{"a due alarm", (&facts{exists: true}).with(alarmAt(now)), Answer{Code: AlarmQueued, Since: now}, nil},
		{"an alarm in line", live(object.Explanation{Alarm: object.AlarmPlace{Permit: 3}}).with(alarmAt(ago(9))), Answer{Code: AlarmQueued, Since: ago(9)}, nil},
		{"a jump of the clock", live(object.Explanation{Alarm: object.AlarmPlace{Place: alarm.Place{Where: alarm.Waiting}}}).with(alarmAt(ago(young))), Answer{Code: Clock, Since: ago(young)}, nil},
		{"a timer that rings", live(object.Explanation{Alarm: object.AlarmPlace{Place: alarm.Place{Where: alarm.Waiting}}}).with(alarmAt(ago(young - 1))), Answer{Code: AlarmQueued, Since: ago(young - 1)}, nil},

		{"a paused pool", pending(workerpool.InQueue, func(f *facts) { f.pool.Mode = workerpool.Paused }), Answer{Code: PoolPaused}, nil},
		{"a task with a time in a paused pool", pending(workerpool.ForTime, func(f *facts) { f.pool.Mode, f.task.Status.NotBefore = workerpool.Paused, in(9) }), Answer{Code: PoolPaused}, []Code{WaitsForTime}},
		{"a draining pool", (&facts{kind: aPartition, exists: true}).with(runs(false), func(f *facts) { f.pool.Mode, f.pool.Running = workerpool.Draining, 1 }), Answer{Code: Executing, Since: ago(time.Minute)}, []Code{Draining}},
		{"a pool without workers", pending(workerpool.InQueue), Answer{Code: NoWorkHere, Since: ago(time.Hour)}, nil},
		{"claims alone", pending(workerpool.InQueue, runs(true)), Answer{Code: NoWorkHere, Since: ago(time.Minute)}, nil},
		{"a task with a time", pending(workerpool.ForTime, func(f *facts) { f.task.Status.NotBefore = in(9) }), Answer{Code: WaitsForTime, Since: ago(time.Hour), Until: in(9), Next: in(9)}, nil},
		{"a task with a time that has come", pending(workerpool.ForTime, runs(false), func(f *facts) { f.task.Status.NotBefore = now }), Answer{Code: WorkersBusy, Since: ago(time.Hour)}, nil},
		{"a partition with times", (&facts{kind: aPartition, exists: true}).with(alarmAt(in(9)), func(f *facts) { f.pool.Pending = 2 }), Answer{Code: WaitsForTime, Until: in(9), Next: in(9)}, nil},
		{"a key", pending(workerpool.BehindKey, runs(false), func(f *facts) { f.task.Ahead = 1 }), Answer{Code: BehindKey, Since: ago(time.Hour), Name: hostile}, nil},
		{"a place", pending(workerpool.InQueue, runs(false), func(f *facts) { f.task.Ahead = 2 }), Answer{Code: InLine, Since: ago(time.Hour), Name: hostile}, []Code{WorkersBusy}},
		{"the first place", pending(workerpool.InQueue, runs(false)), Answer{Code: WorkersBusy, Since: ago(time.Hour)}, nil},

		{"events", job("debounce", jobs.Running, alarmAt(in(9)), func(f *facts) { f.buffer = debounce.Look{Waiting: 2, First: ago(3)} }), Answer{Code: Collecting, Since: ago(3), Next: in(9)}, nil},
		{"events in a flush", job("debounce", jobs.Executing, alarmAt(in(9)), func(f *facts) { f.buffer, f.run = debounce.Look{Waiting: 2, First: ago(3)}, &open }),
			Answer{Code: Executing, Since: open.Began, Until: open.Lease}, []Code{Collecting}},
		{"a schedule", job("continuous", jobs.Running, alarmAt(in(9))), Answer{Code: Scheduled, Until: in(9), Next: in(9)}, nil},
		{"an alarm", (&facts{exists: true}).with(alarmAt(in(1))), Answer{Code: Scheduled, Until: in(1), Next: in(1)}, nil},
		{"an alarm on disk", (&facts{exists: true, store: storeFacts{cold: true}}).with(alarmAt(in(1))), Answer{Code: NotOpen}, []Code{Scheduled}},
		{"no schedule", job("continuous", jobs.Running), Answer{Code: NeedsTrigger, Since: ago(time.Hour)}, nil},
		{"no events", job("debounce", jobs.Running, alarmAt(in(9))), Answer{Code: NeedsEvent, Since: ago(time.Hour), Next: in(9)}, nil},
		{"an idle object", &facts{exists: true}, Answer{Code: IdleByDesign}, nil},
		{"an idle partition", &facts{kind: aPartition, exists: true}, Answer{Code: IdleByDesign}, nil},
		{"an orphan", job("continuous", jobs.Running, func(f *facts) { f.planned = has }), Answer{Code: Orphan}, nil},
		{"an orphan with events", job("debounce", jobs.Running, func(f *facts) { f.buffer.Waiting = 1 }), Answer{Code: Orphan}, nil},
		{"a workflow that waits for nothing", job("workflow", jobs.Running), Answer{Code: Orphan}, nil},
		{"a contradiction", job("continuous", jobs.Executing, func(f *facts) { f.finding = &recovery.Finding{Problem: hostile} }), Answer{Code: Orphan, Error: hostile}, nil},
		{"a suspicion", job("continuous", jobs.Running, func(f *facts) { f.finding = &recovery.Finding{Suspect: true} }), Answer{Code: NeedsTrigger, Since: ago(time.Hour)}, nil},

		{"a signal", suspended(workflow.Wait{Kind: "signal", Name: hostile}), Answer{Code: WaitsForSignal, Since: ago(time.Hour), Name: hostile}, nil},
		{"a signal with a timeout", suspended(workflow.Wait{Kind: "signal", Name: hostile, Until: in(9)}, alarmAt(in(9))), Answer{Code: WaitsForSignal, Since: ago(time.Hour), Name: hostile, Until: in(9), Next: in(9)}, nil},
		{"a sleep", suspended(workflow.Wait{Kind: "sleep", Until: in(9)}, alarmAt(in(9))), Answer{Code: WaitsForTimer, Since: ago(time.Hour), Until: in(9), Next: in(9)}, nil},
		{"a sleep without an alarm", suspended(workflow.Wait{Kind: "sleep", Until: in(9)}), Answer{Code: Orphan}, []Code{WaitsForTimer}},
		{"a child", suspended(workflow.Wait{Kind: "child", Name: hostile}), Answer{Code: WaitsForChild, Since: ago(time.Hour), Name: hostile}, nil},
		{"a step", suspended(workflow.Wait{Kind: "retry", Name: hostile, Until: in(9)}, alarmAt(in(9))), Answer{Code: Step, Since: ago(time.Hour), Name: hostile, Until: in(9), Next: in(9)}, nil},
		{"a step behind a breaker", suspended(workflow.Wait{Kind: "breaker", Name: hostile, Until: in(9)}, alarmAt(in(9))), Answer{Code: BreakerOpen, Since: ago(time.Hour), Name: hostile, Until: in(9), Next: in(9)}, nil},
		{"a breaker", (&facts{kind: aBreaker, exists: true, circuit: breaker.Status{State: breaker.Open, Since: ago(3), Until: in(9), Cause: hostile}}).with(alarmAt(in(9))),
			Answer{Code: BreakerOpen, Since: ago(3), Until: in(9), Next: in(9), Error: hostile}, nil},
		{"a half open breaker", &facts{kind: aBreaker, exists: true, circuit: breaker.Status{State: breaker.HalfOpen}}, Answer{Code: IdleByDesign}, nil},
		{"a stuck run", job("workflow", jobs.Stuck, alarmAt(in(time.Second)), func(f *facts) { f.meta.Run, f.meta.LastError = failing, hostile }),
			Answer{Code: Stuck, Error: hostile, Since: ago(time.Minute), Until: in(time.Second), Next: in(time.Second)}, nil},
		{"a run without recoveries", job("workflow", jobs.Stuck), Answer{Code: Stuck}, nil},
		{"an undo", suspended(workflow.Wait{Kind: "retry", Name: hostile, Until: in(9)}, alarmAt(in(9)), func(f *facts) { f.flow.Undoing, f.flow.Undo = true, hostile }),
			Answer{Code: Step, Since: ago(time.Hour), Name: hostile, Until: in(9), Next: in(9)}, []Code{Undoing}},
		{"an undo alone", job("workflow", jobs.Stuck, func(f *facts) { f.flow = workflow.Look{Undoing: true, Cancelling: true, CancelReason: hostile} }), Answer{Code: Stuck}, []Code{Undoing}},
	}
}

// Case WY2: each code has facts for which it holds, and the answer is the first that does. No text
// has a name or an error of a user.
func TestRules(t *testing.T) {
	met := map[Code]bool{Unexplained: true}
	for _, r := range rows() {
		r.facts.now, r.facts.id = now, storage.ID{Class: hostile, Name: hostile}
		a := r.facts.answer()
		got := Answer{Code: a.Code, Since: a.Since, Until: a.Until, Next: a.Next, Name: a.Name, Error: a.Error}
		if !reflect.DeepEqual(got, r.want) || !slices.Equal(a.Holds()[1:], r.also) {
			t.Errorf("%s: %+v and %v, want %+v and %v", r.name, got, a.Holds()[1:], r.want, r.also)
		}
		for _, c := range a.Holds() {
			met[c] = true
		}
		for _, each := range append([]Answer{a}, a.Also...) {
			if strings.Contains(each.Text, hostile) || strings.ContainsAny(fmt.Sprint(each.Do), "\x1b<") || each.Text == "" || len(each.Do) == 0 {
				t.Errorf("%s: the text of %s is %q, do %v", r.name, each.Code, each.Text, each.Do)
			}
		}
	}
	for _, c := range Codes() {
		if !met[c.Code] || c.Means == "" {
			t.Errorf("%s: no facts lead to the code, or it has no meaning", c.Code)
		}
	}
}

// A chain of Because, and the JSON of an answer.
func TestBecause(t *testing.T) {
	first := pending(workerpool.NoSpot, runs(false))
	first.now, first.taskID, first.run = now, "0-7", &open
	first.task.Status.State = workerpool.Running
	f := pending(workerpool.BehindKey, runs(false))
	f.now, f.ahead = now, first
	a := f.answer()
	if len(a.Because) != 1 || a.Because[0].Code != Executing || a.Because[0].Task != "0-7" {
		t.Errorf("because %+v", a.Because)
	}
	b, err := json.Marshal(a.Because[0])
	const want = `{"task":"0-7","code":"executing","text":"Attempt 1 is under way.","since":"2025-12-31T23:59:00Z","until":"2026-01-01T00:01:00Z","do":["wait"]}`
	if err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
}
