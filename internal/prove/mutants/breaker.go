package main

// breakerMutants are bugs of circuit breakers.
var breakerMutants = []mutant{
	{
		Name: "busy-breaker-costs-an-attempt", Promise: "K3", File: "jobs/breaker/breaker.go",
		Edits: []edit{{
			Old: `	if errors.Is(err, object.ErrOverloaded) {
`,
			New: `	if errors.Is(err, object.ErrOverloaded) && !mutant("busy-breaker-costs-an-attempt") {
`,
		}},
		Package: "jobs/breaker", Test: "TestTaskBehindABusyBreaker",
	},
	{
		Name: "breaker-opens-one-late", Promise: "K1", File: "jobs/breaker/circuit.go",
		Edits: []edit{{
			Old: `	if len(kept) >= b.c.Failures {
`,
			New: `	if len(kept) >= b.c.Failures && !(mutant("breaker-opens-one-late") && len(kept) == b.c.Failures) {
`,
		}},
		Package: "jobs/breaker", Test: "TestOpensAtFailures",
	},
	{
		Name: "failure-counts-at-the-end-of-the-window", Promise: "K1", File: "jobs/breaker/circuit.go",
		Edits: []edit{{
			Old: `now.Sub(b.failures[from]) >= b.c.Window {`,
			New: `(now.Sub(b.failures[from]) > b.c.Window || now.Sub(b.failures[from]) == b.c.Window && !mutant("failure-counts-at-the-end-of-the-window")) {`,
		}},
		Package: "jobs/breaker", Test: "TestFailuresCountForTheWindow",
	},
	{
		Name: "breaker-lets-one-probe-too-many-through", Promise: "K1", File: "jobs/breaker/circuit.go",
		Edits: []edit{{
			Old: `b.succeeded+len(b.probes) >= b.c.Probes {`,
			New: `(b.succeeded+len(b.probes) >= b.c.Probes && !(mutant("breaker-lets-one-probe-too-many-through") && b.succeeded+len(b.probes) == b.c.Probes)) {`,
		}},
		Package: "jobs/breaker", Test: "TestProbes",
	},
	{
		Name: "breaker-closes-with-the-first-probe", Promise: "K1", File: "jobs/breaker/circuit.go",
		Edits: []edit{{
			Old: `	case !o.Void && b.succeeded+1 >= b.c.Probes:
`,
			New: `	case !o.Void && (b.succeeded+1 >= b.c.Probes || mutant("breaker-closes-with-the-first-probe")):
`,
		}},
		Package: "jobs/breaker", Test: "TestProbes",
	},
	{
		Name: "probe-that-hangs-is-waited-for", Promise: "K1", File: "jobs/breaker/circuit.go",
		Edits: []edit{{
			Old: `	if b.stored.State == HalfOpen && len(b.probes) > 0 &&`,
			New: `	if b.stored.State == HalfOpen && len(b.probes) > 0 && !mutant("probe-that-hangs-is-waited-for") &&`,
		}},
		Package: "jobs/breaker", Test: "TestProbeThatHangs",
	},
	{
		Name: "late-outcome-counts", Promise: "K2", File: "jobs/breaker/circuit.go",
		Edits: []edit{{
			Old: `	if o.Ticket.Term != b.term {
`,
			New: `	if o.Ticket.Term != b.term && !mutant("late-outcome-counts") {
`,
		}},
		Package: "jobs/breaker", Test: "TestLateOutcomes",
	},
	{
		Name: "open-breaker-is-not-stored", Promise: "K2", File: "jobs/breaker/circuit.go",
		Edits: []edit{{
			Old: `	if s.State == Closed {
		if err := rows.Remove`,
			New: `	if s.State == Closed || s.State == Open && mutant("open-breaker-is-not-stored") {
		if err := rows.Remove`,
		}},
		Package: "jobs/breaker", Test: "TestCrashOpen",
	},
	{
		Name: "open-breaker-has-no-alarm", Promise: "K1", File: "jobs/breaker/circuit.go",
		Edits: []edit{{
			Old: `	if err := b.st.SetAlarm(ctx, s.Until); err != nil {
		return err
	}
	return b.change(ctx, s)`,
			New: `	if !mutant("open-breaker-has-no-alarm") {
		if err := b.st.SetAlarm(ctx, s.Until); err != nil {
			return err
		}
	}
	return b.change(ctx, s)`,
		}},
		Package: "jobs/breaker", Test: "TestHalfOpenWithoutACall",
	},
	{
		Name: "open-breaker-fails-the-run", Promise: "K3", File: "jobs/breaker/breaker.go",
		Edits: []edit{{
			Old: `	if p.Refused {
`,
			New: `	if p.Refused && mutant("open-breaker-fails-the-run") {
		return ErrOpen
	}
	if p.Refused {
`,
		}},
		Package: "jobs/breaker", Test: "TestCrashTasksBehindIt",
	},
	{
		Name: "message-behind-a-breaker-counts-attempts", Promise: "K3", File: "jobs/breaker/breaker.go",
		Edits: []edit{{
			Old: `func (e *openError) Retryable() bool { return true }`,
			New: `func (e *openError) Retryable() bool { return !mutant("message-behind-a-breaker-counts-attempts") }`,
		}},
		Package: "jobs/breaker", Test: "TestMessageBehindIt",
	},
	{
		Name: "cancelled-probe-closes-the-breaker", Promise: "K1", File: "jobs/breaker/breaker.go",
		Edits: []edit{{
			Old: `o = outcome{Ticket: p.Ticket, Void: gaveUp(ctx, err)}`,
			New: `o = outcome{Ticket: p.Ticket, Void: gaveUp(ctx, err) && !mutant("cancelled-probe-closes-the-breaker")}`,
		}},
		Package: "jobs/breaker", Test: "TestCallsThatWereGivenUp",
	},
}
