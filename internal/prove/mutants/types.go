package main

var typeMutants = []mutant{
	{
		Number: 4, Name: "buffer-cleared-in-a-second-commit", Promise: "D3", File: "jobs/debounce/flush.go",
		Edits: []edit{{
			Old: `	if err := deleteRows(ctx, in.st.Storage(), g); err != nil {
		return err
	}
	event :=`,
			New: `	if mutant("buffer-cleared-in-a-second-commit") {
		if err := in.st.Sync(ctx); err != nil {
			return err
		}
	}
	if err := deleteRows(ctx, in.st.Storage(), g); err != nil {
		return err
	}
	event :=`,
		}},
		Package: "jobs/debounce", Test: "TestCrashEveryReason/quiet/map",
	},
	{
		Name: "flush-called-twice", Promise: "D2", File: "jobs/debounce/flush.go",
		Edits: []edit{{
			Old: `		return engine.Result{}, in.config.Flush(ctx, &Flush[E, S]{
			ID: in.st.Name(), Generation: g.number, Key: key,
			Reason: g.reason, Due: g.due, First: g.first, Last: g.last, Count: g.count,
			Events: events, State: state,
			Attempt: x.Run.Attempt, Recovering: x.Run.Recovering, LastError: x.Run.LastError,
			job: in.definition, st: in.st,
		})
`,
			New: `		f := &Flush[E, S]{
			ID: in.st.Name(), Generation: g.number, Key: key,
			Reason: g.reason, Due: g.due, First: g.first, Last: g.last, Count: g.count,
			Events: events, State: state,
			Attempt: x.Run.Attempt, Recovering: x.Run.Recovering, LastError: x.Run.LastError,
			job: in.definition, st: in.st,
		}
		if mutant("flush-called-twice") {
			if err := in.config.Flush(ctx, f); err != nil {
				return engine.Result{}, err
			}
		}
		return engine.Result{}, in.config.Flush(ctx, f)
`,
		}},
		Package: "jobs/debounce", Test: "TestCrashEveryReason/quiet/map",
	},
	{
		Name: "newest-row-not-read", Promise: "D1", File: "jobs/debounce/rows.go",
		Edits: []edit{{
			Old: `	case newest.count > g.count:`,
			New: `	case newest.count > g.count && !mutant("newest-row-not-read"):`,
		}},
		Package: "jobs/debounce", Test: "TestCrashEveryReason/quiet/map",
	},
	{
		Name: "generation-not-moved", Promise: "D3", File: "jobs/debounce/buffer.go",
		Edits: []edit{{
			Old: `	b.open = generation{number: b.closed.number + 1, versions: next}
`,
			New: `	b.open = generation{number: b.closed.number + 1, versions: next}
	if mutant("generation-not-moved") {
		b.open.number = b.closed.number
	}
`,
		}},
		Package: "jobs/debounce", Test: "TestCrashEveryReason/quiet/map",
	},
	{
		Name: "late-event-joins-the-due-generation", Promise: "D4", File: "jobs/debounce/add.go",
		Edits: []edit{{
			Old: `!at.IsZero() && !at.After(in.job.Now()) {`,
			New: `!at.IsZero() && !at.After(in.job.Now()) && !mutant("late-event-joins-the-due-generation") {`,
		}},
		Package: "jobs/debounce", Test: "TestCrashDueWhileDown/map",
	},
	{
		Name: "key-lets-all-in", Promise: "W3", File: "jobs/workerpool/queue.go",
		Edits: []edit{{
			Old: `entered: p.heads[r.key] < p.set.perKey}`,
			New: `entered: mutant("key-lets-all-in") || p.heads[r.key] < p.set.perKey}`,
		}},
		Package: "jobs/workerpool", Test: "TestCrashKeepsTheOrderOfAKey/map",
	},
	{
		Name: "retry-goes-behind-its-key", Promise: "W3", File: "jobs/workerpool/execution.go",
		Edits: []edit{{
			Old: `	r.notBefore = alarm.Nanos(run.RetryAt)
`,
			New: `	r.notBefore = alarm.Nanos(run.RetryAt)
	if mutant("retry-goes-behind-its-key") {
		if err := p.st.Storage().Remove(ctx, chainKey(r.key, r.order)); err != nil {
			return err
		}
		if err := p.enterFirst(ctx, r.key); err != nil {
			return err
		}
		p.order++
		r.order = p.order
		if _, err := p.chain(ctx, r); err != nil {
			return err
		}
	}
`,
		}},
		Package: "jobs/workerpool", Test: "TestCrashKeepsTheOrderOfAKey/map",
	},
}
