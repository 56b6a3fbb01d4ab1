package main

// scheduleMutants are bugs of schedules and retries.
var scheduleMutants = []mutant{
	{
		Name: "wait-through-a-float", Promise: "J9", File: "jobs/retry.go",
		Edits: []edit{{
			Old: `	return base << times
`,
			New: `	if mutant("wait-through-a-float") {
		return min(time.Duration(float64(base)*math.Pow(2, float64(times))), limit)
	}
	return base << times
`,
		}},
		Package: "jobs", Test: "TestBackoffIsExact",
	},
	{
		Name: "alarm-wait-through-a-float", Promise: "A6", File: "alarm/retry.go",
		Edits: []edit{{
			Old: `new(big.Float).SetPrec(precision)`,
			New: `new(big.Float).SetPrec(map[bool]uint{true: 53, false: precision}[mutant("alarm-wait-through-a-float")])`,
		}},
		Package: "alarm", Test: "TestRetryIsExact",
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
		Name: "shortened-schedule-waits", Promise: "C5", File: "jobs/wake.go",
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
		Name: "wake-up-restarts-the-retries", Promise: "C5", File: "jobs/wake.go",
		Edits: []edit{{
			Old: `failures > 0 || err != nil {`,
			New: `failures > 0 && !mutant("wake-up-restarts-the-retries") || err != nil {`,
		}},
		Package: "jobs/continuous", Test: "TestDeployLeavesRetriesAlone",
	},
	{
		Name: "rearm-ends-with-a-page", Promise: "C5", File: "jobs/rearm.go",
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
}
