package main

// scheduleMutants are bugs of schedules and retries.
var scheduleMutants = []mutant{
	{
		Name: "wait-through-a-float", Promise: "J9", File: "alarm/backoff.go",
		Edits: []edit{{
			Old: `	return base << times
`,
			New: `	if mutant("wait-through-a-float") {
		return min(time.Duration(float64(base)*math.Pow(2, float64(times))), limit)
	}
	return base << times
`,
		}},
		Package: "alarm", Test: "TestBackoffIsExact",
	},
	{
		Name: "alarm-wait-through-a-float", Promise: "A6", File: "alarm/backoff.go",
		Edits: []edit{{
			Old: `new(big.Float).SetPrec(precision)`,
			New: `new(big.Float).SetPrec(map[bool]uint{true: 53, false: precision}[mutant("alarm-wait-through-a-float")])`,
		}},
		Package: "alarm", Test: "TestBackoffIsExact",
	},
	{
		Name: "skipped-times-are-left-out", Promise: "C2", File: "jobs/cron.go",
		Edits: []edit{{
			Old: `		s.look(max(shown, change+before.offset), change+now.offset, before.offset)
`,
			New: `		if !mutant("skipped-times-are-left-out") {
			s.look(max(shown, change+before.offset), change+now.offset, before.offset)
		}
`,
		}},
		Package: "jobs", Test: "TestCronOfEachZone/America/Havana",
	},
	{
		Name: "repeated-times-happen-twice", Promise: "C2", File: "jobs/cron.go",
		Edits: []edit{{
			Old: `		if !c.table.eachHour() {
`,
			New: `		if !c.table.eachHour() && !mutant("repeated-times-happen-twice") {
`,
		}},
		Package: "jobs", Test: "TestCronOfARepeatedHour",
	},
	{
		Name: "shortened-schedule-waits", Promise: "C5", File: "jobs/engine/wake.go",
		Edits: []edit{{
			Old: `	if !at.After(e.Now()) {
		return nil
`,
			New: `	if !at.After(e.Now()) || mutant("shortened-schedule-waits") {
		return nil
`,
		}},
		Package: "jobs/continuous", Test: "TestDeployMakesOverdue",
	},
	{
		Name: "wake-up-restarts-the-retries", Promise: "C5", File: "jobs/engine/wake.go",
		Edits: []edit{{
			Old: `	if err == nil && failures == 0 {
`,
			New: `	if err == nil && (failures == 0 || mutant("wake-up-restarts-the-retries")) {
`,
		}},
		Package: "jobs/continuous", Test: "TestDeployLeavesRetriesAlone",
	},
	{
		Name: "rearm-ends-with-a-page", Promise: "C5", File: "jobs/engine/rearm.go",
		Edits: []edit{{
			Old: `		after = page[len(page)-1].ID.Name
`,
			New: `		if mutant("rearm-ends-with-a-page") {
			return r.done, nil
		}
		after = page[len(page)-1].ID.Name
`,
		}},
		Package: "jobs/continuous", Test: "TestRearmOfColdJobs",
	},
	{
		Name: "pause-forgotten-by-a-failed-run", Promise: "J10", File: "jobs/engine/job.go",
		Edits: []edit{{
			Old: `	case l.meta.Pausing:
`,
			New: `	case l.meta.Pausing && (out.Err == nil || !mutant("pause-forgotten-by-a-failed-run")):
`,
		}},
		Package: "jobs/continuous", Test: "TestPauseOfARunThatFails",
	},
	{
		Name: "chosen-run-leaves-the-occurrence", Promise: "C2", File: "jobs/continuous/instance.go",
		Edits: []edit{{
			Old: `	if run.Attempt == 0 {
		wanted`,
			New: `	if run.Attempt == 0 && !(run.Cause == engine.CauseChosen && mutant("chosen-run-leaves-the-occurrence")) {
		wanted`,
		}},
		Package: "jobs/continuous", Test: "TestChosenRunTakesTheOccurrence",
	},
	{
		Name: "trigger-leaves-the-occurrence", Promise: "C1", File: "jobs/continuous/instance.go",
		Edits: []edit{{
			Old: `			return err
		}
		return in.move(ctx, jobs.StartCursor(in.job.Now()), in.cursor.StateVersion)
	})
}`,
			New: `			return err
		}
		if mutant("trigger-leaves-the-occurrence") {
			return nil
		}
		return in.move(ctx, jobs.StartCursor(in.job.Now()), in.cursor.StateVersion)
	})
}`,
		}},
		Package: "jobs/continuous", Test: "TestTriggerTakesTheOccurrence",
	},
	{
		Name: "resume-keeps-old-recoveries", Promise: "R4", File: "jobs/engine/verbs.go",
		Edits: []edit{{
			Old: `		m.Run, m.Failures = jobs.Run{}, 0
	}
`,
			New: `		old := m.Run
		m.Run, m.Failures = jobs.Run{}, 0
		if mutant("resume-keeps-old-recoveries") {
			m.Run.Recoveries, m.Run.Cuts, m.Run.CutEpoch = old.Recoveries, old.Cuts, old.CutEpoch
		}
	}
`,
		}},
		Package: "jobs/continuous", Test: "TestResumeForgetsRecoveries",
	},
	{
		Name: "batch-without-bound", Promise: "C1", File: "jobs/engine/batch.go",
		Edits: []edit{{
			Old: `	workers := min(atOnce, len(lines))
`,
			New: `	workers := min(atOnce, len(lines))
	if mutant("batch-without-bound") {
		workers = len(lines)
	}
`,
		}},
		Package: "jobs/continuous", Test: "TestEachIsBounded",
	},
	{
		Name: "batch-out-of-order", Promise: "D2", File: "jobs/engine/batch.go",
		Edits: []edit{{
			Old: `		n, ok := line[name]
		if !ok {`,
			New: `		n, ok := line[name]
		if !ok || mutant("batch-out-of-order") {`,
		}},
		Package: "jobs/continuous", Test: "TestEachIsBounded",
	},
}
