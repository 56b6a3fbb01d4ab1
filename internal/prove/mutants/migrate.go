package main

// migrateMutants read stored values as of a version that is not theirs, or lose them.
var migrateMutants = []mutant{
	{
		Name: "failed-run-gives-the-state-its-version", Promise: "J15", File: "jobs/continuous/instance.go",
		Edits: []edit{{
			Old: `	if out.Kind == engine.Done || out.Kind == engine.Quit {
`,
			New: `	if out.Kind == engine.Done || out.Kind == engine.Quit || mutant("failed-run-gives-the-state-its-version") {
`,
		}},
		Package: "jobs/continuous", Test: "TestMigrationSurvivesCrashes/map",
	},
	{
		Name: "new-state-keeps-the-old-version", Promise: "J15", File: "jobs/continuous/instance.go",
		Edits: []edit{{
			Old: `	c := cursor{to.Anchor, to.Last, stateVersion}
`,
			New: `	c := cursor{to.Anchor, to.Last, stateVersion}
	if mutant("new-state-keeps-the-old-version") && in.cursor.StateVersion != "" {
		c.StateVersion = in.cursor.StateVersion
	}
`,
		}},
		Package: "jobs/continuous", Test: "TestMigrationSurvivesCrashes/map",
	},
	{
		Name: "migrated-a-second-time", Promise: "J15", File: "jobs/engine/reader.go",
		Edits: []edit{{
			Old: `	migrates := r.Migrate != nil && from != r.Version
`,
			New: `	migrates := r.Migrate != nil && (from != r.Version || mutant("migrated-a-second-time"))
`,
		}},
		Package: "jobs/continuous", Test: "TestMigrationSurvivesCrashes/map",
	},
	{
		Name: "migrate-gets-the-stored-bytes", Promise: "J15", File: "jobs/engine/reader.go",
		Edits: []edit{{
			Old: `	v, err = r.Migrate(from, bytes.Clone(raw))
`,
			New: `	given := bytes.Clone(raw)
	if mutant("migrate-gets-the-stored-bytes") {
		given = raw
	}
	v, err = r.Migrate(from, given)
`,
		}},
		Package: "jobs/workerpool", Test: "TestCrashMigration/map",
	},
	{
		Name: "purge-takes-unreadable-state", Promise: "J15", File: "jobs/engine/job.go",
		Edits: []edit{{
			Old: `	return out.Kind == GaveUp && errors.As(out.Err, &bad) && bad.ID == l.st.ID()
`,
			New: `	return out.Kind == GaveUp && errors.As(out.Err, &bad) && bad.ID == l.st.ID() && !mutant("purge-takes-unreadable-state")
`,
		}},
		Package: "jobs/continuous", Test: "TestUnreadableStateIsNotPurged",
	},
	{
		Name: "drop-takes-unreadable-events", Promise: "J15", File: "jobs/debounce/instance.go",
		Edits: []edit{{
			Old: `Drops: c.Exhausted == Drop,`,
			New: `Drops: c.Exhausted == Drop && !mutant("drop-takes-unreadable-events"),`,
		}},
		Package: "jobs/debounce", Test: "TestEventsThatCannotBeRead",
	},
	{
		Name: "event-version-not-stored", Promise: "J15", File: "jobs/debounce/add.go",
		Edits: []edit{{
			Old: `		if known && b.open.versions == in.buffer.open.versions {
`,
			New: `		if known && (b.open.versions == in.buffer.open.versions || mutant("event-version-not-stored")) {
`,
		}},
		Package: "jobs/debounce", Test: "TestCrashMigration/folded=false/map",
	},
	{
		Name: "versions-lost-with-the-newest-row", Promise: "J15", File: "jobs/debounce/rows.go",
		Edits: []edit{{
			Old: `		newest.versions = g.versions
`,
			New: `		newest.versions = g.versions
		if mutant("versions-lost-with-the-newest-row") {
			newest.versions = ""
		}
`,
		}},
		Package: "jobs/debounce", Test: "TestCrashMigration/folded=false/map",
	},
	{
		Name: "folded-state-keeps-the-old-version", Promise: "J15", File: "jobs/debounce/add.go",
		Edits: []edit{{
			Old: `	g.folded, g.versions = true, in.fresh
`,
			New: `	if !mutant("folded-state-keeps-the-old-version") {
		g.versions = in.fresh
	}
	g.folded = true
`,
		}},
		Package: "jobs/debounce", Test: "TestCrashMigration/folded=true/map",
	},
	{
		Name: "input-version-from-the-next-task", Promise: "J15", File: "jobs/workerpool/enqueue_turn.go",
		Edits: []edit{{
			Old: `	oldest, err := p.oldest(ctx, num)
`,
			New: `	oldest, err := p.oldest(ctx, num)
	if mutant("input-version-from-the-next-task") {
		num++
	}
`,
		}},
		Package: "jobs/workerpool", Test: "TestCrashMigration/map",
	},
	{
		Name: "version-forgotten-before-its-letters", Promise: "J15", File: "jobs/workerpool/enqueue_turn.go",
		Edits: []edit{{
			Old: `	for _, prefix := range [...]string{taskPrefix, deadPrefix} {
`,
			New: `	for _, prefix := range [...]string{taskPrefix, deadPrefix} {
		if prefix == deadPrefix && mutant("version-forgotten-before-its-letters") {
			break
		}
`,
		}},
		Package: "jobs/workerpool", Test: "TestCrashMigration/map",
	},
}
