package main

// directoryMutants are bugs of the tools that look at the directory of a store at rest.
var directoryMutants = []mutant{
	{
		Name: "reader-begins-a-file-of-sums", Promise: "S13", File: "storage/pebblestore/store.go",
		Edits: []edit{{
			Old: `	o.FS = fsys
	db, err := pebble.Open`,
			New: `	if o.readOnly && mutant("reader-begins-a-file-of-sums") {
		if err := sums.begin(o.FS.Unwrap(), dir); err != nil {
			return nil, err
		}
	}
	o.FS = fsys
	db, err := pebble.Open`,
		}},
		Package: "storage", Test: "TestReadOnlyOpenChangesNothing",
	},
	{
		Name: "reader-counts-as-an-opening", Promise: "S13", File: "storage/open_readonly.go",
		Edits: []edit{{
			Old: `	s, err := readDir(o)
`,
			New: `	if mutant("reader-counts-as-an-opening") {
		if s, err := Open(o); err == nil {
			_ = s.Close()
		}
	}
	s, err := readDir(o)
`,
		}},
		Package: "storage", Test: "TestReadOnlyOpenChangesNothing",
	},
	{
		Name: "reader-takes-the-epoch-before", Promise: "S13", File: "storage/open_readonly.go",
		Edits: []edit{{
			Old: `	return s, s.readEpoch()
`,
			New: `	err := s.readEpoch()
	if mutant("reader-takes-the-epoch-before") {
		s.epoch = s.previous.Epoch
	}
	return s, err
`,
		}},
		Package: "storage", Test: "TestReadOnlyOpenChangesNothing",
	},
	{
		Name: "refused-commit-ends-the-reader", Promise: "S13", File: "storage/store.go",
		Edits: []edit{{
			Old: `	if s.readOnly {
		return ErrReadOnly
	}
`,
			New: `	if s.readOnly && !mutant("refused-commit-ends-the-reader") {
		return ErrReadOnly
	}
`,
		}},
		Package: "storage", Test: "TestReadOnlyRefusesChanges",
	},
	{
		Name: "refused-reader-breaks-the-lock", Promise: "S13", File: "storage/pebblestore/lock_shared.go",
		Edits: []edit{{
			Old: `	h := held.dirs[d.Path]
`,
			New: `	h := held.dirs[d.Path]
	if h != nil && h.readers == 0 && mutant("refused-reader-breaks-the-lock") {
		if f, err := os.Open(filepath.Join(d.Path, lockFile)); err == nil {
			_ = f.Close()
		}
	}
`,
		}},
		Package: "storage", Test: "TestReadersAndWritersExcludeOneAnother",
	},
	{
		Name: "first-reader-unlocks-for-all", Promise: "S13", File: "storage/pebblestore/lock_shared.go",
		Edits: []edit{{
			Old: `	if l.h.readers--; l.h.readers > 0 {
`,
			New: `	if l.h.readers--; l.h.readers > 0 && !mutant("first-reader-unlocks-for-all") {
`,
		}},
		Package: "storage", Test: "TestReadersAndWritersExcludeOneAnother",
	},
	{
		Name: "reader-takes-no-lock", Promise: "S13", File: "storage/pebblestore/lock_unix.go",
		Edits: []edit{{
			Old: `	err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
`,
			New: `	if mutant("reader-takes-no-lock") {
		return nil
	}
	err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
`,
		}},
		Package: "storage", Test: "TestReadersAndWritersExcludeOneAnother",
	},
	{
		Name: "reader-of-a-half-made-store", Promise: "S13", File: "storage/open_readonly.go",
		Edits: []edit{{
			Old: `	case f.version != 0:
`,
			New: `	case f.version != 0 && mutant("reader-of-a-half-made-store"):
		return f, nil
	case f.version != 0:
`,
		}},
		Package: "storage", Test: "TestReadOnlyOpenSaysWhy",
	},
	{
		Name: "reader-without-the-witness", Promise: "S13", File: "storage/open_readonly.go",
		Edits: []edit{{
			Old: `	if err == nil && o.Witness {
`,
			New: `	if err == nil && o.Witness && !mutant("reader-without-the-witness") {
`,
		}},
		Package: "storage", Test: "TestReadOnlyOpenComparesTheWitness",
	},
	{
		Name: "block-without-its-checksum", Promise: "S14", File: "storage/pebblestore/inspect_table.go",
		Edits: []edit{{
			Old: `	for _, b := range handles(layout) {
`,
			New: `	for i, b := range handles(layout) {
		if i%2 == 1 && mutant("block-without-its-checksum") {
			continue
		}
`,
		}},
		Package: "storage/pebblestore", Test: "TestInspectReadsEachBlock",
	},
	{
		Name: "verify-reads-a-table-that-is-not-in-use", Promise: "S14", File: "storage/pebblestore/inspect.go",
		Edits: []edit{{
			Old: `	if whole {
		names, err = v.inUse(o)`,
			New: `	if whole && !mutant("verify-reads-a-table-that-is-not-in-use") {
		names, err = v.inUse(o)`,
		}},
		Package: "storage", Test: "TestVerifyPassesOverATornTable",
	},
	{
		Name: "verify-ends-at-the-first-file", Promise: "S14", File: "storage/pebblestore/inspect.go",
		Edits: []edit{{
			Old: `	case v.reported[name]:
`,
			New: `	case v.reported[name], len(v.reported) > 0 && mutant("verify-ends-at-the-first-file"):
`,
		}},
		Package: "storage", Test: "TestVerifyTellsOfAllFiles",
	},
	{
		Name: "verify-trusts-a-damaged-manifest", Promise: "S14", File: "storage/pebblestore/inspect.go",
		Edits: []edit{{
			Old: `		return s, false, v.report(manifest, err)
`,
			New: `		return s, mutant("verify-trusts-a-damaged-manifest"), v.report(manifest, err)
`,
		}},
		Package: "storage", Test: "TestVerifyOfADamagedManifest",
	},
	{
		Name: "verify-without-the-tail-of-the-log", Promise: "S14", File: "storage/pebblestore/inspect.go",
		Edits: []edit{{
			Old: `	if err := checkTail(v.dir.FS, v.dir.Path, s); err != nil {
`,
			New: `	if err := checkTail(v.dir.FS, v.dir.Path, s); err != nil && !mutant("verify-without-the-tail-of-the-log") {
`,
		}},
		Package: "storage/pebblestore", Test: "TestInspectOfTheNewestLog",
	},
	{
		Name: "one-finding-too-few", Promise: "S14", File: "storage/verify.go",
		Edits: []edit{{
			Old: `	if v.findings == MaxFindings {
`,
			New: `	if v.findings == MaxFindings || mutant("one-finding-too-few") && v.findings == MaxFindings-1 {
`,
		}},
		Package: "storage", Test: "TestVerifyIsBounded",
	},
	{
		Name: "rows-end-at-the-first-contradiction", Promise: "S14", File: "storage/verify.go",
		Edits: []edit{{
			Old: `		return v.found(Finding{Object: id, Text: err.Error()})
`,
			New: `		if mutant("rows-end-at-the-first-contradiction") && v.findings > 0 {
			return nil
		}
		return v.found(Finding{Object: id, Text: err.Error()})
`,
		}},
		Package: "storage", Test: "TestVerifyTellsOfRows",
	},
	{
		Name: "findings-of-a-shard-are-dropped", Promise: "S14", File: "storage/check.go",
		Edits: []edit{{
			Old: `		for _, t := range c.told {
`,
			New: `		if shard == 3 && mutant("findings-of-a-shard-are-dropped") {
			return c.err
		}
		for _, t := range c.told {
`,
		}},
		Package: "storage", Test: "TestVerifyTellsOfRowsInOrder",
	},
	{
		Name: "verify-goes-on-after-its-context", Promise: "S14", File: "storage/pebblestore/inspect.go",
		Edits: []edit{{
			Old: `	if err := v.ctx.Err(); err != nil {
		return err
	}
	v.done += bytes
`,
			New: `	if err := v.ctx.Err(); err != nil && !mutant("verify-goes-on-after-its-context") {
		return err
	}
	v.done += bytes
`,
		}},
		Package: "storage", Test: "TestVerifyEndsWithItsContext",
	},
	{
		Name: "numbers-go-on-after-the-last-epoch", Promise: "S10", File: "storage/numbers.go",
		Edits: []edit{{
			Old: `	if block > lastEpoch {
`,
			New: `	if block > lastEpoch && !mutant("numbers-go-on-after-the-last-epoch") {
`,
		}},
		Package: "storage", Test: "TestNumbersEndWithTheLastEpoch",
	},
	{
		Name: "last-epoch-has-no-numbers", Promise: "S10", File: "storage/epoch.go",
		Edits: []edit{{
			Old: `	if s.epoch > lastEpoch {
`,
			New: `	if s.epoch > lastEpoch || mutant("last-epoch-has-no-numbers") && s.epoch == lastEpoch {
`,
		}},
		Package: "storage", Test: "TestNumbersEndWithTheLastEpoch",
	},
	{
		Name: "opening-after-the-last-epoch", Promise: "S10", File: "storage/epoch.go",
		Edits: []edit{{
			Old: `		return s.fail(errNumbers)
	}
	b := s.epochRow`,
			New: `		if !mutant("opening-after-the-last-epoch") {
			return s.fail(errNumbers)
		}
	}
	b := s.epochRow`,
		}},
		Package: "storage", Test: "TestNumbersEndWithTheLastEpoch",
	},
	{
		Name: "bound-stored-after-its-first-number", Promise: "S10", File: "storage/numbers.go",
		Edits: []edit{{
			Old: `	n := counter.Add(1)
`,
			New: `	n := counter.Add(1)
	if low := n & (1<<blockBits - 1); (low < 2 || low > 1<<31) && mutant("bound-stored-after-its-first-number") {
		return n
	}
`,
		}},
		Package: "storage", Test: "TestCrashesAroundABlock",
	},
	{
		Name: "failed-link-ends-the-store", Promise: "S15", File: "storage/pebblestore/failstop.go",
		Edits: []edit{{
			Old: `	if !fsys.isOwn(to) {
		if err := fsys.beforeOutside(0); err != nil {
			return err
		}
		return fsys.FS.Link(from, to)
	}
`,
			New: `	if !fsys.isOwn(to) && !mutant("failed-link-ends-the-store") {
		if err := fsys.beforeOutside(0); err != nil {
			return err
		}
		return fsys.FS.Link(from, to)
	}
`,
		}},
		Package: "storage", Test: "TestCheckpointsBesideAWriter",
	},
	{
		Name: "sums-of-the-copy-in-the-store", Promise: "S15", File: "storage/pebblestore/failstop.go",
		Edits: []edit{{
			Old: `	if !fsys.isOwn(name) {
		if err := fsys.beforeOutside(0); err != nil {
			return nil, err
		}
		f, err := open()
		if err != nil {
			return nil, err
		}
		return &outsideFile{f, fsys}, nil
	}
`,
			New: `	if !fsys.isOwn(name) && !mutant("sums-of-the-copy-in-the-store") {
		if err := fsys.beforeOutside(0); err != nil {
			return nil, err
		}
		f, err := open()
		if err != nil {
			return nil, err
		}
		return &outsideFile{f, fsys}, nil
	}
`,
		}},
		Package: "storage", Test: "TestFailedCheckpointLeavesTheStore",
	},
	{
		Name: "copy-is-not-paced", Promise: "S15", File: "storage/pebblestore/checkpoint.go",
		Edits: []edit{{
			Old: `		if err := before(n); err != nil {
`,
			New: `		bytes := n
		if mutant("copy-is-not-paced") {
			bytes = 0
		}
		if err := before(bytes); err != nil {
`,
		}},
		Package: "storage", Test: "TestCheckpointPaced",
	},
	{
		Name: "copy-of-a-log-is-not-cut", Promise: "S15", File: "storage/pebblestore/checkpoint.go",
		Edits: []edit{{
			Old: `	return d.Rename(name+cutSuffix, name)
`,
			New: `	if mutant("copy-of-a-log-is-not-cut") {
		return d.FS.Remove(d.Join(name + cutSuffix))
	}
	return d.Rename(name+cutSuffix, name)
`,
		}},
		Package: "storage/pebblestore", Test: "TestCopyOfALogIsCut",
	},
	{
		Name: "lock-is-given-up-before-the-database", Promise: "O2", File: "storage/pebblestore/store.go",
		Edits: []edit{{
			Old: `	if e.iterators.Add(closing) == closing {
		err = e.closeDB()
	}
`,
			New: `	if e.iterators.Add(closing) == closing {
		err = e.closeDB()
	} else if mutant("lock-is-given-up-before-the-database") {
		err, e.lock = e.unlock(), nil
	}
`,
		}},
		Package: "storage", Test: "TestLeakedIteratorKeepsTheLock",
	},
	{
		Name: "copy-holds-up-its-end", Promise: "S15", File: "storage/pebblestore/failstop.go",
		Edits: []edit{{
			Old: `	if before := fsys.before.Load(); before != nil {
`,
			New: `	if before := fsys.before.Load(); before != nil && !mutant("copy-holds-up-its-end") {
`,
		}},
		Package: "storage", Test: "TestCheckpointEnds",
	},
	{
		Name: "failed-sync-of-the-copy-is-not-told", Promise: "S15", File: "storage/pebblestore/checkpoint.go",
		Edits: []edit{{
			Old: `	err = errors.Join(e.db.Checkpoint(to), e.files.takeOutside())
`,
			New: `	err = e.db.Checkpoint(to)
	if lost := e.files.takeOutside(); !mutant("failed-sync-of-the-copy-is-not-told") {
		err = errors.Join(err, lost)
	}
`,
		}},
		Package: "storage", Test: "TestFailedCheckpointLeavesTheStore",
	},
	{
		Name: "failed-checkpoint-leaves-its-copy", Promise: "S15", File: "storage/pebblestore/checkpoint.go",
		Edits: []edit{{
			Old: `		return errors.Join(wrap("checkpoint to "+to, err), e.dir.FS.RemoveAll(to))
`,
			New: `		if mutant("failed-checkpoint-leaves-its-copy") {
			return wrap("checkpoint to "+to, err)
		}
		return errors.Join(wrap("checkpoint to "+to, err), e.dir.FS.RemoveAll(to))
`,
		}},
		Package: "storage", Test: "TestFailedCheckpointLeavesTheStore",
	},
	{
		Name: "witness-of-the-copy-is-empty", Promise: "S15", File: "storage/checkpoint.go",
		Edits: []edit{{
			Old: `		copy(text[n%2*witnessSlot:], witnessSlotOf(n))
`,
			New: `		if !mutant("witness-of-the-copy-is-empty") {
			copy(text[n%2*witnessSlot:], witnessSlotOf(n))
		}
`,
		}},
		Package: "storage", Test: "TestCheckpointHasAWitness",
	},
	{
		Name: "dead-store-fails-only-its-copy", Promise: "S9", File: "storage/checkpoint.go",
		Edits: []edit{{
			Old: `	if s.Err() != nil {
		return s.fail(err)
`,
			New: `	if s.Err() != nil && !mutant("dead-store-fails-only-its-copy") {
		return s.fail(err)
`,
		}},
		Package: "admin/backup", Test: "TestBackupOfAFailingStore",
	},
	{
		Name: "checkpoint-below-the-floor", Promise: "S15", File: "storage/checkpoint.go",
		Edits: []edit{{
			Old: `	if free < needed+s.space.floor {
`,
			New: `	if free < needed+s.space.floor && !mutant("checkpoint-below-the-floor") {
`,
		}},
		Package: "storage", Test: "TestCheckpointKeepsTheFloor",
	},
}
