package main

// restMutants are bugs of jobs that are stuck, end by the wish of their work, or rest until a
// time, and of runs that tell of progress.
var restMutants = []mutant{
	{
		Name: "each-failure-of-a-stuck-job-is-told", Promise: "J20", File: "jobs/engine/stuck.go",
		Edits: []edit{{
			Old: `return out.Kind == GaveUp || out.Run.Failures == 1`,
			New: `return out.Kind == GaveUp || out.Run.Failures == 1 || mutant("each-failure-of-a-stuck-job-is-told")`,
		}},
		Package: "jobs/engine", Test: "TestStuckJob",
	},
	{
		Name: "stuck-job-is-given-up", Promise: "J20", File: "jobs/engine/outcome.go",
		Edits: []edit{{
			Old: `	if o.endless {`,
			New: `	if o.endless && !mutant("stuck-job-is-given-up") {`,
		}},
		Package: "jobs/engine", Test: "TestStuckJobIsNotGivenUp",
	},
	{
		Name: "stuck-job-without-recoveries-is-tried-again", Promise: "J20", File: "jobs/engine/stuck.go",
		Edits: []edit{{
			Old: `	m.Run.RetryAt = time.Time{}
`,
			New: `	m.Run.RetryAt = time.Time{}
	if mutant("stuck-job-without-recoveries-is-tried-again") {
		m.Run.RetryAt = before.UpdatedAt
	}
`,
		}},
		Package: "jobs/engine", Test: "TestStuckForItsRecoveries",
	},
	{
		Name: "resume-of-a-stuck-job-keeps-its-crashes", Promise: "J20", File: "jobs/engine/stuck.go",
		Edits: []edit{{
			Old: `	r, _ = progressedRun(r)
`,
			New: `	if !mutant("resume-of-a-stuck-job-keeps-its-crashes") {
		r, _ = progressedRun(r)
	}
`,
		}},
		Package: "jobs/engine", Test: "TestStuckForItsRecoveries",
	},
	{
		Name: "error-of-a-wish-is-lost", Promise: "J21", File: "jobs/engine/meta.go",
		Edits: []edit{{
			Old: `		case res.Err != nil:`,
			New: `		case res.Err != nil && !mutant("error-of-a-wish-is-lost"):`,
		}},
		Package: "jobs/engine", Test: "TestWishesOfTheWork",
	},
	{
		Name: "completed-job-is-not-told", Promise: "J21", File: "jobs/engine/verbs.go",
		Edits: []edit{{
			Old: `	case to == jobs.Completed:`,
			New: `	case to == jobs.Completed && !mutant("completed-job-is-not-told"):`,
		}},
		Package: "jobs/engine", Test: "TestWishesOfTheWork",
	},
	{
		Name: "ended-under-its-execution", Promise: "J21", File: "jobs/engine/verbs.go",
		Edits: []edit{{
			Old: `	case m.Status == jobs.Executing, to != jobs.Completed`,
			New: `	case m.Status == jobs.Executing && !mutant("ended-under-its-execution"), to != jobs.Completed`,
		}},
		Package: "jobs/engine", Test: "TestEndNow",
	},
	{
		Name: "retention-ends-early", Promise: "J21", File: "jobs/engine/rest.go",
		Edits: []edit{{
			Old: `	return storable(t.Add(d))
`,
			New: `	if mutant("retention-ends-early") {
		d--
	}
	return storable(t.Add(d))
`,
		}},
		Package: "jobs/engine", Test: "TestRetention",
	},
	{
		Name: "ended-job-without-an-alarm", Promise: "J3", File: "jobs/engine/rest.go",
		Edits: []edit{{
			Old: `	return true, l.e.arm(ctx)
`,
			New: `	if mutant("ended-job-without-an-alarm") {
		return true, nil
	}
	return true, l.e.arm(ctx)
`,
		}},
		Package: "jobs/engine", Test: "TestRetentionThatChanges",
	},
	{
		Name: "stale-moves-the-label", Promise: "J22", File: "jobs/engine/rest.go",
		Edits: []edit{{
			Old: `	return l.st.Emit(ctx, jobs.EventStale,`,
			New: `	if mutant("stale-moves-the-label") {
		if err := l.st.Driver().SetLabel(ctx, jobs.EventStale); err != nil {
			return err
		}
	}
	return l.st.Emit(ctx, jobs.EventStale,`,
		}},
		Package: "jobs/engine", Test: "TestStale",
	},
	{
		Name: "failing-hook-keeps-the-job", Promise: "J23", File: "jobs/engine/rest.go",
		Edits: []edit{{
			Old: `	if h.Of == onDelete {
`,
			New: `	if h.Of == onDelete && (out.Kind != GaveUp || !mutant("failing-hook-keeps-the-job")) {
`,
		}},
		Package: "jobs/engine", Test: "TestHooksOfARetention",
	},
	{
		Name: "retired-job-goes-in-two-commits", Promise: "J21", File: "jobs/engine/verbs.go",
		Edits: []edit{{
			Old: `		if err := t.Retiring(ctx); err != nil {`,
			New: `		if err := t.Retiring(ctx); err != nil || mutant("retired-job-goes-in-two-commits") && l.st.Sync(ctx) != nil {`,
		}},
		Package: "jobs/engine", Test: "TestRestSurvivesCrashes/map",
	},
	{
		Name: "type-is-not-told-of-the-end", Promise: "J21", File: "jobs/engine/verbs.go",
		Edits: []edit{{
			Old: `l.t.(Retirer); ok {`,
			New: `l.t.(Retirer); ok && !mutant("type-is-not-told-of-the-end") {`,
		}},
		Package: "jobs/engine", Test: "TestRetiringThatFails",
	},
	{
		Name: "retention-survives-a-resume", Promise: "J21", File: "jobs/engine/job.go",
		Edits: []edit{{
			Old: `	m.EndedAt, m.RetireAt, m.PausedUntil = time.Time{}, time.Time{}, time.Time{}
`,
			New: `	if mutant("retention-survives-a-resume") {
		m.PausedUntil = time.Time{}
		return m, nil
	}
	m.EndedAt, m.RetireAt, m.PausedUntil = time.Time{}, time.Time{}, time.Time{}
`,
		}},
		Package: "jobs/engine", Test: "TestResumeBeforeTheRetention",
	},
	{
		Name: "time-of-a-pause-is-lost-at-the-end", Promise: "J10", File: "jobs/engine/job.go",
		Edits: []edit{{
			Old: `	case to == jobs.Paused:
		m.PausedUntil = until
`,
			New: `	case to == jobs.Paused && !mutant("time-of-a-pause-is-lost-at-the-end"):
		m.PausedUntil = until
`,
		}},
		Package: "jobs/engine", Test: "TestPauseUntilOfAnExecution",
	},
	{
		Name: "paused-job-resumes-late", Promise: "J10", File: "jobs/meta.go",
		Edits: []edit{{
			Old: `	case m.Status == Paused:
		return m.PausedUntil
`,
			New: `	case m.Status == Paused && !m.PausedUntil.IsZero() && mutant("paused-job-resumes-late"):
		return m.PausedUntil.Add(1)
	case m.Status == Paused:
		return m.PausedUntil
`,
		}},
		Package: "jobs/engine", Test: "TestPauseUntil",
	},
	{
		Name: "alarm-of-a-rest-is-lazy", Promise: "J3", File: "jobs/engine/wake.go",
		Edits: []edit{{
			Old: `e.o.LazyAlarm && !e.exact
`,
			New: `e.o.LazyAlarm && (!e.exact || mutant("alarm-of-a-rest-is-lazy"))
`,
		}},
		Package: "jobs/engine", Test: "TestPauseUntil",
	},
	{
		Name: "scrub-takes-any-alarm-of-a-rest", Promise: "J3", File: "recovery/scrub_facts.go",
		Edits: []edit{{
			Old: `f.alarm.Equal(end):`,
			New: `(f.alarm.Equal(end) || f.armed && mutant("scrub-takes-any-alarm-of-a-rest")):`,
		}},
		Package: "recovery", Test: "TestScrubOfResting",
	},
	{
		Name: "metadata-of-any-object-are-of-a-job", Promise: "R6", File: "jobs/meta.go",
		Edits: []edit{{
			Old: `m.Name == class && m.ID == name &&`,
			New: `(m.Name == class && m.ID == name || mutant("metadata-of-any-object-are-of-a-job")) &&`,
		}},
		Package: "recovery", Test: "TestScrubPassesOverARowOfAUser",
	},
	{
		Name: "scrub-takes-a-rest-without-its-alarm", Promise: "J3", File: "recovery/scrub_facts.go",
		Edits: []edit{{
			Old: `	switch end := f.meta.RestEnd(); {
`,
			New: `	switch end := f.meta.RestEnd(); {
	case !f.armed && mutant("scrub-takes-a-rest-without-its-alarm"):
		return ""
`,
		}},
		Package: "recovery", Test: "TestScrubOfResting",
	},
	{
		Name: "progress-keeps-the-crashes", Promise: "R4", File: "jobs/engine/progress.go",
		Edits: []edit{{
			Old: `	progressed.Run, progressed.Held = run, false
`,
			New: `	progressed.Run, progressed.Held = run, false
	if mutant("progress-keeps-the-crashes") {
		progressed.Run.Cuts, progressed.Run.CutEpoch = x.Run.Cuts, x.Run.CutEpoch
	}
`,
		}},
		Package: "jobs/engine", Test: "TestProgressForgetsCrashes/always",
	},
	{
		Name: "progress-does-not-clear-the-suspect", Promise: "R4", File: "jobs/engine/progress.go",
		Edits: []edit{{
			Old: `	if err := e.st.Driver().ClearSuspect(ctx, x.record()); err != nil {
`,
			New: `	if mutant("progress-does-not-clear-the-suspect") {
		x.Execution = &progressed
		return nil
	}
	if err := e.st.Driver().ClearSuspect(ctx, x.record()); err != nil {
`,
		}},
		Package: "jobs/engine", Test: "TestProgressEndsTheTrial/progress",
	},
	{
		Name: "charges-count-over-progress", Promise: "R4", File: "jobs/engine/engine.go",
		Edits: []edit{{
			Old: `	if x.Run.CutEpoch == 0 { //`,
			New: `	if x.Run.CutEpoch == 0 && !mutant("charges-count-over-progress") { //`,
		}},
		Package: "jobs/engine", Test: "TestProgressWhileTheHostCloses",
	},
	{
		Name: "reset-costs-a-recovery", Promise: "R4", File: "jobs/engine/wake.go",
		Edits: []edit{{
			Old: `e.o.resetsAreFree && !died`,
			New: `e.o.resetsAreFree && !mutant("reset-costs-a-recovery") && !died`,
		}, {
			Old: `recovery.CauseStale && e.cutsAreFree(x),`,
			New: `recovery.CauseStale && e.cutsAreFree(x) && !mutant("reset-costs-a-recovery"),`,
		}},
		Package: "jobs/engine", Test: "TestFreeResets",
	},
}
