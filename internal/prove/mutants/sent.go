package main

// sentMutants are bugs of verbs that are sent with an Outbox.
var sentMutants = []mutant{
	{
		Name: "refused-task-uses-up-its-attempts", Promise: "J19", File: "jobs/workerpool/pool.go",
		Edits: []edit{{
			Old: `func (busy) Retryable() bool { return true }`,
			New: `func (busy) Retryable() bool { return !mutant("refused-task-uses-up-its-attempts") }`,
		}},
		Package: "jobs", Test: "TestSentTasksWaitForThePool",
	},
	{
		Name: "refused-signal-uses-up-its-attempts", Promise: "J19", File: "jobs/workflow/errors.go",
		Edits: []edit{{
			Old: `func (busy) Retryable() bool { return true }`,
			New: `func (busy) Retryable() bool { return !mutant("refused-signal-uses-up-its-attempts") }`,
		}},
		Package: "jobs/workflow", Test: "TestSentSignalsWaitForTheRun",
	},
	{
		Name: "large-signal-is-tried-again", Promise: "J19", File: "jobs/workflow/errors.go",
		Edits: []edit{{
			Old: `func (final) Permanent() bool { return true }`,
			New: `func (final) Permanent() bool { return !mutant("large-signal-is-tried-again") }`,
		}},
		Package: "jobs/workflow", Test: "TestSentSignalTooLarge",
	},
	{
		Name: "refused-verb-is-tried-again", Promise: "J19", File: "jobs/errors.go",
		Edits: []edit{{
			Old: `func (refusal) Permanent() bool { return true }`,
			New: `func (refusal) Permanent() bool { return !mutant("refused-verb-is-tried-again") }`,
		}},
		Package: "jobs", Test: "TestRefusedVerbsAreDeadLetters",
	},
	{
		Name: "illegal-move-is-tried-again", Promise: "J19", File: "jobs/errors.go",
		Edits: []edit{{
			Old: `func (*MoveError) Permanent() bool { return true }`,
			New: `func (*MoveError) Permanent() bool { return !mutant("illegal-move-is-tried-again") }`,
		}},
		Package: "jobs", Test: "TestRefusedVerbsAreDeadLetters",
	},
	{
		Name: "sent-batch-looks-refused", Promise: "J19", File: "jobs/workerpool/pool.go",
		Edits: []edit{{
			Old: `		refs[i].Sent = true
`,
			New: `		refs[i].Sent = !mutant("sent-batch-looks-refused")
`,
		}},
		Package: "jobs", Test: "TestVerbsWithAnOutbox",
	},
	{
		Name: "cancel-is-sent-to-no-partition", Promise: "J19", File: "jobs/workerpool/control.go",
		Edits: []edit{{
			Old: `	if !id.valid() { //`,
			New: `	if !id.valid() && !mutant("cancel-is-sent-to-no-partition") { //`,
		}},
		Package: "jobs", Test: "TestCancelOfNoPartition",
	},
	{
		Name: "refusal-ends-a-run", Promise: "J14", File: "jobs/engine/retry.go",
		Edits: []edit{{
			Old: `	if r.RetryIf != nil && !errors.Is(err, ErrLost) && !r.RetryIf(err) {`,
			New: `	var final interface{ Permanent() bool }
	if mutant("refusal-ends-a-run") && errors.As(err, &final) {
		return time.Time{}, jobs.ReasonPermanent
	}
	if r.RetryIf != nil && !errors.Is(err, ErrLost) && !r.RetryIf(err) {`,
		}},
		Package: "jobs", Test: "TestRefusalsFailARunAsOtherErrorsDo",
	},
	{
		Name: "flush-now-is-sent-without-its-answer", Promise: "J19", File: "jobs/debounce/job.go",
		Edits: []edit{{
			Old: `	j.flushNow = object.Handle(class, "flushNow", (*instance[E, S]).flushNow)
`,
			New: `	j.flushNow = object.Handle(class, "flushNow", (*instance[E, S]).flushNow)
	if mutant("flush-now-is-sent-without-its-answer") {
		j.flushNow = object.Handle(class, "flushNow2", (*instance[E, S]).flushNow, object.Sent(func(none) uint64 { return 0 }))
	}
`,
		}},
		Package: "jobs", Test: "TestVerbsWithAnOutbox",
	},
}
