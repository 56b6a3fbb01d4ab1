package why

import (
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object"
)

// alarmRules are about the alarm of the object, and of a task about that of its partition.
var alarmRules = []rule{
	{code: AlarmRetry, means: "the handler of the alarm has failed, and it is tried again later", do: []string{"wait", "mend what the handler needs"},
		holds: func(f *facts) (Answer, bool) {
			a := f.alarm
			if a == nil || a.Attempts == 0 || f.due() {
				return Answer{}, false
			}
			text := fmt.Sprintf("Attempt %d at its alarm has failed, and it is tried again.", a.Attempts)
			return Answer{Text: text, Error: a.LastError, Since: a.Scheduled, Until: a.Due, Next: f.next()}, true
		}},
	{code: AlarmDead, means: "the alarm was given up and is a dead letter", do: []string{"mend the cause and replay the dead letter", "discard it"},
		holds: func(f *facts) (Answer, bool) {
			if f.dead == nil || f.alarm != nil || f.kind == aTask {
				return Answer{}, false
			}
			return Answer{Text: "Its alarm was given up and is a dead letter.", Error: f.dead.LastError, Since: f.dead.Died}, true
		}},
	{code: AlarmSuspect, live: true, means: "crashes in a row have interrupted its work, which is held back and then tried alone", do: []string{"wait for its trial"},
		holds: suspect},
	{code: AlarmQueued, live: true, means: "the alarm is due, and its handler has not begun", do: []string{"wait", "raise AlarmsInFlight, Concurrency or StartRate", "open the store, if no process has it open"},
		holds: func(f *facts) (Answer, bool) {
			if !f.due() {
				return Answer{}, false
			}
			return Answer{Text: queued(f), Since: f.alarm.Due}, !f.clockJumped()
		}},
	{code: Clock, live: true, means: "the wall clock has jumped past the time of the alarm, and its timer has not rung", do: []string{"wait a minute, or call RecheckAlarms"},
		holds: func(f *facts) (Answer, bool) {
			if !f.clockJumped() {
				return Answer{}, false
			}
			return Answer{Text: "The alarm is due by the wall clock, and the scheduler has not looked at it since.", Since: f.alarm.Due}, true
		}},
}

// suspect tells of work that crashes in a row have cut off.
func suspect(f *facts) (Answer, bool) {
	if f.live == nil {
		a := f.alarm
		if a == nil || a.Crashes < 2 {
			return Answer{}, false
		}
		return Answer{Text: fmt.Sprintf("%d crashes in a row have cut off its alarm.", a.Crashes)}, true
	}
	for _, h := range f.live.Held {
		if f.kind == aTask && (f.run == nil || h.Execution != f.run.record()) {
			continue
		}
		text := fmt.Sprintf("It may have killed its process, so it is held back; %d trials come before its own.", h.Before)
		if h.OnTrial {
			text = "It may have killed its process, so it runs while all other suspects wait."
		}
		return Answer{Text: text, Until: h.NotBefore}, true
	}
	return Answer{}, false
}

// heldBack reports whether the work of an execution waits for its trial.
func (f *facts) heldBack(x *execution) bool { return f.waitsForTrial(x.record()) }

// alarmHeldBack reports whether the alarm of the object, or a message to it, waits for its trial.
func (f *facts) alarmHeldBack() bool { return f.waitsForTrial("") }

func (f *facts) waitsForTrial(execution string) bool {
	return f.live != nil && slices.ContainsFunc(f.live.Held, func(h object.HeldWork) bool {
		return !h.OnTrial && h.Execution == execution
	})
}

// queued tells where a due alarm is.
func queued(f *facts) string {
	switch {
	case f.store.cold:
		return "Its alarm is due and fires when a process opens the store."
	case f.live == nil:
		return "Its alarm is due."
	}
	switch p := f.live.Alarm; {
	case p.Permit > 0:
		return fmt.Sprintf("Its alarm is due and waits for a place of its class, as number %d.", p.Permit)
	case p.Where == alarm.Queued:
		return fmt.Sprintf("Its alarm is due; %d of its class are before it, and %d of %d are in flight.", p.Before, p.InFlight, p.Limit)
	case p.Where == alarm.InFlight:
		return "Its alarm is due, and its handler was called."
	}
	return "Its alarm is due."
}

// clockJumped reports whether the scheduler has not seen that the alarm is due.
func (f *facts) clockJumped() bool {
	return f.due() && f.live != nil && f.live.Alarm.Where == alarm.Waiting && f.now.Sub(f.alarm.Due) >= young
}

// liveFacts are those of the process about the object.
type liveFacts = object.Explanation
