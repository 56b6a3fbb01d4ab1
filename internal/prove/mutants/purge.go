package main

// purgeMutants change how idle debounce objects end.
var purgeMutants = []mutant{
	{
		Name: "idle-object-not-armed", Promise: "D6", File: "jobs/engine/wake.go",
		Edits: []edit{{
			Old: `	if due.IsZero() {
		due, lazy =`,
			New: `	if due.IsZero() && !mutant("idle-object-not-armed") {
		due, lazy =`,
		}},
		Package: "jobs/debounce", Test: "TestIdleObjectGoes",
	},
	{
		Name: "idle-object-goes-early", Promise: "D6", File: "jobs/debounce/idle.go",
		Edits: []edit{{
			Old: `	return updated.Add(in.config.Dedup)
`,
			New: `	if mutant("idle-object-goes-early") {
		return updated.Add(in.config.Dedup - 1)
	}
	return updated.Add(in.config.Dedup)
`,
		}},
		Package: "jobs/debounce", Test: "TestIdleObjectGoes",
	},
	{
		Name: "end-of-an-idle-object-in-two-commits", Promise: "D6", File: "jobs/engine/job.go",
		Edits: []edit{{
			Old: `	case purges:
		return l.terminate(ctx, jobs.IdleReason)
`,
			New: `	case purges && mutant("end-of-an-idle-object-in-two-commits"):
		if err := l.tellMove(ctx, jobs.Running, jobs.Terminated, jobs.IdleReason); err != nil {
			return err
		}
		if err := l.st.Sync(ctx); err != nil {
			return err
		}
		return l.e.Purge(ctx)
	case purges:
		return l.terminate(ctx, jobs.IdleReason)
`,
		}},
		Package: "jobs/debounce", Test: "TestCrashIdleObjectGoes/map",
	},
	{
		Name: "idle-object-forgets-a-promised-id", Promise: "D6", File: "jobs/debounce/idle.go",
		Edits: []edit{{
			Old: `	if err != nil || !end.After(in.job.Now()) {
`,
			New: `	if err != nil || !end.After(in.job.Now()) || mutant("idle-object-forgets-a-promised-id") {
`,
		}},
		Package: "jobs/debounce", Test: "TestShorterDedup",
	},
	{
		Name: "paused-object-goes", Promise: "D6", File: "jobs/engine/job.go",
		Edits: []edit{{
			Old: `	case !ok, l.meta.Status != jobs.Running, !l.NextRun().IsZero():`,
			New: `	case mutant("paused-object-goes") && l.meta.Status == jobs.Paused:
	case !ok, l.meta.Status != jobs.Running, !l.NextRun().IsZero():`,
		}},
		Package: "jobs/debounce", Test: "TestRestingObjectStays/paused",
	},
	{
		Name: "owed-call-does-not-keep-the-object", Promise: "D6", File: "jobs/engine/job.go",
		Edits: []edit{{
			Old: `	case len(l.hooks) > 0:
		return time`,
			New: `	case len(l.hooks) > 0 && !mutant("owed-call-does-not-keep-the-object"):
		return time`,
		}},
		Package: "jobs/debounce", Test: "TestOwedHookKeepsTheObject",
	},
	{
		Name: "cleared-object-goes-at-once", Promise: "D6", File: "jobs/debounce/control.go",
		Edits: []edit{{
			Old: `		b.idle = in.job.Now()
`,
			New: `		if !mutant("cleared-object-goes-at-once") {
			b.idle = in.job.Now()
		}
`,
		}},
		Package: "jobs/debounce", Test: "TestChangesMoveTheEnd",
	},
	{
		Name: "older-idle-object-not-armed", Promise: "D6", File: "jobs/engine/wake.go",
		Edits: []edit{{
			Old: `	case !armed:
		return e.st.Driver().SetAlarm(ctx, end)
`,
			New: `	case !armed && mutant("older-idle-object-not-armed"):
		return nil
	case !armed:
		return e.st.Driver().SetAlarm(ctx, end)
`,
		}},
		Package: "jobs/debounce", Test: "TestIdleObjectOfAnOlderVersion/called",
	},
	{
		Name: "lives-share-a-key", Promise: "D3", File: "jobs/engine/verbs.go",
		Edits: []edit{{
			Old: `		CreationID: fmt.Sprintf("%x-%08x", l.st.Driver().NextSequence(), uint32(l.st.Driver().Seams().Rand.Uint64())),
	}
`,
			New: `		CreationID: fmt.Sprintf("%x-%08x", l.st.Driver().NextSequence(), uint32(l.st.Driver().Seams().Rand.Uint64())),
	}
	if mutant("lives-share-a-key") {
		m.CreationID = fmt.Sprintf("%x-%08x", l.st.Driver().Epoch(), uint32(l.st.Driver().Seams().Rand.Uint64()))
	}
`,
		}},
		Package: "jobs/debounce", Test: "TestKeysOfLivesDiffer",
	},
	{
		Name: "ids-beyond-those-read-forgotten", Promise: "D6", File: "storage/marks.go",
		Edits: []edit{{
			Old: `	return s.lastRemoval(b, from, to)
`,
			New: `	if mutant("ids-beyond-those-read-forgotten") {
		return last, it.Close()
	}
	return s.lastRemoval(b, from, to)
`,
		}},
		Package: "jobs/debounce", Test: "TestIdleObjectWithManyIDs",
	},
}
