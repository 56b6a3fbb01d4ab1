package main

// timerMutants are bugs of package timers.
var timerMutants = []mutant{
	{
		Name: "timers-attach-without-an-alarm-method", Promise: "A2", File: "object/driver.go",
		Edits: []edit{{
			Old: `	if !d.state.act.hosted.class.alarms {
`,
			New: `	if !d.state.act.hosted.class.alarms && !mutant("timers-attach-without-an-alarm-method") {
`,
		}},
		Package: "object/timers", Test: "TestAttachWithoutAlarm",
	},
	{
		Name: "timer-fires-a-second-early", Promise: "T1", File: "object/timers/row.go",
		Edits: []edit{{
			Old: `		o.End = dueKey(now+1, "")
`,
			New: `		o.End = dueKey(now+1, "")
		if mutant("timer-fires-a-second-early") {
			o.End = dueKey(now+1+1e9, "")
		}
`,
		}},
		Package: "object/timers", Test: "TestTimersFireOnce",
	},
	{
		Name: "moved-timer-keeps-its-old-row", Promise: "T4", File: "object/timers/row.go",
		Edits: []edit{{
			Old: `	if old != 0 && old != r.due {`,
			New: `	if old != 0 && old != r.due && !mutant("moved-timer-keeps-its-old-row") {`,
		}},
		Package: "object/timers", Test: "TestReplaceAndCancel",
	},
	{
		Name: "alarm-stays-at-a-cancelled-timer", Promise: "T4", File: "object/timers/row.go",
		Edits: []edit{{
			Old: `	case !armed, from != 0 && from <= now:`,
			New: `	case !armed, from != 0 && from <= now && !mutant("alarm-stays-at-a-cancelled-timer"):`,
		}},
		Package: "object/timers", Test: "TestReplaceAndCancel",
	},
	{
		Name: "earlier-timer-moves-no-alarm", Promise: "T4", File: "object/timers/row.go",
		Edits: []edit{{
			Old: `	case to != 0 && to < now:`,
			New: `	case to != 0 && to < now && !mutant("earlier-timer-moves-no-alarm"):`,
		}},
		Package: "object/timers", Test: "TestReplaceAndCancel",
	},
	{
		Name: "refused-timer-has-removed-the-old-one", Promise: "T4", File: "object/timers/row.go",
		Edits: []edit{{
			Old: `written+size+records*overhead > most {`,
			New: `written+size+records*overhead > most && !mutant("refused-timer-has-removed-the-old-one") {`,
		}},
		Package: "object/timers", Test: "TestTimersBeyondTheBatch",
	},
	{
		Name: "list-begins-with-the-last-of-the-page-before", Promise: "T5", File: "object/timers/timers.go",
		Edits: []edit{{
			Old: `		o.StartAfter = dueKey(after.Due.UnixNano(), after.Name)
`,
			New: `		o.StartAfter = dueKey(after.Due.UnixNano(), after.Name)
		if mutant("list-begins-with-the-last-of-the-page-before") {
			o.StartAfter = dueKey(after.Due.UnixNano(), "")
		}
`,
		}},
		Package: "object/timers", Test: "TestListOfTimers",
	},
	{
		Name: "on-again-begins-the-schedule-anew", Promise: "T1", File: "object/timers/timers.go",
		Edits: []edit{{
			Old: `stored && old.text == r.text && string(`,
			New: `stored && !mutant("on-again-begins-the-schedule-anew") && old.text == r.text && string(`,
		}},
		Package: "object/timers", Test: "TestOnAgain",
	},
	{
		Name: "alarm-runs-all-timers-in-one-turn", Promise: "T2", File: "object/timers/alarm.go",
		Edits: []edit{{
			Old: `	keys, err := t.keys(ctx, now.UnixNano(), atOnce)
`,
			New: `	many := atOnce
	if mutant("alarm-runs-all-timers-in-one-turn") {
		many = 100_000
	}
	keys, err := t.keys(ctx, now.UnixNano(), many)
`,
		}},
		Package: "object/timers", Test: "TestTimersOfOneTurn",
	},
	{
		Name: "full-turn-runs-another-timer", Promise: "T2", File: "object/timers/attempt.go",
		Edits: []edit{{
			Old: `	if !full || !a.behind {`,
			New: `	if !full || !a.behind || mutant("full-turn-runs-another-timer") {`,
		}},
		Package: "object/timers", Test: "TestTimersThatWriteMuch",
	},
	{
		Name: "timer-that-was-replaced-in-its-handler-goes", Promise: "T4", File: "object/timers/attempt.go",
		Edits: []edit{{
			Old: `		if err != nil || !ok || now.gen != a.r.gen {`,
			New: `		if err != nil || !ok || now.gen != a.r.gen && !mutant("timer-that-was-replaced-in-its-handler-goes") {`,
		}},
		Package: "object/timers", Test: "TestTimersChangedInTheirHandler",
	},
	{
		Name: "failed-timer-takes-back-those-before-it", Promise: "T2", File: "object/timers/attempt.go",
		Edits: []edit{{
			Old: `	if notTheTimers(ctx, cause) {`,
			New: `	if notTheTimers(ctx, cause) || mutant("failed-timer-takes-back-those-before-it") {`,
		}},
		Package: "object/timers", Test: "TestOneThatFailsHoldsUpNoOther",
	},
	{
		Name: "failed-timer-leaves-its-memory", Promise: "T3", File: "object/timers/attempt.go",
		Edits: []edit{{
			Old: `	// A turn that fails with a write`,
			New: `	if mutant("failed-timer-leaves-its-memory") {
		return err
	}
	// A turn that fails with a write`,
		}},
		Package: "object/timers", Test: "TestFailedTimerResetsItsObject",
	},
	{
		Name: "timer-that-kills-is-not-charged", Promise: "T2", File: "object/timers/attempt.go",
		Edits: []edit{{
			Old: `	a.r.crashes++
`,
			New: `	if !mutant("timer-that-kills-is-not-charged") {
		a.r.crashes++
	}
`,
		}},
		Package: "object/timers", Test: "TestTimerThatKillsItsProcess",
	},
	{
		Name: "retry-takes-the-next-occurrence", Promise: "T3", File: "object/timers/attempt.go",
		Edits: []edit{{
			Old: `	r.crashes, r.taken = 0, r.broken == nil
`,
			New: `	r.crashes, r.taken = 0, r.broken == nil && !mutant("retry-takes-the-next-occurrence")
`,
		}},
		Package: "object/timers", Test: "TestRetryOfAnOccurrence",
	},
	{
		Name: "schedule-that-cannot-be-read-is-given-up", Promise: "T3", File: "object/timers/attempt.go",
		Edits: []edit{{
			Old: `	case r.broken != nil:
`,
			New: `	case r.broken != nil && !mutant("schedule-that-cannot-be-read-is-given-up"):
`,
		}},
		Package: "object/timers", Test: "TestScheduleThatCannotBeRead",
	},
	{
		Name: "replay-replaces-another-timer", Promise: "T3", File: "object/timers/attempt.go",
		Edits: []edit{{
			Old: `	if stored && (old.text == ""`,
			New: `	if stored && !mutant("replay-replaces-another-timer") && (old.text == ""`,
		}},
		Package: "object/timers", Test: "TestDeadTimers",
	},
	{
		Name: "second-owner-of-an-alarm", Promise: "A2", File: "object/alarm.go",
		Edits: []edit{{
			Old: `	if err == nil && s.act.owner != 0 {`,
			New: `	if err == nil && s.act.owner != 0 && !mutant("second-owner-of-an-alarm") {`,
		}},
		Package: "object/timers", Test: "TestOneOwnerOfTheAlarm",
	},
	{
		Name: "alarm-of-a-failed-timer-stays", Promise: "T4", File: "object/driver.go",
		Edits: []edit{{
			Old: `	if t.firing != nil {
		t.writes.alarmSet, t.writes.alarm, t.writes.removes = true, nil, true`,
			New: `	if t.firing != nil && !mutant("alarm-of-a-failed-timer-stays") {
		t.writes.alarmSet, t.writes.alarm, t.writes.removes = true, nil, true`,
		}},
		Package: "object/timers", Test: "TestAlarmAfterTheLastTimerDied",
	},
	{
		Name: "set-timer-hides-the-attempts-of-the-alarm", Promise: "T2", File: "object/timers/row.go",
		Edits: []edit{{
			Old: `	case armed && failures > 0:
`,
			New: `	case armed && failures > 0 && !mutant("set-timer-hides-the-attempts-of-the-alarm"):
`,
		}},
		Package: "object/timers", Test: "TestTimersSetBesideOneWithoutATrace",
	},
	{
		Name: "failed-alarm-keeps-the-next-timer", Promise: "T4", File: "object/turn_commit.go",
		Edits: []edit{{
			Old: `t.firing != nil && t.act.owner != OwnedByTimers {`,
			New: `t.firing != nil && (t.act.owner != OwnedByTimers || mutant("failed-alarm-keeps-the-next-timer")) {`,
		}},
		Package: "object/timers", Test: "TestAlarmThatFailsAfterItsTimers",
	},
}
