package main

// journalMutants are bugs of journals, and of the rows that an instance keeps in memory.
var journalMutants = []mutant{
	{
		Name: "snapshot-without-its-sequence", Promise: "E3", File: "object/journal/read.go",
		Edits: []edit{{
			Old: `		return memory[State]{state: state, seq: seq, snapshot: seq`,
			New: `		if mutant("snapshot-without-its-sequence") {
			seq--
		}
		return memory[State]{state: state, seq: seq, snapshot: seq`,
		}},
		Package: "object/journal", Test: "TestEventsSnapshotsAndRows",
	},
	{
		Name: "one-event-too-many-removed", Promise: "E3", File: "object/journal/trim.go",
		Edits: []edit{{
			Old: `	last := past.base
`,
			New: `	last := past.base
	if mutant("one-event-too-many-removed") && last > 0 {
		last++
	}
`,
		}},
		Package: "object/journal", Test: "TestCrashKeepAndTrim/map",
	},
	{
		Name: "keep-counts-one-less", Promise: "E3", File: "object/journal/trim.go",
		Edits: []edit{{
			Old: `	bases, err := j.bases(ctx, seq, seq-uint64(j.options.Keep))
`,
			New: `	keep := uint64(j.options.Keep)
	if mutant("keep-counts-one-less") && keep > 0 {
		keep--
	}
	bases, err := j.bases(ctx, seq, seq-keep)
`,
		}},
		Package: "object/journal", Test: "TestKeep",
	},
	{
		Name: "refused-event-stays-in-the-state", Promise: "E1", File: "object/journal/append.go",
		Edits: []edit{{
			Old: `	if failed := j.load(ctx); failed != nil {
`,
			New: `	if mutant("refused-event-stays-in-the-state") {
		return err
	}
	if failed := j.load(ctx); failed != nil {
`,
		}},
		Package: "object/journal", Test: "TestApplyThatFailsChangesNothing",
	},
	{
		Name: "refused-event-goes-unnamed", Promise: "E1", File: "object/journal/append.go",
		Edits: []edit{{
			Old: `	if err == nil {
		return nil
	}
	return j.fail("%s %d: %w", kind, seq, err)
`,
			New: `	if err == nil || mutant("refused-event-goes-unnamed") {
		return err
	}
	return j.fail("%s %d: %w", kind, seq, err)
`,
		}},
		Package: "object/journal", Test: "TestSizesAreCheckedFirst",
	},
	{
		Name: "undone-events-stay-in-the-state", Promise: "E1", File: "object/journal/journal.go",
		Edits: []edit{{
			Old: `	if j.writing {
`,
			New: `	if j.writing || mutant("undone-events-stay-in-the-state") {
`,
		}},
		Package: "object/journal", Test: "TestRandomProgram",
	},
	{
		Name: "newer-event-is-read", Promise: "E3", File: "object/journal/rows.go",
		Edits: []edit{{
			Old: `	case version > today:
`,
			New: `	case version > today && !mutant("newer-event-is-read"):
`,
		}},
		Package: "object/journal", Test: "TestVersions",
	},
	{
		Name: "missing-event-is-passed-over", Promise: "E3", File: "object/journal/read.go",
		Edits: []edit{{
			Old: `		if e.Seq != after {
`,
			New: `		if e.Seq != after && mutant("missing-event-is-passed-over") {
			after = e.Seq
		} else if e.Seq != after {
`,
		}},
		Package: "object/journal", Test: "TestDamageIsSeen",
	},
	{
		Name: "snapshot-one-event-late", Promise: "E2", File: "object/journal/append.go",
		Edits: []edit{{
			Old: `	due := next.seq-j.snapshot >= uint64(j.options.SnapshotEvery)
`,
			New: `	due := next.seq-j.snapshot >= uint64(j.options.SnapshotEvery)
	if mutant("snapshot-one-event-late") {
		due = next.seq-j.snapshot > uint64(j.options.SnapshotEvery)
	}
`,
		}},
		Package: "object/journal", Test: "TestActivationFoldsFewerThanAHundredEvents",
	},
	{
		Name: "event-folded-as-it-was-given", Promise: "E1", File: "object/journal/append.go",
		Edits: []edit{{
			Old: `		begin := len(m.bytes)
`,
			New: `		if mutant("event-folded-as-it-was-given") {
			m.decoded[i] = e
		}
		begin := len(m.bytes)
`,
		}},
		Package: "object/journal", Test: "TestMemoryIsWhatTheRowsDecodeTo",
	},
	{
		Name: "append-commits-by-itself", Promise: "E1", File: "object/journal/append.go",
		Edits: []edit{{
			Old: `	j.memory = next
	return nil
`,
			New: `	j.memory = next
	if mutant("append-commits-by-itself") {
		return j.st.Sync(ctx)
	}
	return nil
`,
		}},
		Package: "object/journal", Test: "TestTurnThatFailsLeavesNoEvent",
	},
	{
		Name: "removals-without-room-refuse-the-event", Promise: "E1", File: "object/journal/append.go",
		Edits: []edit{{
			Old: `	if due && errors.Is(err, object.ErrBatchTooLarge) {
`,
			New: `	if due && errors.Is(err, object.ErrBatchTooLarge) && !mutant("removals-without-room-refuse-the-event") {
`,
		}},
		Package: "object/journal", Test: "TestRemovalsWaitForRoom",
	},
	{
		Name: "deleted-rows-stay-in-memory", Promise: "S6", File: "object/storage.go",
		Edits: []edit{{
			Old: `	if s.state.caches == nil {
		return nil
`,
			New: `	if s.state.caches == nil || mutant("deleted-rows-stay-in-memory") {
		return nil
`,
		}},
		Package: "object", Test: "TestCachedRowsAreReadAgain",
	},
	{
		Name: "instance-lives-on-with-a-broken-cache", Promise: "S6", File: "object/driver.go",
		Edits: []edit{{
			Old: `		if t.grasp() { // else`,
			New: `		if !mutant("instance-lives-on-with-a-broken-cache") && t.grasp() { // else`,
		}},
		Package: "object", Test: "TestCacheThatCannotBeReadResetsTheInstance",
	},
}
