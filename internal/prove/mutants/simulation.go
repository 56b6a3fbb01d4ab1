package main

// simulationMutants are bugs of the harness and of the seams that it stands behind.
var simulationMutants = []mutant{
	{
		Name: "exit-on-purpose-is-a-failure", Promise: "O6", File: "harness/internal/machine/process.go",
		Edits: []edit{{
			Old: `		t.exits = true`,
			New: `		t.exits = !mutant("exit-on-purpose-is-a-failure")`,
		}},
		Package: "harness/internal/machine", Test: "TestExitOnPurpose",
	},
	{
		Name: "each-exit-is-on-purpose", Promise: "O6", File: "harness/internal/machine/task.go",
		Edits: []edit{{
			Old: `	if !t.exits && !t.unreal() {`,
			New: `	if !t.exits && !t.unreal() && !mutant("each-exit-is-on-purpose") {`,
		}},
		Package: "harness/internal/machine", Test: "TestExitOnPurposeHidesNoOther",
	},
	{
		Name: "scenario-may-exit", Promise: "O6", File: "harness/internal/machine/process.go",
		Edits: []edit{{
			Old: `	if t := p.m.current; t != nil && t.proc == p { // else it is reported`,
			New: `	if t := p.m.current; t != nil && (t.proc == p || mutant("scenario-may-exit")) {`,
		}},
		Package: "harness/internal/machine", Test: "TestExitOfATaskOutside",
	},
	{
		Name: "panic-during-an-exit-not-told", Promise: "O6", File: "harness/internal/machine/task.go",
		Edits: []edit{{
			Old: `		case r == nil, t.unreal():`,
			New: `		case r == nil, t.unreal(), t.exits && mutant("panic-during-an-exit-not-told"):`,
		}},
		Package: "harness/internal/machine", Test: "TestPanicDuringAnExit",
	},
	{
		Name: "sweep-never-rests", Promise: "O10", File: "object/activation_mailbox.go",
		Edits: []edit{{
			Old: `	l.sweeping, l.asked = false, 0
`,
			New: `	l.sweeping, l.asked = false, 0
	if mutant("sweep-never-rests") && !idle {
		shortest, idle = time.Minute, true
	}
`,
		}},
		Package: "harness", Test: "TestAYearAsleepTakesFewSteps",
	},
	{
		Name: "timers-do-not-follow-the-clock", Promise: "A9", File: "harness/internal/machine/timer.go",
		Edits: []edit{{
			Old: `	if t.wall.IsZero() || t.late {`,
			New: `	if t.wall.IsZero() || t.late || mutant("timers-do-not-follow-the-clock") {`,
		}},
		Package: "harness/internal/machine", Test: "TestTimersFollowTheWallClock",
	},
	{
		Name: "alarm-polls-a-clock-that-tells", Promise: "A9", File: "alarm/pump.go",
		Edits: []edit{{
			Old: `(seam.Following); ok {`,
			New: `(seam.Following); ok && !mutant("alarm-polls-a-clock-that-tells") {`,
		}},
		Package: "alarm", Test: "TestOneTimerWithAClockThatFollows",
	},
	{
		Name: "call-before-commit-not-told", Promise: "O6", File: "object/turn_commit.go",
		Edits: []edit{{
			Old: `	if h.seams.Probe != nil {
		t.tellCommitted()`,
			New: `	if h.seams.Probe != nil && !mutant("call-before-commit-not-told") {
		t.tellCommitted()`,
		}},
		Package: "harness", Test: "TestCallsBeforeCommit",
	},
	{
		Name: "failed-turn-taken-for-a-commit", Promise: "O6", File: "object/turn_commit.go",
		Edits: []edit{{
			Old: `	if t.act.host.seams.Probe != nil {
		t.tellEnded()`,
			New: `	if t.act.host.seams.Probe != nil && !mutant("failed-turn-taken-for-a-commit") {
		t.tellEnded()`,
		}},
		Package: "harness", Test: "TestCallsBeforeCommit",
	},
	{
		Name: "keyed-call-is-a-warning", Promise: "O6", File: "object/turn.go",
		Edits: []edit{{
			Old: `r.repeatable || r.key != ""`,
			New: `r.repeatable || r.key != "" && !mutant("keyed-call-is-a-warning")`,
		}},
		Package: "harness", Test: "TestCallsBeforeCommit",
	},
	{
		Name: "call-through-another-forgotten", Promise: "O6", File: "harness/checker_calls.go",
		Edits: []edit{{
			Old: `	p.pass(t, t.calls...)`,
			New: `	if !mutant("call-through-another-forgotten") {
		p.pass(t, t.calls...)
	}`,
		}},
		Package: "harness", Test: "TestCallsBeforeCommit",
	},
	{
		Name: "commit-before-the-call-forgotten", Promise: "O6", File: "harness/checker_calls.go",
		Edits: []edit{{
			Old: `caller == nil || caller.committed ||`,
			New: `caller == nil || caller.committed && !mutant("commit-before-the-call-forgotten") ||`,
		}},
		Package: "harness", Test: "TestCallsBeforeCommit",
	},
	{
		Name: "call-before-commit-told-each-time", Promise: "O6", File: "harness/checker_calls.go",
		Edits: []edit{{
			Old: `pair := [2]string{c.Caller, c.Called}`,
			New: `pair := [2]string{c.Caller, c.Called}
	if mutant("call-before-commit-told-each-time") {
		pair[0] += c.From + c.To
	}`,
		}},
		Package: "harness", Test: "TestCallsBeforeCommitAreToldOnce",
	},
	{
		Name: "stuck-looked-for-by-the-label-alone", Promise: "F10", File: "harness/checker_stuck.go",
		Edits: []edit{{
			Old: `err != nil || !ok {`,
			New: `err != nil || !ok || mutant("stuck-looked-for-by-the-label-alone") {`,
		}},
		Package: "harness", Test: "TestNoStuckTellsTheReason",
	},
	{
		Name: "stuck-not-found-by-the-label", Promise: "F10", File: "harness/checker_stuck.go",
		Edits: []edit{{
			Old: `o.Label.String() != jobs.Stuck.Label()`,
			New: `o.Label.String() != jobs.Stuck.Label() || mutant("stuck-not-found-by-the-label")`,
		}},
		Package: "harness", Test: "TestNoStuckByTheLabel",
	},
	{
		Name: "lost-end-must-stay", Promise: "F12", File: "harness/checker_one_end.go",
		Edits: []edit{{
			Old: `	if last {
`,
			New: `	if last || mutant("lost-end-must-stay") {
`,
		}},
		Package: "harness", Test: "TestOneEndAcrossACrash",
	},
	{
		Name: "second-end-is-not-told", Promise: "F12", File: "harness/checker_one_end.go",
		Edits: []edit{{
			Old: `				if t.end.Kind != "" {
`,
			New: `				if t.end.Kind != "" && !mutant("second-end-is-not-told") {
`,
		}},
		Package: "harness", Test: "TestOneEnd/two_ends",
	},
	{
		Name: "end-compared-over-another-begin", Promise: "F12", File: "harness/checker_one_end.go",
		Edits: []edit{{
			Old: `told.begun <= was.event &&`,
			New: `(told.begun <= was.event || mutant("end-compared-over-another-begin")) &&`,
		}},
		Package: "harness", Test: "TestOneEnd/an_end_after_another_begin",
	},
	{
		Name: "lost-answer-of-an-effect-not-done", Promise: "A4", File: "harness/world.go",
		Edits: []edit{{
			Old: `	if _, lost := w.s.strikes(lostAnswer, atAnswer, key); lost {
`,
			New: `	if _, lost := w.s.strikes(lostAnswer, atAnswer, key); lost {
		if mutant("lost-answer-of-an-effect-not-done") {
			w.counts[key]--
		}
`,
		}},
		Package: "harness", Test: "TestLostAnswer",
	},
	{
		Name: "repeat-done-again", Promise: "A4", File: "harness/world.go",
		Edits: []edit{{
			Old: `	if !repeat {`,
			New: `	if !repeat || mutant("repeat-done-again") {`,
		}},
		Package: "harness", Test: "TestDoOnce",
	},
	{
		Name: "keys-of-all-effects-are-one", Promise: "A4", File: "harness/world.go",
		Edits: []edit{{
			Old: `	id := keyed{effect, key}`,
			New: `	id := keyed{effect, key}
		if mutant("keys-of-all-effects-are-one") {
			id.effect = ""
		}`,
		}},
		Package: "harness", Test: "TestDoOnceOfTheScenario",
	},
}
