package main

var storageMutants = []mutant{
	{
		Number: 7, Name: "commit-without-sync", Promise: "S9", File: "storage/pebblestore/store.go",
		Edits: []edit{{
			Old: `	if err := e.db.LogData(nil, pebble.Sync); err != nil {`,
			New: `	how := pebble.Sync
	if mutant("commit-without-sync") {
		how = pebble.NoSync
	}
	if err := e.db.LogData(nil, how); err != nil {`,
		}},
		Package: "object", Test: "TestCrashDeposits/pebble",
	},
	{
		Number: 8, Name: "fatalf-returns", Promise: "O13", File: "storage/pebblestore/logger.go",
		Edits: []edit{{
			Old: `	f := &fatalLog{fmt.Sprintf(format, args...)}
`,
			New: `	if mutant("fatalf-returns") {
		return
	}
	f := &fatalLog{fmt.Sprintf(format, args...)}
`,
		}},
		Package: "storage/pebblestore", Test: "TestFatalOnACallersGoroutine",
	},
	{
		Number: 9, Name: "index-in-a-commit-of-its-own", Promise: "A1", File: "storage/store.go",
		Edits: []edit{{
			Old: `	s.seams.At("commit/before", object)
	if err := s.applyMarks(b); err != nil {`,
			New: `	if mutant("index-in-a-commit-of-its-own") {
		rows, index := &Batch{id: b.id, removal: b.removal}, &Batch{id: b.id}
		err := engine.ReadBatch(b.Repr(), func(r engine.Record) {
			to := rows
			if len(r.Key) > 2 && r.Key[2] == kindIndex {
				to = index
			}
			switch {
			case r.Upper != nil:
				to.DeleteRange(r.Key, r.Upper)
			case r.Deleted:
				to.Delete(r.Key)
			default:
				to.Set(r.Key, r.Value)
			}
		})
		if err != nil {
			return 0, err
		}
		if !rows.Empty() && !index.Empty() {
			s.seams.At("commit/before", object)
			if err := s.applyMarks(rows); err != nil {
				return 0, err
			}
			s.pipeline.applied(rows.Len())
			s.seams.At("commit/after", object)
			b = index
		}
	}
	s.seams.At("commit/before", object)
	if err := s.applyMarks(b); err != nil {`,
		}},
		Package: "object", Test: "TestCrashAlarm/map",
	},
	{
		Name: "batch-applied-in-two", Promise: "S9", File: "storage/pebblestore/store.go",
		Edits: []edit{{
			Old: `	b := e.db.NewBatchWithSize(len(repr))
`,
			New: `	if mutant("batch-applied-in-two") {
		first, second := e.db.NewBatch(), e.db.NewBatch()
		n := 0
		if err := engine.ReadBatch(repr, func(r engine.Record) {
			to := first
			if n++; n > 1 {
				to = second
			}
			switch {
			case r.Upper != nil:
				_ = to.DeleteRange(r.Key, r.Upper, nil)
			case r.Deleted:
				_ = to.Delete(r.Key, nil)
			default:
				_ = to.Set(r.Key, r.Value, nil)
			}
		}); err != nil {
			return err
		}
		for _, part := range []*pebble.Batch{first, second} {
			if !part.Empty() {
				if err := e.db.Apply(part, pebble.NoSync); err != nil {
					return err
				}
			}
		}
		return e.log.failed()
	}
	b := e.db.NewBatchWithSize(len(repr))
`,
		}},
		Package: "storage/storagetest", Test: "TestCrashInALargeCommit",
	},
	{
		Name: "failed-write-goes-on", Promise: "O13", File: "storage/pebblestore/failstop.go",
		Edits: []edit{{
			Old: `		if err := write(); err != nil {
			f.end.fail(err)
		}
`,
			New: `		if err := write(); err != nil && !mutant("failed-write-goes-on") {
			f.end.fail(err)
		}
`,
		}},
		Package: "storage", Test: "TestBrokenLog",
	},
	{
		Name: "damage-taken-for-a-torn-end", Promise: "S9", File: "storage/pebblestore/tail.go",
		Edits: []edit{{
			Old: `	if t.syncsAfter >= 2 {`,
			New: `	if t.syncsAfter >= 2 && !mutant("damage-taken-for-a-torn-end") {`,
		}},
		Package: "storage/pebblestore", Test: "TestDamageOfTheNewestLog/10",
	},
	{
		Name: "torn-end-taken-for-damage", Promise: "S9", File: "storage/pebblestore/tail.go",
		Edits: []edit{{
			Old: `	if t.torn {
		t.syncsAfter++`,
			New: `	if t.torn {
		if mutant("torn-end-taken-for-damage") {
			t.syncsAfter++
		}
		t.syncsAfter++`,
		}},
		Package: "storage/pebblestore", Test: "TestDamageOfTheNewestLog/1024",
	},
	{
		Name: "lost-log-not-missed", Promise: "S9", File: "storage/pebblestore/sums.go",
		Edits: []edit{{
			Old: `	if _, ok := s.lines[name]; ok || s.file == nil {`,
			New: `	if _, ok := s.lines[name]; ok || s.file == nil || mutant("lost-log-not-missed") {`,
		}},
		Package: "storage", Test: "TestOpenMissesLostFiles",
	},
	{
		Name: "mark-expires-early", Promise: "O16", File: "storage/expiry.go",
		Edits: []edit{{
			Old: `		if at > now || int(b.count) >= limit {`,
			New: `		if at > now && !mutant("mark-expires-early") || int(b.count) >= limit {`,
		}},
		Package: "storage", Test: "TestExpireBucketsOfAnySize",
	},
	{
		Name: "late-mark-never-expires", Promise: "O16", File: "storage/store.go",
		Edits: []edit{{
			Old: `		if b.removal <= s.removed {`,
			New: `		if b.removal <= s.removed && !mutant("late-mark-never-expires") {`,
		}},
		Package: "storage", Test: "TestExpireBesideMarksThatAreSet",
	},
	{
		Name: "deleted-range-hides-later-writes", Promise: "S2", File: "storage/batch.go",
		Edits: []edit{{
			Old: `	if c, ok := b.overlay[string(key)]; ok {
		return`,
			New: `	if c, ok := b.overlay[string(key)]; ok && !(mutant("deleted-range-hides-later-writes") && b.covered(string(key))) {
		return`,
		}},
		Package: "storage", Test: "TestReadsAfterADeletedRange",
	},
}
