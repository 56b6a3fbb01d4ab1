package main

// deadMutants are bugs of the one list of dead work.
var deadMutants = []mutant{
	{
		Name: "undo-is-a-completed-step", Promise: "F12", File: "jobs/workflow/verbs.go",
		Edits: []edit{{
			Old: `strings.HasPrefix(e.Scope, undoPath):
`,
			New: `strings.HasPrefix(e.Scope, undoPath) && !mutant("undo-is-a-completed-step"):
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashFailureNamesItsSteps/map",
	},
	{
		Name: "dead-letter-of-a-run-beyond-its-limit", Promise: "F12", File: "jobs/workflow/verbs.go",
		Edits: []edit{{
			Old: `len(raw) > object.MaxDeadData {`,
			New: `len(raw) > object.MaxDeadData && !mutant("dead-letter-of-a-run-beyond-its-limit") {`,
		}},
		Package: "jobs/workflow", Test: "TestNamesOfADeadLetter",
	},
	{
		Name: "failure-names-one-step-too-many", Promise: "F12", File: "jobs/workflow/verbs.go",
		Edits: []edit{{
			Old: `		case len(d.Steps) < maxDeadSteps:
`,
			New: `		case len(d.Steps) < maxDeadSteps, mutant("failure-names-one-step-too-many") && len(d.Steps) == maxDeadSteps:
`,
		}},
		Package: "jobs/workflow", Test: "TestFailureNamesAHundredSteps",
	},
	{
		Name: "event-of-a-failure-names-no-steps", Promise: "F12", File: "jobs/engine/verbs.go",
		Edits: []edit{{
			Old: `ok && to == jobs.Failed {
`,
			New: `ok && to == jobs.Failed && !mutant("event-of-a-failure-names-no-steps") {
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashFailureNamesItsSteps/map",
	},
	{
		Name: "event-of-a-failure-too-large", Promise: "F12", File: "jobs/engine/verbs.go",
		Edits: []edit{{
			Old: `err := l.st.Emit(ctx, kind, t.Failing(ev)); !tooLarge(err) {
`,
			New: `err := l.st.Emit(ctx, kind, t.Failing(ev)); !tooLarge(err) || mutant("event-of-a-failure-too-large") {
`,
		}},
		Package: "jobs/workflow", Test: "TestFailureWithoutRoomForItsSteps",
	},
	{
		Name: "letter-stays-at-a-replay", Promise: "W10", File: "jobs/workerpool/dead_letters.go",
		Edits: []edit{{
			Old: `	if r.letter == 0 {
		return nil
	}
`,
			New: `	if r.letter == 0 || mutant("letter-stays-at-a-replay") {
		return nil
	}
`,
		}},
		Package: "jobs/workerpool", Test: "TestLetterGoesWithTheTask",
	},
	{
		Name: "older-dead-tasks-get-no-letter", Promise: "W10", File: "jobs/workerpool/dead_letters.go",
		Edits: []edit{{
			Old: `p.unmended = p.buried < p.dead`,
			New: `p.unmended = p.buried < p.dead && !mutant("older-dead-tasks-get-no-letter")`,
		}},
		Package: "jobs/workerpool", Test: "TestLettersOfAnOlderStore",
	},
	{
		Name: "scrub-does-not-compare-letters", Promise: "W10", File: "recovery/scrub_pool.go",
		Edits: []edit{{
			Old: `	case p.letters != "":`,
			New: `	case p.letters != "" && !mutant("scrub-does-not-compare-letters"):`,
		}},
		Package: "jobs/workerpool", Test: "TestExamineComparesTheList",
	},
	{
		Name: "panics-not-counted-in-an-end-batch", Promise: "W10", File: "jobs/engine/work.go",
		Edits: []edit{{
			Old: `	if !ok {
		return 0
	}
	return 2 * (min(`,
			New: `	if !ok || mutant("panics-not-counted-in-an-end-batch") {
		return 0
	}
	return 2 * (min(`,
		}},
		Package: "jobs/workerpool", Test: "TestManyDeathsFitTheirBatches",
	},
	{
		Name: "failed-discard-removes-the-letter", Promise: "A11", File: "object/dead_letters.go",
		Edits: []edit{{
			Old: `		if err := use(t, d); err != nil {
			return err
`,
			New: `		if err := use(t, d); err != nil {
			if mutant("failed-discard-removes-the-letter") {
				t.begun().DeleteDead(t.object.Shard, id, seq)
				return errors.Join(err, t.commit(false))
			}
			return err
`,
		}},
		Package: "object", Test: "TestJobLetterNeedsItsVerb",
	},
	{
		Name: "replay-acts-on-the-letter-of-a-job", Promise: "A11", File: "object/dead_letters.go",
		Edits: []edit{{
			Old: `	case d.Verb != "":
		return d.useVerb()
	case d.Kind == DeadAlarm:
`,
			New: `	case d.Verb != "" && !mutant("replay-acts-on-the-letter-of-a-job"):
		return d.useVerb()
	case d.Kind == DeadAlarm || d.Verb != "":
`,
		}},
		Package: "jobs/workerpool", Test: "TestLetterGoesWithTheTask",
	},
	{
		Name: "older-letter-is-not-an-alarms", Promise: "A11", File: "object/dead_letters.go",
		Edits: []edit{{
			Old: `	d.Kind = cmp.Or(d.Kind, DeadAlarm)
`,
			New: `	if !mutant("older-letter-is-not-an-alarms") {
		d.Kind = cmp.Or(d.Kind, DeadAlarm)
	}
`,
		}},
		Package: "object", Test: "TestKindsOfStoredLetters",
	},
	{
		Name: "letters-outlive-the-object", Promise: "A11", File: "object/dead_letters.go",
		Edits: []edit{{
			Old: `err == nil && d.Verb != "" {`,
			New: `err == nil && d.Verb != "" && !mutant("letters-outlive-the-object") {`,
		}},
		Package: "object", Test: "TestDeleteRemovesLettersOfJobs",
	},
	{
		Name: "range-of-letters-takes-the-alarms", Promise: "A11", File: "object/dead_letters.go",
		Edits: []edit{{
			Old: `	for _, seq := range slices.Sorted(maps.Keys(kept)) {
`,
			New: `	for _, seq := range slices.Sorted(maps.Keys(kept)) {
		if mutant("range-of-letters-takes-the-alarms") {
			continue
		}
`,
		}},
		Package: "object", Test: "TestDeleteRemovesLettersOfJobs",
	},
	{
		Name: "letter-makes-its-object-exist", Promise: "A11", File: "object/driver.go",
		Edits: []edit{{
			Old: `	t.begun().SetDead(t.object.Shard, a.object.ID, letter.Seq, value)
`,
			New: `	t.begun().SetDead(t.object.Shard, a.object.ID, letter.Seq, value)
	t.writes.adds = t.writes.adds || mutant("letter-makes-its-object-exist")
`,
		}},
		Package: "object", Test: "TestBuriedLetterIsListed",
	},
	{
		Name: "letters-not-counted-in-the-batch", Promise: "S7", File: "object/driver.go",
		Edits: []edit{{
			Old: `deadKeyBytes(a.object.ID)+len(value), "", nil); err != nil {`,
			New: `deadKeyBytes(a.object.ID)+len(value), "", nil); err != nil && !mutant("letters-not-counted-in-the-batch") {`,
		}},
		Package: "object", Test: "TestLettersCountInTheBatch",
	},
}
