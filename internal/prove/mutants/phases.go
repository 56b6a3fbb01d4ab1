package main

// phaseMutants are bugs of the phases of tasks.
var phaseMutants = []mutant{
	{
		Name: "success-with-phases-untold", Promise: "H3", File: "jobs/engine/events.go",
		Edits: []edit{{
			Old: `		if e.o.Quiet && !e.o.TellSuccess || x.Hook {
`,
			New: `		if e.o.Quiet && (!e.o.TellSuccess || mutant("success-with-phases-untold")) || x.Hook {
`,
		}},
		Package: "jobs/workerpool", Test: "TestCrashPhases/map",
	},
	{
		Name: "cancelled-phase-to-come-untold", Promise: "H3", File: "jobs/workerpool/phase_turn.go",
		Edits: []edit{{
			Old: `		if f.State != Cancelled {
			continue
		}
`,
			New: `		if f.State != Cancelled || mutant("cancelled-phase-to-come-untold") && f.Name != r.Name {
			continue
		}
`,
		}},
		Package: "jobs/workerpool", Test: "TestCancelOfARunningPhase",
	},
	{
		Name: "phase-run-again", Promise: "H1", File: "jobs/workerpool/phase_turn.go",
		Edits: []edit{{
			Old: `		if _, stored = r.result(index); stored {
`,
			New: `		if _, stored = r.result(index); mutant("phase-run-again") {
			stored = false
		}
		if stored {
`,
		}},
		Package: "jobs/workerpool", Test: "TestPhaseOfAnotherName",
	},
	{
		Name: "phase-gets-the-result-of-its-neighbour", Promise: "H1", File: "jobs/workerpool/phase_turn.go",
		Edits: []edit{{
			Old: `known[d.Index] != d.Name {`,
			New: `known[d.Index] != d.Name && !mutant("phase-gets-the-result-of-its-neighbour") {`,
		}},
		Package: "jobs/workerpool", Test: "TestPhaseOfAnotherName",
	},
	{
		Name: "phases-of-the-dead-removed", Promise: "H1", File: "jobs/workerpool/execution.go",
		Edits: []edit{{
			Old: `	return p.finish(ctx, r, Dead)
`,
			New: `	if mutant("phases-of-the-dead-removed") {
		if err := p.dropPhases(ctx, r.num); err != nil {
			return err
		}
	}
	return p.finish(ctx, r, Dead)
`,
		}},
		Package: "jobs/workerpool", Test: "TestPhaseOfAnotherName",
	},
	{
		Name: "phases-forget-no-crashes", Promise: "H1", File: "jobs/workerpool/phase_turn.go",
		Edits: []edit{{
			Old: `		return p.engine.Progressed(ctx, a.token)
`,
			New: `		if mutant("phases-forget-no-crashes") {
			return nil
		}
		return p.engine.Progressed(ctx, a.token)
`,
		}},
		Package: "jobs/workerpool", Test: "TestCrashBetweenPhasesIsForgiven",
	},
	{
		Name: "phase-inside-a-phase", Promise: "H1", File: "jobs/workerpool/phase.go",
		Edits: []edit{{
			Old: `	if a.underWay {
`,
			New: `	if a.underWay && !mutant("phase-inside-a-phase") {
`,
		}},
		Package: "jobs/workerpool", Test: "TestMistakesOfPhases",
	},
	{
		Name: "progress-cut-and-not-rounded", Promise: "H2", File: "jobs/workerpool/phase_turn.go",
		Edits: []edit{{
			Old: `	return min(100, (2*(100*index+percent)+n)/(2*n))
`,
			New: `	if mutant("progress-cut-and-not-rounded") {
		return (100*index + percent) / n
	}
	return min(100, (2*(100*index+percent)+n)/(2*n))
`,
		}},
		Package: "jobs/workerpool", Test: "TestOverallProgress",
	},
	{
		Name: "progress-falls", Promise: "H2", File: "jobs/workerpool/phase_turn.go",
		Edits: []edit{{
			Old: `	r.Overall = max(r.Overall, overall(r.Index, r.Percent, n))
`,
			New: `	if mutant("progress-falls") {
		r.Overall = 0
	}
	r.Overall = max(r.Overall, overall(r.Index, r.Percent, n))
`,
		}},
		Package: "jobs/workerpool", Test: "TestProgressNeverFalls",
	},
	{
		Name: "progress-eight-times-a-second", Promise: "H2", File: "jobs/workerpool/phase.go",
		Edits: []edit{{
			Old: `	wait := progressEvery - now.Sub(a.toldAt)
`,
			New: `	wait := progressEvery - now.Sub(a.toldAt)
	if mutant("progress-eight-times-a-second") {
		wait -= progressEvery / 2
	}
`,
		}},
		Package: "jobs/workerpool", Test: "TestProgressIsStoredFourTimesASecond",
	},
	{
		Name: "last-progress-before-a-silence-lost", Promise: "H2", File: "jobs/workerpool/phase.go",
		Edits: []edit{{
			Old: `	late := number != a.timers
`,
			New: `	late := number != a.timers || mutant("last-progress-before-a-silence-lost")
`,
		}},
		Package: "jobs/workerpool", Test: "TestProgressIsStoredFourTimesASecond",
	},
	{
		Name: "last-progress-of-a-phase-lost", Promise: "H2", File: "jobs/workerpool/phase_turn.go",
		Edits: []edit{{
			Old: `	if !a.take(r) {
`,
			New: `	if !a.take(r) || mutant("last-progress-of-a-phase-lost") {
`,
		}},
		Package: "jobs/workerpool", Test: "TestProgressIsStoredFourTimesASecond",
	},
	{
		Name: "progress-waits-for-the-disk", Promise: "H2", File: "jobs/workerpool/phase_store.go",
		Edits: []edit{{
			Old: `	p := a.part
	return p.st.Do(ctx, func(ctx context.Context) error {
`,
			New: `	p := a.part
	if mutant("progress-waits-for-the-disk") {
		opts = nil
	}
	return p.st.Do(ctx, func(ctx context.Context) error {
`,
		}},
		Package: "jobs/workerpool", Test: "TestProgressIsUnconfirmed",
	},
	{
		Name: "phases-of-cancelled-tasks-pending", Promise: "H3", File: "jobs/workerpool/phase_turn.go",
		Edits: []edit{{
			Old: `	if s == Running || s == Done {
`,
			New: `	if s == Running || s == Done || s == Cancelled && mutant("phases-of-cancelled-tasks-pending") {
`,
		}},
		Package: "jobs/workerpool", Test: "TestCancelOfARunningPhase",
	},
	{
		Name: "phase-begins-after-a-cancel", Promise: "H3", File: "jobs/workerpool/phase_turn.go",
		Edits: []edit{{
			Old: `		if task.rare.Cancelling {
`,
			New: `		if task.rare.Cancelling && !mutant("phase-begins-after-a-cancel") {
`,
		}},
		Package: "jobs/workerpool", Test: "TestCancelOfARunningPhase",
	},
	{
		Name: "phase-of-a-stale-attempt-stored", Promise: "H3", File: "jobs/workerpool/phase_store.go",
		Edits: []edit{{
			Old: `			if p.executing[a.num].token != a.token {
`,
			New: `			if p.executing[a.num].token != a.token && !mutant("phase-of-a-stale-attempt-stored") {
`,
		}},
		Package: "jobs/workerpool", Test: "TestStaleAttemptStoresNoPhase",
	},
	{
		Name: "phase-rows-of-ended-tasks-stay", Promise: "H3", File: "jobs/workerpool/execution.go",
		Edits: []edit{{
			Old: `	if s != Dead {
`,
			New: `	if s != Dead && !mutant("phase-rows-of-ended-tasks-stay") {
`,
		}},
		Package: "jobs/workerpool", Test: "TestPhasesOfAnEarlierConfig",
	},
}
