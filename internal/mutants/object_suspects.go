package main

// suspectMutants are bugs of work that kills its process.
var suspectMutants = []mutant{
	{
		Name: "one-crash-makes-a-suspect", Promise: "A8", File: "object/inquiry.go",
		Edits: []edit{{
			Old: `epoch > q.cleared && cuts >= q.need`,
			New: `epoch > q.cleared && (cuts >= q.need || mutant("one-crash-makes-a-suspect"))`,
		}},
		Package: "object", Test: "TestSuspected",
	},
	{
		Name: "charged-without-a-control", Promise: "A8", File: "object/trials.go",
		Edits: []edit{{
			Old: `	if s.found.charges[part[0]] > 0 {
`,
			New: `	if s.found.charges[part[0]] > 0 && !mutant("charged-without-a-control") {
`,
		}},
		Package: "object", Test: "TestCrashesFromOutsideGiveUpNothing/3.5_s_under_work_of_30s",
	},
	{
		Name: "suspect-dropped-from-its-lane", Promise: "A8", File: "object/trials.go",
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
		Name: "strays-clear-nothing", Promise: "A8", File: "object/inquiry.go",
		Edits: []edit{{
			Old: `	case q.phase == holding && q.strays+1 >= straysMax:
`,
			New: `	case q.phase == holding && q.strays+1 >= straysMax && !mutant("strays-clear-nothing"):
`,
		}},
		Package: "object", Test: "TestJudge",
	},
	{
		Name: "the-rest-goes-free", Promise: "A8", File: "object/inquiry.go",
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
		Name: "suspect-run-begins-at-once", Promise: "R4", File: "jobs/work.go",
		Edits: []edit{{
			Old: `{ w.given.Held = held }`,
			New: `{ w.given.Held = held && !mutant("suspect-run-begins-at-once") }`,
		}},
		Package: "jobs/continuous", Test: "TestHeldRunEnds",
	},
	{
		Name: "crash-is-an-attempt-of-a-task", Promise: "W5", File: "jobs/outcome.go",
		Edits: []edit{{
			Old: `o.LossIsFailure && e.lost.cause == recovery.CauseLease`,
			New: `o.LossIsFailure && (e.lost.cause == recovery.CauseLease || mutant("crash-is-an-attempt-of-a-task"))`,
		}},
		Package: "jobs/workerpool", Test: "TestCrashesAreNoAttempts",
	},
}
