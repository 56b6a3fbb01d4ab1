package main

// storeMutants are bugs of the store and what rests on it.
var storeMutants = []mutant{
	{
		Name: "numbers-begin-again-after-a-block", Promise: "S10", File: "storage/numbers.go",
		Edits: []edit{{
			Old: `block > s.through.Load() {
		s.reserve(block)`,
			New: `block > s.through.Load() && !mutant("numbers-begin-again-after-a-block") {
		s.reserve(block)`,
		}},
		Package: "storage", Test: "TestNumbersGoOnAfterABlock",
	},
	{
		Name: "rows-of-the-runtime-count-at-the-commit", Promise: "S7", File: "object/commit.go",
		Edits: []edit{{
			Old: `	if err := a.beginCommit(); err != nil {
		return err
	}
	began`,
			New: `	if mutant("rows-of-the-runtime-count-at-the-commit") && t.batch.Len() > h.options.MaxBatchBytes {
		return named(a.id, ErrBatchTooLarge)
	}
	if err := a.beginCommit(); err != nil {
		return err
	}
	began`,
		}},
		Package: "object", Test: "TestWhatIsAcceptedCommits",
	},
	{
		Name: "removal-of-many-bytes-key-by-key", Promise: "S7", File: "object/storage.go",
		Edits: []edit{{
			Old: `	if b.Len() > h.options.MaxBatchBytes { // the keys`,
			New: `	if b.Len() > h.options.MaxBatchBytes && !mutant("removal-of-many-bytes-key-by-key") { // the keys`,
		}},
		Package: "object", Test: "TestRemovalOfManyBytesFits",
	},
	{
		Name: "overhead-of-records-is-not-counted", Promise: "S7", File: "object/storage.go",
		Edits: []edit{{
			Old: `	case t.written()+addBytes+recordBytes > o.MaxBatchBytes:`,
			New: `	case t.written()+addBytes > o.MaxBatchBytes && mutant("overhead-of-records-is-not-counted"):
		return named(id, ErrBatchTooLarge)
	case t.written()+addBytes+recordBytes > o.MaxBatchBytes && !mutant("overhead-of-records-is-not-counted"):`,
		}},
		Package: "object", Test: "TestBatchBoundIsNear",
	},
	{
		Name: "space-is-not-looked-at-by-time", Promise: "O17", File: "storage/space.go",
		Edits: []edit{{
			Old: `	s.sinceLook.Store(0)
	s.lookedAt`,
			New: `	if mutant("space-is-not-looked-at-by-time") && s.sinceLook.Load() < checkEveryBytes && !s.below.Load() {
		return nil
	}
	s.sinceLook.Store(0)
	s.lookedAt`,
		}},
		Package: "storage", Test: "TestSpaceIsLookedAtByTime",
	},
	{
		Name: "full-disk-fails-the-close", Promise: "O17", File: "storage/pebble.go",
		Edits: []edit{{
			Old: `!(synced && isFull(failed)) {`,
			New: `(mutant("full-disk-fails-the-close") || !(synced && isFull(failed))) {`,
		}},
		Package: "storage", Test: "TestCloseOnAFullDisk",
	},
}
