package main

// explainMutants are bugs in the answers of Explain and Classes, and in detached calls.
var explainMutants = []mutant{
	{
		Name: "explain-tells-a-turn-before-it-begins", Promise: "O18", File: "object/host_explain.go",
		Edits: []edit{{Old: `	if a.begun {
`, New: `	if a.begun || mutant("explain-tells-a-turn-before-it-begins") && a.running {
`}},
		Package: "object", Test: "TestExplainNoTurnBeforeItBegins",
	},
	{
		Name: "explain-tells-the-caller-of-another-activation", Promise: "O18", File: "object/call_waits.go",
		Edits: []edit{{Old: `on.request.draft.act == a }
`, New: `(on.request.draft.act == a || on.id == a.object.ID && mutant("explain-tells-the-caller-of-another-activation")) }
`}},
		Package: "object", Test: "TestExplainTheCallerOfAnotherActivation",
	},
	{
		Name: "explain-counts-callers-that-have-left", Promise: "O18", File: "object/host_explain.go",
		Edits: []edit{{Old: `		case r.progress.Load() == abandoned:
`, New: `		case r.progress.Load() == abandoned && !mutant("explain-counts-callers-that-have-left"):
`}},
		Package: "object", Test: "TestExplainCallersThatHaveLeft",
	},
	{
		Name: "explain-keeps-a-lent-turn", Promise: "O18", File: "object/turn_sections.go",
		Edits: []edit{{Old: `	defer a.host.lent.remove(a, t)
`, New: `	if !mutant("explain-keeps-a-lent-turn") {
		defer a.host.lent.remove(a, t)
	}
`}},
		Package: "object", Test: "TestExplainLentTurns",
	},
	{
		Name: "explain-forgets-the-end-of-a-sync", Promise: "O18", File: "storage/durable.go",
		Edits: []edit{{Old: `	p.syncing.Store(0)
`, New: `	if !mutant("explain-forgets-the-end-of-a-sync") {
		p.syncing.Store(0)
	}
`}},
		Package: "object", Test: "TestExplainASlowDisk",
	},
	{
		Name: "place-counts-without-end", Promise: "O18", File: "alarm/place.go",
		Edits:   []edit{{Old: `p.Before < MaxBefore`, New: `(p.Before < MaxBefore || mutant("place-counts-without-end"))`}},
		Package: "alarm", Test: "TestPlaceIsBounded",
	},
	{
		Name: "place-believes-the-read-under-way", Promise: "O18", File: "alarm/place.go",
		Edits: []edit{{Old: `	if s.reading.shard == sh {
`, New: `	if s.reading.shard == sh && !mutant("place-believes-the-read-under-way") {
`}},
		Package: "alarm", Test: "TestPlacesOnDisk",
	},
	{
		Name: "internal-method-by-name", Promise: "O19", File: "object/call.go",
		Edits:   []edit{{Old: `c != nil && c.options.Internal`, New: `c != nil && c.options.Internal && !mutant("internal-method-by-name")`}},
		Package: "object", Test: "TestInternalMethods",
	},
	{
		Name: "methods-of-jobs-are-open", Promise: "O19", File: "jobs/engine/options.go",
		Edits: []edit{{Old: `	o.Internal = true
`, New: `	o.Internal = !mutant("methods-of-jobs-are-open")
`}},
		Package: "jobs", Test: "TestMethodsOfJobsAreInternal",
	},
	{
		Name: "detached-runs-on-the-caller", Promise: "O20", File: "object/activation.go",
		Edits:   []edit{{Old: `!r.detached ||`, New: `!r.detached || mutant("detached-runs-on-the-caller") ||`}},
		Package: "object", Test: "TestDetachedCallerLeaves",
	},
	{
		Name: "detached-handler-ends-with-its-caller", Promise: "O20", File: "object/activation.go",
		Edits: []edit{{Old: `	if r.detached {
`, New: `	if r.detached && !mutant("detached-handler-ends-with-its-caller") {
`}},
		Package: "object", Test: "TestDetachedCallerLeaves",
	},
	{
		Name: "inline-is-handed-over", Promise: "O29", File: "object/activation.go",
		Edits:   []edit{{Old: `r.leave != nil);`, New: `r.leave != nil && !mutant("inline-is-handed-over"));`}},
		Package: "object", Test: "TestInlineLate",
	},
	{
		Name: "inline-never-leaves", Promise: "O29", File: "object/activation.go",
		Edits: []edit{{Old: `		leave(unknown(`, New: `		if mutant("inline-never-leaves") {
			leave = func(error) {}
		}
		leave(unknown(`}},
		Package: "object", Test: "TestInlineLate",
	},
	{
		Name: "inline-leaves-at-the-begin", Promise: "O29", File: "object/activation.go",
		Edits: []edit{{Old: `	stop := a.leaveAtDeadline(ctx, r)
`, New: `	stop := a.leaveAtDeadline(ctx, r)
	if mutant("inline-leaves-at-the-begin") {
		r.leave(ErrUnknown)
	}
`}},
		Package: "object", Test: "TestInlineLate",
	},
	{
		Name: "inline-goexit-leaves-without-a-word", Promise: "O29", File: "object/activation.go",
		Edits: []edit{{Old: `			r.leave(a.host.touched(`, New: `			if mutant("inline-goexit-leaves-without-a-word") {
				return nil
			}
			r.leave(a.host.touched(`}},
		Package: "object", Test: "TestInlineGoexit",
	},
	{
		Name: "inline-goexit-leaves-twice", Promise: "O29", File: "object/activation.go",
		Edits:   []edit{{Old: `case !left:`, New: `case !left || mutant("inline-goexit-leaves-twice"):`}},
		Package: "object", Test: "TestInlineGoexit",
	},
	{
		Name: "inline-call-returns-before-leave", Promise: "O29", File: "object/activation.go",
		Edits:   []edit{{Old: `		if left = !timer.Stop(); left {`, New: `		if left = !timer.Stop(); left && !mutant("inline-call-returns-before-leave") {`}},
		Package: "object", Test: "TestInlineLate",
	},
	{
		Name: "inline-holds-the-object-for-leave", Promise: "O29", File: "object/activation.go",
		Edits: []edit{{Old: `	if a.serve(r) {
		a.yield()
	}
	return r.err
`, New: `	if a.serve(r) && !(r.leave != nil && mutant("inline-holds-the-object-for-leave")) {
		a.yield()
	}
	return r.err
`}, {Old: `		h.doneChans.Put(ended)
`, New: `		h.doneChans.Put(ended)
		if mutant("inline-holds-the-object-for-leave") {
			a.yield()
		}
`}},
		Package: "object", Test: "TestInlineLate",
	},
	{
		Name: "detached-in-a-turn", Promise: "O20", File: "object/call.go",
		Edits:   []edit{{Old: `r.detached = r.detached && t == nil;`, New: `r.detached = r.detached && (t == nil || mutant("detached-in-a-turn"));`}},
		Package: "object", Test: "TestDetachedInATurn",
	},
}
