package main

// runMutants are bugs of runs and their hooks.
var runMutants = []mutant{
	{
		Name: "failure-without-a-line", Promise: "J13", File: "jobs/logs.go",
		Edits: []edit{{
			Old: `	if out.Kind != Again && out.Kind != GaveUp {`,
			New: `	if out.Kind != Again && out.Kind != GaveUp || mutant("failure-without-a-line") {`,
		}},
		Package: "jobs/continuous", Test: "TestFailuresAreLogged",
	},
	{
		Name: "alarm-failure-without-a-line", Promise: "J13", File: "object/logs.go",
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
		Name: "permanent-error-is-retried", Promise: "J14", File: "jobs/retry.go",
		Edits: []edit{{
			Old: `	if object.IsPermanent(err) {`,
			New: `	if object.IsPermanent(err) && !mutant("permanent-error-is-retried") {`,
		}},
		Package: "jobs/continuous", Test: "TestPermanentError/object",
	},
	{
		Name: "retry-after-is-not-heard", Promise: "J14", File: "jobs/retry.go",
		Edits: []edit{{
			Old: `	if !wished {`,
			New: `	if !wished || mutant("retry-after-is-not-heard") {`,
		}},
		Package: "jobs/continuous", Test: "TestRetryAfter/within",
	},
	{
		Name: "snooze-counts-an-attempt", Promise: "J14", File: "jobs/advice.go",
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
		Name: "snooze-uses-up-the-elapsed-time", Promise: "J14", File: "jobs/advice.go",
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
		Name: "hook-is-called-once", Promise: "J9", File: "jobs/hook.go",
		Edits: []edit{{
			Old: `	if out.Waits() {
		h.Call`,
			New: `	if out.Waits() && !mutant("hook-is-called-once") {
		h.Call`,
		}},
		Package: "jobs/continuous", Test: "TestOnExhaustedThatFails/9",
	},
	{
		Name: "purged-before-its-hook", Promise: "J9", File: "jobs/life.go",
		Edits: []edit{{
			Old: `	case l.purges(out) && len(l.hooks) > 0:`,
			New: `	case l.purges(out) && len(l.hooks) > 0 && !mutant("purged-before-its-hook"):`,
		}},
		Package: "jobs/continuous", Test: "TestOnExhausted/2",
	},
	{
		Name: "hooks-without-a-bound", Promise: "J9", File: "jobs/life.go",
		Edits: []edit{{
			Old: `len(l.hooks) >= maxHooks`,
			New: `len(l.hooks) >= maxHooks && !mutant("hooks-without-a-bound")`,
		}},
		Package: "jobs/continuous", Test: "TestOwedCallsAreBounded",
	},
}
