package main

// whyMutants are bugs of what a run tells: its status, its events and the histories that are kept; and of reasons.
var whyMutants = []mutant{
	{
		Name: "run-due-now-is-not-queued", Promise: "F15", File: "jobs/workflow/why.go",
		Edits: []edit{{
			Old: `!s.Due.IsZero() && !s.Due.After(now):`,
			New: `!s.Due.IsZero() && (s.Due.Before(now) || s.Due.Equal(now) && !mutant("run-due-now-is-not-queued")):`,
		}},
		Package: "jobs/workflow", Test: "TestWhy",
	},
	{
		Name: "ended-branches-not-counted", Promise: "F15", File: "jobs/workflow/blocked.go",
		Edits: []edit{{
			Old: `	sc.of.done++
`,
			New: `	if !mutant("ended-branches-not-counted") {
		sc.of.done++
	}
`,
		}},
		Package: "jobs/workflow", Test: "TestHowFarAnEachIs",
	},
	{
		Name: "queued-told-at-each-turn", Promise: "F15", File: "jobs/workflow/verbs.go",
		Edits: []edit{{
			Old: `	if r.Queued {
`,
			New: `	if r.Queued && !mutant("queued-told-at-each-turn") {
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashQueuedIsTold/map",
	},
	{
		Name: "woken-run-is-queued-since-its-suspension", Promise: "F15", File: "jobs/workflow/instance.go",
		Edits: []edit{{
			Old: `		due = now
	}
`,
			New: `		due = now
		if mutant("woken-run-is-queued-since-its-suspension") {
			due = in.past(r.Since)
		}
	}
`,
		}},
		Package: "jobs/workflow", Test: "TestQueuedSince/cancel",
	},
	{
		Name: "woken-run-forgets-since-when-it-is-queued", Promise: "F15", File: "jobs/workflow/verbs.go",
		Edits: []edit{{
			Old: `	r.Queued, r.QueuedAt = true, due
`,
			New: `	r.Queued, r.QueuedAt = true, due
	if mutant("woken-run-forgets-since-when-it-is-queued") {
		r.QueuedAt = time.Time{}
	}
`,
		}},
		Package: "jobs/workflow", Test: "TestQueuedSince/cancel",
	},
	{
		Name: "next-wait-is-queued-since-the-one-before", Promise: "F15", File: "jobs/workflow/instance.go",
		Edits: []edit{{
			Old: `		r.Queued, r.QueuedAt = false, time.Time{}
`,
			New: `		if !mutant("next-wait-is-queued-since-the-one-before") {
			r.QueuedAt = time.Time{}
		}
		r.Queued = mutant("next-wait-is-queued-since-the-one-before")
`,
		}},
		Package: "jobs/workflow", Test: "TestQueuedSinceTheSecondTime",
	},
	{
		Name: "queued-told-once-for-ever", Promise: "F15", File: "jobs/workflow/instance.go",
		Edits: []edit{{
			Old: `	if r := in.row; r.Queued {
`,
			New: `	if r := in.row; r.Queued && !mutant("queued-told-once-for-ever") {
`,
		}},
		Package: "jobs/workflow", Test: "TestQueuedAgain",
	},
	{
		Name: "blocked-told-at-each-look", Promise: "F15", File: "jobs/workflow/blocked.go",
		Edits: []edit{{
			Old: `		case !sc.told && now.Sub`,
			New: `		case (!sc.told || mutant("blocked-told-at-each-look")) && now.Sub`,
		}},
		Package: "jobs/workflow", Test: "TestBlocked",
	},
	{
		Name: "long-step-is-blocked", Promise: "F15", File: "jobs/workflow/blocked.go",
		Edits: []edit{{
			Old: `		case sc.busy:
`,
			New: `		case sc.busy && !mutant("long-step-is-blocked"):
`,
		}},
		Package: "jobs/workflow", Test: "TestBlocked",
	},
	{
		Name: "blocked-though-it-goes-on", Promise: "F15", File: "jobs/workflow/blocked.go",
		Edits: []edit{{
			Old: `sc.since.IsZero() || sc.seen != sc.ops:`,
			New: `sc.since.IsZero() || sc.seen != sc.ops && !mutant("blocked-though-it-goes-on"):`,
		}},
		Package: "jobs/workflow", Test: "TestBlocked",
	},
	{
		Name: "blocked-branch-unseen", Promise: "F15", File: "jobs/workflow/blocked.go",
		Edits: []edit{{
			Old: `		look(sc)
`,
			New: `		if !mutant("blocked-branch-unseen") {
			look(sc)
		}
`,
		}},
		Package: "jobs/workflow", Test: "TestBlocked",
	},
	{
		Name: "kept-history-without-its-last-entry", Promise: "F16", File: "jobs/workflow/instance.go",
		Edits: []edit{{
			Old: `		if !s.in.row.Keep {`,
			New: `		if !s.in.row.Keep || mutant("kept-history-without-its-last-entry") {`,
		}},
		Package: "jobs/workflow", Test: "TestCrashKeepGenerations/map",
	},
	{
		Name: "one-generation-too-many-goes", Promise: "F16", File: "jobs/workflow/generations.go",
		Edits: []edit{{
			Old: `next.Kept > most && n < maxForgotten`,
			New: `(next.Kept > most || next.Kept == most && mutant("one-generation-too-many-goes")) && n < maxForgotten`,
		}},
		Package: "jobs/workflow", Test: "TestCrashKeepGenerations/map",
	},
	{
		Name: "all-old-generations-go-in-one-batch", Promise: "F16", File: "jobs/workflow/generations.go",
		Edits: []edit{{
			Old: `		next.Kept--
`,
			New: `		next.Kept--
		if mutant("all-old-generations-go-in-one-batch") {
			n--
		}
`,
		}},
		Package: "jobs/workflow", Test: "TestKeepGenerationsChanges",
	},
	{
		Name: "rows-of-old-generations-stay", Promise: "F16", File: "jobs/workflow/generations.go",
		Edits: []edit{{
			Old: `	for _, prefix := range gone {
`,
			New: `	for _, prefix := range gone {
		if prefix != historyPrefix && mutant("rows-of-old-generations-stay") {
			continue
		}
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashKeepGenerations/map",
	},
	{
		Name: "retry-leaves-a-kept-entry", Promise: "F16", File: "jobs/workflow/verbs.go",
		Edits: []edit{{
			Old: `			keys[i] = seqKey(in.row.prefix(), e.Seq)
`,
			New: `			keys[i] = seqKey(in.row.prefix(), e.Seq)
			if mutant("retry-leaves-a-kept-entry") {
				keys[i] = seqKey(historyPrefix, e.Seq)
			}
`,
		}},
		Package: "jobs/workflow", Test: "TestRetryInAKeptGeneration",
	},
	{
		Name: "reason-forgets-the-hold", Promise: "Y1", File: "admin/why/look.go",
		Edits: []edit{{
			Old: `	if f.live != nil {
		s.Hold`,
			New: `	if f.live != nil && !mutant("reason-forgets-the-hold") {
		s.Hold`,
		}},
		Package: "admin/why", Test: "TestCausesOfTakeovers",
	},
	{
		Name: "reason-blames-a-crash-for-a-takeover", Promise: "Y1", File: "admin/why/look.go",
		Edits: []edit{{
			Old: `l.store.OwnerLost() &&`,
			New: `!mutant("reason-blames-a-crash-for-a-takeover") && l.store.OwnerLost() &&`,
		}},
		Package: "admin/why", Test: "TestCausesOfTakeovers",
	},
}
