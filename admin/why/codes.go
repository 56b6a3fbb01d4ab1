package why

import "slices"

// Code names a reason. Codes are stored and compared by programs, so none is ever given another
// meaning; new ones may come.
type Code string

// The codes, in the order in which they are looked for: the first that holds is the headline.
const (
	StorageFailed      Code = "storage-failed"
	Closing            Code = "closing"
	Dormant            Code = "dormant"
	NotOpen            Code = "not-open"
	NoSpace            Code = "no-space"
	Unreadable         Code = "unreadable"
	Parked             Code = "parked"
	Absent             Code = "absent"
	ConstructorFailing Code = "constructor-failing"
	DeadlockRefused    Code = "deadlock-refused"
	TurnRunning        Code = "turn-running"
	TurnWaits          Code = "turn-waits"
	TurnLent           Code = "turn-lent"
	Mailbox            Code = "mailbox"
	NotDurable         Code = "not-durable"
	Paused             Code = "paused"
	Pausing            Code = "pausing"
	Ended              Code = "ended"
	Executing          Code = "executing"
	HeldOutside        Code = "held-outside"
	Lost               Code = "lost"
	Retry              Code = "retry"
	AlarmRetry         Code = "alarm-retry"
	AlarmDead          Code = "alarm-dead"
	AlarmSuspect       Code = "alarm-suspect"
	AlarmQueued        Code = "alarm-queued"
	Clock              Code = "clock"
	PoolPaused         Code = "pool-paused"
	Draining           Code = "draining"
	NoWorkHere         Code = "no-work-here"
	WaitsForTime       Code = "waits-for-time"
	BehindKey          Code = "behind-key"
	InLine             Code = "in-line"
	WorkersBusy        Code = "workers-busy"
	Collecting         Code = "collecting"
	Scheduled          Code = "scheduled"
	NeedsTrigger       Code = "needs-trigger"
	NeedsEvent         Code = "needs-event"
	IdleByDesign       Code = "idle-by-design"
	Orphan             Code = "orphan"
	WaitsForSignal     Code = "waits-for-signal"
	WaitsForTimer      Code = "waits-for-timer"
	WaitsForChild      Code = "waits-for-child"
	Step               Code = "step"
	BreakerOpen        Code = "breaker-open"
	Stuck              Code = "stuck"
	Undoing            Code = "undoing"
	Unexplained        Code = "unexplained"
)

// CodeInfo is a code with its meaning and the remedy, as docs/OPERATIONS.md lists them.
type CodeInfo struct {
	Code  Code     `json:"code"`
	Means string   `json:"means"`
	Do    []string `json:"do,omitempty"` // the same for each Answer with the code
	// Live codes need a fact that only the process has which has the store open.
	Live bool `json:"live,omitempty"`
}

// Codes lists all codes in the order in which they are looked for. The list is the caller's.
func Codes() []CodeInfo {
	list := make([]CodeInfo, len(rules))
	for i, r := range rules {
		list[i] = CodeInfo{r.code, r.means, slices.Clone(r.do), r.live}
	}
	return list
}

// rule is a row of the table: a code, its meaning and remedy, and when it holds.
type rule struct {
	code  Code
	live  bool // see CodeInfo.Live
	means string
	do    []string
	holds func(f *facts) (Answer, bool)
}

// about is an answer of the rule, for the facts.
func (r *rule) about(f *facts, a Answer) Answer {
	a.ID, a.Task, a.Code, a.Do = f.id, f.taskID, r.code, r.do
	return a
}

// unexplained is for facts that no rule is about. No test has met such.
var unexplained = rule{code: Unexplained, means: "no other code holds", do: []string{"report a bug"}, holds: func(*facts) (Answer, bool) { return Answer{}, false }}

// hostRules is how many rules, at the begin of the table, are about the whole store. Only a
// headline has them, because all its reasons share them.
const hostRules = 5

// rules is the table. A test compares the one in docs/OPERATIONS.md with it.
var rules []rule

func init() { // because the rules of a chain lead to the table
	rules = slices.Concat(storeRules, objectRules, jobRules, alarmRules, poolRules, idleRules, workflowRules, []rule{unexplained})
}
