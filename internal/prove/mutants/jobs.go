package main

var jobMutants = []mutant{
	{
		Number: 1, Name: "run-count-before-the-work", Promise: "C3", File: "jobs/engine/meta.go",
		Edits: []edit{{
			Old: `	m.Run = x.Run
	return m
`,
			New: `	m.Run = x.Run
	if mutant("run-count-before-the-work") {
		m.RunCount = x.Run.Number
	}
	return m
`,
		}},
		Package: "jobs/continuous", Test: "TestRunsSurviveCrashes/map",
	},
	{
		Number: 2, Name: "next-alarm-in-a-second-commit", Promise: "J5", File: "jobs/engine/wake.go",
		Edits: []edit{{
			Old: `	return e.st.Driver().SetAlarm(ctx, due)
}
`,
			New: `	if mutant("next-alarm-in-a-second-commit") {
		if err := e.st.Sync(ctx); err != nil {
			return err
		}
	}
	return e.st.Driver().SetAlarm(ctx, due)
}
`,
		}},
		Package: "jobs/continuous", Test: "TestRunsSurviveCrashes/map",
	},
	{
		Number: 5, Name: "no-wake-up-check", Promise: "R2", File: "jobs/engine/wake.go",
		Edits: []edit{{
			Old: `	at, armed, err := e.st.Alarm(ctx)
	if err != nil {
		return err
	}
	due := e.next()
	if due.IsZero()`,
			New: `	at, armed, err := e.st.Alarm(ctx)
	if err != nil || mutant("no-wake-up-check") {
		return err
	}
	due := e.next()
	if due.IsZero()`,
		}},
		Package: "jobs/continuous", Test: "TestRecoveryIsPrompt",
	},
	{
		Number: 10, Name: "recoveries-never-reset", Promise: "R4", File: "jobs/engine/meta.go",
		Edits: []edit{{
			Old: `		m.Run = jobs.Run{}
		if m.NextAt`,
			New: `		m.Run = jobs.Run{}
		if mutant("recoveries-never-reset") {
			m.Run.Recoveries = x.Run.Recoveries
		}
		if m.NextAt`,
		}},
		Package: "jobs/continuous", Test: "TestSuccessEndsTheCount",
	},
	{
		Number: 10, Name: "recoveries-reset-before-the-work", Promise: "R4", File: "jobs/engine/run.go",
		Edits: []edit{{
			Old: `	r.Attempt++
	r.RetryAt`,
			New: `	r.Attempt++
	if mutant("recoveries-reset-before-the-work") {
		r.Recoveries = 0
	}
	r.RetryAt`,
		}},
		Package: "jobs/continuous", Test: "TestRunThatKillsItsProcess",
	},
	{
		Number: 11, Name: "lease-not-extended", Promise: "J7", File: "jobs/engine/wake.go",
		Edits: []edit{{
			Old: `	x.extend(now.Add(r.lease))
`,
			New: `	if !mutant("lease-not-extended") {
		x.extend(now.Add(r.lease))
	}
`,
		}},
		Package: "jobs/engine", Test: "TestLeaseIsExtended",
	},
	{
		Number: 15, Name: "token-not-checked", Promise: "J8", File: "jobs/engine/ends.go",
		Edits: []edit{{
			Old: `				if !ok {
`,
			New: `				for _, other := range e.open {
					if !ok && mutant("token-not-checked") {
						x, ok = other, true
					}
				}
				if !ok {
`,
		}},
		Package: "jobs/engine", Test: "TestCancelAndClose",
	},
	{
		Number: 16, Name: "restarts-count-as-attempts", Promise: "J9", File: "jobs/engine/run.go",
		Edits: []edit{{
			Old: `	switch {
	case l.free:
`,
			New: `	if mutant("restarts-count-as-attempts") {
		r.Failures++
	}
	switch {
	case l.free:
`,
		}},
		Package: "jobs/continuous", Test: "TestRetrySurvivesCrashes/map",
	},
	{
		Number: 17, Name: "wake-up-moves-the-alarm", Promise: "R5", File: "jobs/engine/wake.go",
		Edits: []edit{{
			Old: `	case !due.Before(at):
`,
			New: `	case mutant("wake-up-moves-the-alarm") && armed && at.After(e.Now()):
		return e.st.Driver().SetAlarm(ctx, e.Now().Add(time.Minute))
	case !due.Before(at):
`,
		}},
		Package: "jobs/continuous", Test: "TestWakeUpKeepsTheAlarm",
	},
	{
		Name: "long-work-is-taken-for-lost", Promise: "J7", File: "jobs/engine/wake.go",
		Edits: []edit{{
			Old: `			err = e.renew(ctx, x, now)`,
			New: `			err = e.renew(ctx, x, now)
			if mutant("long-work-is-taken-for-lost") && now.After(x.Began.Add(e.o.Lease)) {
				x.routine = nil
				e.judgeLoss(x)
			}`,
		}},
		Package: "jobs/continuous", Test: "TestLongRun",
	},
	{
		Name: "open-marks-not-read", Promise: "R1", File: "object/host_recovery.go",
		Edits: []edit{{
			Old: `	if err != nil || len(ids) == 0 {
		return err
	}
	queue`,
			New: `	if err != nil || len(ids) == 0 || mutant("open-marks-not-read") {
		return err
	}
	queue`,
		}},
		Package: "jobs/continuous", Test: "TestRecoveryIsPrompt",
	},
	{
		Name: "recovery-comes-late", Promise: "R7", File: "jobs/engine/engine.go",
		Edits: []edit{{
			Old: `	x.action = recovery.Check(s, e.o.Limits)
`,
			New: `	x.action = recovery.Check(s, e.o.Limits)
	if mutant("recovery-comes-late") && x.action.Cause == recovery.CauseCrash {
		x.action.At = x.action.At.Add(2 * time.Minute)
	}
`,
		}},
		Package: "jobs/continuous", Test: "TestRunsSurviveCrashes/map",
	},
	{
		Name: "recovery-not-reported", Promise: "R6", File: "object/host_recovery.go",
		Edits: []edit{{
			Old: `		h.report.add(r)
`,
			New: `		if !mutant("recovery-not-reported") {
			h.report.add(r)
		}
`,
		}},
		Package: "jobs/continuous", Test: "TestRecoveryIsPrompt",
	},
	{
		Name: "work-run-twice", Promise: "J8", File: "jobs/engine/work.go",
		Edits: []edit{{
			Old: `		res, err = r.do(ctx, r.given)
`,
			New: `		if mutant("work-run-twice") {
			if _, err = r.do(ctx, r.given); err != nil {
				return err
			}
		}
		res, err = r.do(ctx, r.given)
`,
		}},
		Package: "jobs/continuous", Test: "TestRunsSurviveCrashes/map",
	},
	{
		Name: "terminal-event-before-the-end", Promise: "J10", File: "jobs/engine/verbs.go",
		Edits: []edit{{
			Old: `	if err := l.tellMove(ctx, l.meta.Status, jobs.Terminated, reason); err != nil {
		return err
	}
	return l.e.Purge(ctx)`,
			New: `	if err := l.tellMove(ctx, l.meta.Status, jobs.Terminated, reason); err != nil && !mutant("terminal-event-before-the-end") {
		return err
	}
	if mutant("terminal-event-before-the-end") {
		if err := l.st.Sync(ctx); err != nil {
			return err
		}
	}
	return l.e.Purge(ctx)`,
		}},
		Package: "jobs/continuous", Test: "TestTerminateSurvivesCrashes/map",
	},
	{
		Name: "recovery-delay-begins-anew", Promise: "R7", File: "recovery/check.go",
		Edits: []edit{{
			Old: `	at := later(s.Began.Add(l.RecoveryDelay), s.Now)
`,
			New: `	at := later(s.Began.Add(l.RecoveryDelay), s.Now)
	if mutant("recovery-delay-begins-anew") {
		return s.Now.Add(l.RecoveryDelay)
	}
`,
		}},
		Package: "jobs/engine", Test: "TestLongRecoveryDelay",
	},
	{
		Name: "result-stored-in-part", Promise: "J9", File: "jobs/engine/engine.go",
		Edits: []edit{{
			Old: `		switch err := e.st.Driver().AllOrNothing(ctx, how.result.Store); {`,
			New: `		whole := e.st.Driver().AllOrNothing
		if mutant("result-stored-in-part") {
			whole = func(ctx context.Context, store func(ctx context.Context) error) error { return store(ctx) }
		}
		switch err := whole(ctx, how.result.Store); {`,
		}},
		Package: "jobs/engine", Test: "TestResultThatIsStoredInPart",
	},
	{
		Name: "full-disk-seen-only-at-the-commit", Promise: "O17", File: "jobs/engine/engine.go",
		Edits: []edit{{
			Old: `	if err := e.st.Driver().Space(); err != nil {`,
			New: `	if err := e.st.Driver().Space(); err != nil && !mutant("full-disk-seen-only-at-the-commit") {`,
		}},
		Package: "internal/prove/realtime", Test: "TestFullDiskCutsOffNoPool",
	},
	{
		Name: "cut-by-a-full-disk-is-charged", Promise: "O17", File: "jobs/engine/engine.go",
		Edits: []edit{{
			Old: `	return e.o.resetsAreFree || !x.Began`,
			New: `	return e.o.resetsAreFree || !mutant("cut-by-a-full-disk-is-charged") && !x.Began`,
		}},
		Package: "internal/prove/realtime", Test: "TestCutByAFullDiskIsFree",
	},
	{
		Name: "phase-does-not-wait-for-space", Promise: "O17", File: "jobs/workerpool/phase_store.go",
		Edits: []edit{{
			Old: `		if !errors.Is(err, object.ErrNoSpace) || `,
			New: `		if !errors.Is(err, object.ErrNoSpace) || mutant("phase-does-not-wait-for-space") || `,
		}},
		Package: "internal/prove/realtime", Test: "TestFullDiskCutsOffNoPool",
	},
	{
		Name: "full-disk-fails-a-run", Promise: "O17", File: "jobs/engine/job.go",
		Edits: []edit{{
			Old: `		if errors.Is(err, e) {
			return true`,
			New: `		if errors.Is(err, e) && (e != object.ErrNoSpace || !mutant("full-disk-fails-a-run")) {
			return true`,
		}},
		Package: "jobs/engine", Test: "TestErrorsOfTheRuntime",
	},
}
