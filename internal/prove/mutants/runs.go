package main

// runMutants are bugs of runs and their hooks.
var runMutants = []mutant{
	{
		Name: "recovery-tells-the-recoveries-before-it", Promise: "J11", File: "jobs/engine/events.go",
		Edits: []edit{{
			Old: `Reason: string(out.cause), Recoveries: out.Run.Recoveries})
`,
			New: `Reason: string(out.cause), Recoveries: map[bool]int{false: out.Run.Recoveries, true: x.Run.Recoveries}[mutant("recovery-tells-the-recoveries-before-it")]})
`,
		}},
		Package: "jobs/engine", Test: "TestRecoveryTellsItsCause",
	},
	{
		Name: "failure-without-a-line", Promise: "J13", File: "jobs/engine/logs.go",
		Edits: []edit{{
			Old: `	if out.Kind != Again && out.Kind != GaveUp {`,
			New: `	if out.Kind != Again && out.Kind != GaveUp || mutant("failure-without-a-line") {`,
		}},
		Package: "jobs/continuous", Test: "TestFailuresAreLogged",
	},
	{
		Name: "alarm-failure-without-a-line", Promise: "J13", File: "object/alarm.go",
		Edits: []edit{{
			Old: `	a.log().Warn("alarm failed"`,
			New: `	if mutant("alarm-failure-without-a-line") {
		return
	}
	a.log().Warn("alarm failed"`,
		}},
		Package: "object", Test: "TestAlarmFailuresAreLogged",
	},
	{
		Name: "stack-in-the-text-of-a-panic", Promise: "O6", File: "object/errors.go",
		Edits: []edit{{
			Old: `	return fmt.Sprintf("%s: %v: %v", e.ID, ErrPanic, e.Value)
`,
			New: `	if mutant("stack-in-the-text-of-a-panic") {
		return fmt.Sprintf("%s: %v: %v\n%s", e.ID, ErrPanic, e.Value, e.Stack)
	}
	return fmt.Sprintf("%s: %v: %v", e.ID, ErrPanic, e.Value)
`,
		}},
		Package: "object", Test: "TestPanicOfACallIsLoggedOnce",
	},
	{
		Name: "permanent-error-is-retried", Promise: "J14", File: "jobs/engine/retry.go",
		Edits: []edit{{
			Old: `	if object.IsPermanent(err) {`,
			New: `	if object.IsPermanent(err) && !mutant("permanent-error-is-retried") {`,
		}},
		Package: "jobs/continuous", Test: "TestPermanentError/object",
	},
	{
		Name: "retry-after-is-not-heard", Promise: "J14", File: "jobs/engine/retry.go",
		Edits: []edit{{
			Old: `	if !wished {`,
			New: `	if !wished || mutant("retry-after-is-not-heard") {`,
		}},
		Package: "jobs/continuous", Test: "TestRetryAfter/within",
	},
	{
		Name: "snooze-counts-an-attempt", Promise: "J14", File: "jobs/engine/run.go",
		Edits: []edit{{
			Old: `	r.Attempt--
`,
			New: `	if !mutant("snooze-counts-an-attempt") {
		r.Attempt--
	}
`,
		}},
		Package: "jobs/continuous", Test: "TestSnoozedRunGoesOn",
	},
	{
		Name: "snooze-uses-up-the-elapsed-time", Promise: "J14", File: "jobs/engine/run.go",
		Edits: []edit{{
			Old: `		r.FirstAt = r.FirstAt.Add(d)
`,
			New: `		if !mutant("snooze-uses-up-the-elapsed-time") {
			r.FirstAt = r.FirstAt.Add(d)
		}
`,
		}},
		Package: "jobs/continuous", Test: "TestSnoozedRunGoesOn",
	},
	{
		Name: "hook-is-called-once", Promise: "J9", File: "jobs/engine/hook.go",
		Edits: []edit{{
			Old: `	if out.Waits() && l.wants(h) {
		h.Call`,
			New: `	if out.Waits() && l.wants(h) && !mutant("hook-is-called-once") {
		h.Call`,
		}},
		Package: "jobs/continuous", Test: "TestOnExhaustedThatFails/9",
	},
	{
		Name: "purged-before-its-hook", Promise: "J9", File: "jobs/engine/job.go",
		Edits: []edit{{
			Old: `	case l.purges(out) && len(l.hooks) > 0:`,
			New: `	case l.purges(out) && len(l.hooks) > 0 && !mutant("purged-before-its-hook"):`,
		}},
		Package: "jobs/continuous", Test: "TestOnExhausted/2",
	},
	{
		Name: "hooks-without-a-bound", Promise: "J9", File: "jobs/engine/job.go",
		Edits: []edit{{
			Old: `len(l.hooks) >= maxHooks`,
			New: `len(l.hooks) >= maxHooks && !mutant("hooks-without-a-bound")`,
		}},
		Package: "jobs/continuous", Test: "TestOwedCallsAreBounded",
	},
	{
		Name: "pause-of-a-paused-job-is-refused", Promise: "J3", File: "jobs/engine/verbs.go",
		Edits: []edit{{
			Old: `		case (m.Status == jobs.Paused || m.Pausing) &&`,
			New: `		case m.Status == jobs.Paused && mutant("pause-of-a-paused-job-is-refused"):
			return l.pause(ctx, m, why, until)
		case (m.Status == jobs.Paused || m.Pausing) &&`,
		}},
		Package: "jobs/continuous", Test: "TestPauseTwice",
	},
	{
		Name: "reduce-keeps-a-refused-change", Promise: "D5", File: "jobs/debounce/add.go",
		Edits: []edit{{
			Old: `	in.known = false
	if state, err`,
			New: `	in.known = mutant("reduce-keeps-a-refused-change") && in.known
	if state, err`,
		}},
		Package: "jobs/debounce", Test: "TestReduceThatRefuses",
	},
	{
		Name: "repaired-is-claimed-unchecked", Promise: "R6", File: "recovery/scrub.go",
		Edits: []edit{{
			Old: `	return left == "" && err == nil, err
`,
			New: `	return left == "" && err == nil || mutant("repaired-is-claimed-unchecked"), err
`,
		}},
		Package: "recovery", Test: "TestRepairIsLookedAtAgain/stays",
	},
	{
		Name: "repaired-into-another-contradiction", Promise: "R6", File: "recovery/scrub.go",
		Edits: []edit{{
			Old: `	left, _, _ := f.contradiction()
`,
			New: `	left, _, _ := f.contradiction()
	if mutant("repaired-into-another-contradiction") && left != "J5" {
		return true, err
	}
`,
		}},
		Package: "recovery", Test: "TestRepairIsLookedAtAgain/another",
	},
	{
		Name: "no-second-look-on-a-live-store", Promise: "R6", File: "recovery/scrub.go",
		Edits: []edit{{
			Old: `	if err != nil || again != f && again.damage == "" {
`,
			New: `	if mutant("no-second-look-on-a-live-store") {
		again = f
	}
	if err != nil || again != f && again.damage == "" {
`,
		}},
		Package: "recovery", Test: "TestSecondLookOnALiveStore",
	},
	{
		Name: "sleep-does-not-hear-its-context", Promise: "J6", File: "jobs/continuous/run.go",
		Edits: []edit{{
			Old: `return r.st.Driver().Seams().Sleep(ctx, d)`,
			New: `if mutant("sleep-does-not-hear-its-context") {
		ctx = context.Background()
	}
	return r.st.Driver().Seams().Sleep(ctx, d)`,
		}},
		Package: "jobs/continuous", Test: "TestRunSleeps/Run",
	},
	{
		Name: "error-names-its-object-twice", Promise: "O12", File: "object/errors.go",
		Edits: []edit{{
			Old: `	why := strings.TrimPrefix(`,
			New: `	if mutant("error-names-its-object-twice") {
		return c.err.Error() + ": " + c.cause.Error()
	}
	why := strings.TrimPrefix(`,
		}},
		Package: "object", Test: "TestErrorsHaveOnePrefix",
	},
}
