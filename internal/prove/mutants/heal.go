package main

// healMutants are bugs of the walk that tries stuck jobs at open.
var healMutants = []mutant{
	{
		Name: "stuck-runs-left-alone-at-open", Promise: "F10", File: "jobs/workflow/workflow.go",
		Edits: []edit{{
			Old: `		engine.Heal(ctx, h, log, name,`,
			New: `		if mutant("stuck-runs-left-alone-at-open") {
			return
		}
		engine.Heal(ctx, h, log, name,`,
		}},
		Package: "jobs/workflow", Test: "TestCrashHeal",
	},
	{
		Name: "healing-without-a-pace", Promise: "F10", File: "jobs/engine/heal.go",
		Edits: []edit{{
			Old: `		if w.tried > 0 {
			if err :=`,
			New: `		if w.tried > 0 && !mutant("healing-without-a-pace") {
			if err :=`,
		}},
		Package: "jobs/engine", Test: "TestHealing",
	},
	{
		Name: "healing-makes-up-for-lost-time", Promise: "F10", File: "jobs/engine/heal.go",
		Edits: []edit{{
			Old: `		w.began = seams.Steady()
`,
			New: `		if w.began = w.began.Add(healEvery); w.tried == 0 || !mutant("healing-makes-up-for-lost-time") {
			w.began = seams.Steady()
		}
`,
		}},
		Package: "jobs/engine", Test: "TestHealingTellsItsCounts",
	},
	{
		Name: "healing-in-stored-order", Promise: "F10", File: "jobs/engine/heal.go",
		Edits: []edit{{
			Old: `		slices.SortFunc(found, stuckJob.before)
`,
			New: `		if !mutant("healing-in-stored-order") {
			slices.SortFunc(found, stuckJob.before)
		}
`,
		}},
		Package: "jobs/engine", Test: "TestHealing",
	},
	{
		Name: "healing-ends-with-the-jobs-in-memory", Promise: "F10", File: "jobs/engine/heal.go",
		Edits: []edit{{
			Old: `			found, more = found[:w.most], true
`,
			New: `			found, more = found[:w.most], !mutant("healing-ends-with-the-jobs-in-memory")
`,
		}},
		Package: "jobs/engine", Test: "TestHealing",
	},
	{
		Name: "healing-tries-those-that-rest", Promise: "F10", File: "jobs/engine/heal.go",
		Edits: []edit{{
			Old: `m.Status == jobs.Stuck && !m.Run.RetryAt.IsZero(), nil`,
			New: `m.Status == jobs.Stuck && (!m.Run.RetryAt.IsZero() || mutant("healing-tries-those-that-rest")), nil`,
		}},
		Package: "jobs/engine", Test: "TestHealing",
	},
	{
		Name: "another-try-begins-the-waits-anew", Promise: "F10", File: "jobs/engine/verbs.go",
		Edits: []edit{{
			Old: `		m.Run.RetryAt = now
		return l.put(ctx, m)
`,
			New: `		m.Run.RetryAt = now
		if mutant("another-try-begins-the-waits-anew") {
			m.Run = unstuckRun(m.Run, now)
		}
		return l.put(ctx, m)
`,
		}},
		Package: "jobs/workflow", Test: "TestHealOfWhatStaysStuck",
	},
	{
		Name: "shutdown-leaves-the-functions-of-open", Promise: "O14", File: "object/host.go",
		Edits: []edit{{
			Old: `				place := h.awaits.enter(cancel)
				defer h.awaits.leave(place)
				f(`,
			New: `				if !mutant("shutdown-leaves-the-functions-of-open") {
					place := h.awaits.enter(cancel)
					defer h.awaits.leave(place)
				}
				f(`,
		}},
		Package: "object", Test: "TestAtOpen",
	},
}
