package main

// suspectMutants are bugs of work that kills its process.
var suspectMutants = []mutant{
	{
		Name: "one-crash-makes-a-suspect", Promise: "A8", File: "object/alarm_inquiry.go",
		Edits: []edit{{
			Old: `epoch > q.cleared && cuts >= q.need`,
			New: `epoch > q.cleared && (cuts >= q.need || mutant("one-crash-makes-a-suspect"))`,
		}},
		Package: "object", Test: "TestSuspected",
	},
	{
		Name: "charged-without-a-control", Promise: "A8", File: "object/alarm_trials.go",
		Edits: []edit{{
			Old: `	if s.found.charges[part[0]] > 0 {
`,
			New: `	if s.found.charges[part[0]] > 0 && !mutant("charged-without-a-control") {
`,
		}},
		Package: "object", Test: "TestCrashesFromOutsideGiveUpNothing/3.5_s_under_work_of_30s",
	},
	{
		Name: "suspect-dropped-from-its-lane", Promise: "A8", File: "object/alarm_trials.go",
		Edits: []edit{{
			Old: `	s.trying = nil
`,
			New: `	if s.trying != nil && mutant("suspect-dropped-from-its-lane") {
		s.queue = nil
	}
	s.trying = nil
`,
		}},
		Package: "object", Test: "TestKillerIsFoundAmongMany/[killer]_after_0s_among_7",
	},
	{
		Name: "strays-clear-nothing", Promise: "A8", File: "object/alarm_inquiry.go",
		Edits: []edit{{
			Old: `	case q.phase == holding && q.strays+1 >= straysMax:
`,
			New: `	case q.phase == holding && q.strays+1 >= straysMax && !mutant("strays-clear-nothing"):
`,
		}},
		Package: "object", Test: "TestJudge",
	},
	{
		Name: "the-rest-goes-free", Promise: "A8", File: "object/alarm_inquiry.go",
		Edits: []edit{{
			Old: `	left := slices.Clone(q.plan[q.trial+1:])
`,
			New: `	left := slices.Clone(q.plan[q.trial+1:])
	if mutant("the-rest-goes-free") {
		left = nil
	}
`,
		}},
		Package: "object", Test: "TestJudge",
	},
	{
		Name: "rest-again-and-again", Promise: "A8", File: "object/alarm_inquiry.go",
		Edits: []edit{{
			Old: `{ return set >= onceRest && set < freshSet }`,
			New: `{ return set >= onceRest && set < freshSet && !mutant("rest-again-and-again") }`,
		}},
		Package: "object", Test: "TestCrashesOfKillers/16_among_16",
	},
	{
		Name: "late-set-goes-first", Promise: "A8", File: "object/alarm_trials.go",
		Edits: []edit{{
			Old: `{ return cmp.Compare(place(a.set), place(b.set)) })`,
			New: `{
		if mutant("late-set-goes-first") {
			return 0
		}
		return cmp.Compare(place(a.set), place(b.set))
	})`,
		}},
		Package: "object", Test: "TestCrashesOfKillers/2_among_2",
	},
	{
		Name: "suspect-run-begins-at-once", Promise: "R4", File: "jobs/engine/work.go",
		Edits: []edit{{
			Old: `{ r.given.Held = held }`,
			New: `{ r.given.Held = held && !mutant("suspect-run-begins-at-once") }`,
		}},
		Package: "jobs/continuous", Test: "TestHeldRunEnds",
	},
	{
		Name: "crash-is-an-attempt-of-a-task", Promise: "W5", File: "jobs/engine/outcome.go",
		Edits: []edit{{
			Old: `o.LossIsFailure && e.lost.cause == recovery.CauseLease`,
			New: `o.LossIsFailure && (e.lost.cause == recovery.CauseLease || mutant("crash-is-an-attempt-of-a-task"))`,
		}},
		Package: "jobs/workerpool", Test: "TestCrashesAreNoAttempts",
	},
	{
		Name: "crash-forgotten-without-a-suspect", Promise: "A8", File: "object/alarm_trials.go",
		Edits: []edit{{
			Old: `		if row.trial = 0; s.formed {`,
			New: `		if row.trial = 0; s.formed || mutant("crash-forgotten-without-a-suspect") {`,
		}},
		Package: "object", Test: "TestSlowKillerAfterCrashesFromOutside",
	},
	{
		Name: "trial-ends-with-a-withdrawn-message", Promise: "A8", File: "object/message_flight.go",
		Edits: []edit{{
			Old: `m.outcome != kept || !m.Withdrawn()`,
			New: `m.outcome != kept || (!m.Withdrawn() || mutant("trial-ends-with-a-withdrawn-message"))`,
		}},
		Package: "object", Test: "TestDeleteDuringATrialClearsNoSuspect",
	},
	{
		Name: "trial-goes-on-after-the-copy", Promise: "A8", File: "object/message_flight.go",
		Edits: []edit{{
			Old: `	m.trial = m
`,
			New: `	if !mutant("trial-goes-on-after-the-copy") {
		m.trial = m
	}
`,
		}},
		Package: "object", Test: "TestTrialEndsWithTheMessageThatWasReadAgain",
	},
}
