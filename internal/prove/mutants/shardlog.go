package main

// shardlogMutants are bugs of a store over a log: of its rounds, its barrier, its position row and its owner.
var shardlogMutants = []mutant{
	{
		Name: "round-acknowledged-and-not-appended", Promise: "N2", File: "storage/shardlog/engine.go",
		Edits: []edit{{
			Old: `	for rest := r.frames; len(rest) > 0; {`,
			New: `	for rest := r.frames; len(rest) > 0 && !mutant("round-acknowledged-and-not-appended"); {`,
		}},
		Package: "storage/shardlog", Test: "TestNextProcessFindsTheCommits",
	},
	{
		Name: "round-backwards", Promise: "N2", File: "storage/shardlog/round.go",
		Edits: []edit{{
			Old: `	r.frames = AppendBatch(r.frames, repr)
`,
			New: `	if mutant("round-backwards") {
		r.frames = append(AppendBatch(nil, repr), r.frames...)
	} else {
		r.frames = AppendBatch(r.frames, repr)
	}
`,
		}},
		Package: "storage/shardlog", Test: "TestRoundKeepsTheOrder",
	},
	{
		Name: "frames-backwards", Promise: "S9", File: "storage/shardlog/round.go",
		Edits: []edit{{
			Old: `func AppendBatch(payload, repr []byte) []byte { return row`,
			New: `func AppendBatch(payload, repr []byte) []byte {
	if mutant("frames-backwards") {
		return append(row.Writer(nil).Bytes(repr[seqBytes:]), payload...)
	}
	return appendBatch(payload, repr)
}

func appendBatch(payload, repr []byte) []byte { return row`,
		}},
		Package: "object", Test: "TestTakeOverAmongManyCallers",
	},
	{
		Name: "append-without-the-term", Promise: "N1", File: "storage/shardlog/memlog/memlog.go",
		Edits: []edit{{
			Old: `	case r.Term != h.Term:`,
			New: `	case r.Term != h.Term && !mutant("append-without-the-term"):`,
		}},
		Package: "storage/shardlog", Test: "TestReplacedOwnerCommitsNothing",
	},
	{
		Name: "append-without-the-chain", Promise: "N1", File: "storage/shardlog/memlog/memlog.go",
		Edits: []edit{{
			Old: `	case r.At != h.Last+1 || before != h.Chain:`,
			New: `	case r.At != h.Last+1 || before != h.Chain && !mutant("append-without-the-chain"):`,
		}},
		Package: "storage/shardlog/shardlogtest", Test: "TestLog",
	},
	{
		Name: "replay-without-the-chain", Promise: "N7", File: "storage/shardlog/log.go",
		Edits: []edit{{
			Old: `	case r.Chain != Next(before.Chain, r.Payload):`,
			New: `	case r.Chain != Next(before.Chain, r.Payload) && !mutant("replay-without-the-chain"):`,
		}},
		Package: "storage/shardlog", Test: "TestDamagedLogIsRefused",
	},
	{
		Name: "replay-ends-with-the-first-page", Promise: "N7", File: "storage/shardlog/owner.go",
		Edits: []edit{{
			Old: `		if e.last == at {`,
			New: `		if e.last == at || mutant("replay-ends-with-the-first-page") {`,
		}},
		Package: "storage/shardlog", Test: "TestRecordsComeInPages",
	},
	{
		Name: "position-row-before-the-append", Promise: "N2", File: "storage/shardlog/engine.go",
		Edits: []edit{{
			Old: `	r, upTo, err := e.take()
	if err != nil {
		return err
	}
`,
			New: `	r, upTo, err := e.take()
	if err != nil {
		return err
	}
	if r != nil && mutant("position-row-before-the-append") {
		if err := writePosition(e.view, e.last+1, Next(e.chain, r.frames)); err != nil {
			return err
		}
	}
`,
		}},
		Package: "storage/shardlog", Test: "TestPositionRowComesAfterTheAppend",
	},
	{
		Name: "position-row-by-the-append-alone", Promise: "N2", File: "storage/shardlog/barrier.go",
		Edits: []edit{{
			Old: `b.spans[n].left.Load() == 0 {`,
			New: `(b.spans[n].left.Load() == 0 || mutant("position-row-by-the-append-alone")) {`,
		}},
		Package: "storage/shardlog", Test: "TestPositionRowWaitsForTheView",
	},
	{
		Name: "barrier-off", Promise: "N2", File: "storage/shardlog/options.go",
		Edits: []edit{{
			Old: `		if b := open.Load(); b != nil {
			return b.table()`,
			New: `		if b := open.Load(); b != nil && !mutant("barrier-off") {
			return b.table()`,
		}},
		Package: "storage/shardlog", Test: "TestBarrierLeads",
	},
	{
		Name: "barrier-does-not-lead", Promise: "N2", File: "storage/shardlog/barrier.go",
		Edits: []edit{
			{
				Old: `import "sync"`,
				New: `import (
	"sync"
	"time"
)`,
			},
			{
				Old: `		_ = b.lead() // its error is in b.err
`,
				New: `		if mutant("barrier-does-not-lead") {
			time.Sleep(time.Millisecond)
		} else {
			_ = b.lead()
		}
`,
			},
		},
		Package: "storage/shardlog", Test: "TestBarrierLeads",
	},
	{
		Name: "unknown-append-taken-for-stored", Promise: "N8", File: "storage/shardlog/engine.go",
		Edits: []edit{{
			Old: `		unknown = unknown || isUnknown(err)
`,
			New: `		if mutant("unknown-append-taken-for-stored") && isUnknown(err) {
			return nil
		}
		unknown = unknown || isUnknown(err)
`,
		}},
		Package: "storage/shardlog", Test: "TestUnknownAppendIsRepeated",
	},
	{
		Name: "fenced-taken-for-not-stored", Promise: "N8", File: "storage/shardlog/engine.go",
		Edits: []edit{{
			Old: `	if err != nil && unknown &&`,
			New: `	if err != nil && unknown && !mutant("fenced-taken-for-not-stored") &&`,
		}},
		Package: "storage/shardlog", Test: "TestFencedAfterAnUnknownOutcome",
	},
	{
		Name: "base-ignored", Promise: "N7", File: "storage/shardlog/owner.go",
		Edits: []edit{{
			Old: `	case e.last+1 < head.First:
`,
			New: `	case e.last+1 < head.First && !mutant("base-ignored"):
`,
		}},
		Package: "storage/shardlog", Test: "TestLogWithABase",
	},
	{
		Name: "receipt-not-compared", Promise: "N7", File: "storage/shardlog/receipt.go",
		Edits: []edit{{
			Old: `	if chain != acked.chain {`,
			New: `	if chain != acked.chain && !mutant("receipt-not-compared") {`,
		}},
		Package: "storage/shardlog", Test: "TestLogThatLostRecordsIsRefused",
	},
	{
		Name: "empty-round-without-a-head", Promise: "N4", File: "storage/shardlog/engine.go",
		Edits: []edit{{
			Old: `		if !confirm {`,
			New: `		if !confirm || mutant("empty-round-without-a-head") {`,
		}},
		Package: "storage/shardlog", Test: "TestReplacedOwnerAnswersNoReader",
	},
	{
		Name: "confirm-ignores-the-term", Promise: "N4", File: "storage/shardlog/owner.go",
		Edits: []edit{{
			Old: `	if head.Term == e.term && head.Last`,
			New: `	if (head.Term == e.term || mutant("confirm-ignores-the-term")) && head.Last`,
		}},
		Package: "storage/shardlog", Test: "TestReplacedOwnerAnswersNoReader",
	},
	{
		Name: "follower-applies-the-last-record", Promise: "N6", File: "storage/shardlog/follow.go",
		Edits: []edit{{
			Old: `	return t.met && max(e.last, t.held.At) >= e.tables.at, err
`,
			New: `	if t.held.At > 0 && mutant("follower-applies-the-last-record") {
		err = errors.Join(err, e.replay(t.held, math.MaxUint64))
	}
	return t.met && max(e.last, t.held.At) >= e.tables.at, err
`,
		}},
		Package: "storage/shardlog", Test: "TestFollowerLeavesTheLastRecord",
	},
	{
		Name: "claim-with-the-term-of-the-own-head", Promise: "N6", File: "storage/shardlog/follow.go",
		Edits: []edit{{
			Old: `	found, err = e.ownAfter(seen, head)
`,
			New: `	if mutant("claim-with-the-term-of-the-own-head") {
		seen = head.Term
	}
	found, err = e.ownAfter(seen, head)
`,
		}},
		Package: "storage/shardlog", Test: "TestFiveWaitOneClaims",
	},
	{
		Name: "claim-before-catch-up", Promise: "N6", File: "storage/shardlog/owner.go",
		Edits: []edit{{
			Old: `	if err := e.catchUp(head); err != nil {`,
			New: `	if err := e.catchUp(head); err != nil && !mutant("claim-before-catch-up") {`,
		}},
		Package: "storage/shardlog", Test: "TestWaitingWithABadLogClaimsNothing",
	},
	{
		Name: "turn-asked-once", Promise: "N6", File: "storage/shardlog/follow.go",
		Edits: []edit{{
			Old: `	case !claim || now != seen:`,
			New: `	case (!claim || now != seen) && !mutant("turn-asked-once"):`,
		}},
		Package: "storage/shardlog", Test: "TestTurnIsAskedTwice",
	},
	{
		Name: "fenced-owner-does-not-ask-on", Promise: "N7", File: "storage/shardlog/inquiry.go",
		Edits: []edit{{
			Old: `(l != nil || !e.compared)`,
			New: `(l != nil || !e.compared && !mutant("fenced-owner-does-not-ask-on"))`,
		}},
		Package: "storage/shardlog", Test: "TestFencedOwnerAsksOn",
	},
	{
		Name: "late-loss-stops-the-shard", Promise: "N7", File: "storage/shardlog/inquiry.go",
		Edits: []edit{{
			Old: `.Sub(i.met) > lateAfter {`,
			New: `.Sub(i.met) > lateAfter && !mutant("late-loss-stops-the-shard") {`,
		}},
		Package: "storage/shardlog", Test: "TestFencedOwnerAsksOn",
	},
	{
		Name: "view-tells-of-a-loss-again", Promise: "N7", File: "storage/shardlog/inquiry.go",
		Edits: []edit{{
			Old: `readErr != nil || told == l.place {`,
			New: `readErr != nil || told == l.place && !mutant("view-tells-of-a-loss-again") {`,
		}},
		Package: "storage/shardlog", Test: "TestViewTellsOfALossOnce",
	},
	{
		Name: "told-loss-not-kept", Promise: "N7", File: "storage/shardlog/position.go",
		Edits: []edit{{
			Old: `	return view.Sync()
`,
			New: `	if mutant("told-loss-not-kept") {
		return nil
	}
	return view.Sync()
`,
		}},
		Package: "storage/shardlog", Test: "TestViewTellsOfALossOnce",
	},
	{
		Name: "rescue-has-all-that-is-kept", Promise: "N7", File: "storage/shardlog/inquiry.go",
		Edits: []edit{{
			Old: `	return before, records[has:], nil
`,
			New: `	if mutant("rescue-has-all-that-is-kept") {
		return i.kept.before, records, nil
	}
	return before, records[has:], nil
`,
		}},
		Package: "storage/shardlog", Test: "TestOwnerTellsOfALoss",
	},
	{
		Name: "rescue-named-before-its-sync", Promise: "N7", File: "storage/shardlog/inquiry.go",
		Edits: []edit{{
			Old: `	if err = r.write(f); err == nil {
`,
			New: `	if err = r.write(f); err == nil && !mutant("rescue-named-before-its-sync") {
`,
		}},
		Package: "storage/shardlog", Test: "TestRescueFileIsWholeOrAbsent",
	},
	{
		Name: "table-without-a-proof", Promise: "N7", File: "storage/shardlog/barrier.go",
		Edits: []edit{{
			Old: `err != nil || b.proof == nil {`,
			New: `err != nil || b.proof == nil || mutant("table-without-a-proof") {`,
		}},
		Package: "storage/shardlog", Test: "TestTableAheadOfItsRow",
	},
	{
		Name: "proof-not-compared-by-the-replay", Promise: "N7", File: "storage/shardlog/owner.go",
		Edits: []edit{{
			Old: `	if r.At == e.tables.at &&`,
			New: `	if r.At == e.tables.at && !mutant("proof-not-compared-by-the-replay") &&`,
		}},
		Package: "storage/shardlog", Test: "TestTableAheadOfItsRow",
	},
	{
		Name: "snapshot-without-the-flush", Promise: "N10", File: "storage/pebblestore/checkpoint.go",
		Edits: []edit{{
			Old: `	if err := e.Sync(); err != nil {
		return err
	}
	e.copying.Lock()`,
			New: `	if e.noLog && mutant("snapshot-without-the-flush") {
		return e.copyFlushed(to, before)
	}
	if err := e.Sync(); err != nil {
		return err
	}
	return e.copyFlushed(to, before)
}

func (e *Store) copyFlushed(to string, before func(bytes int) error) (err error) {
	e.copying.Lock()`,
		}},
		Package: "storage/shardlog/snapshot", Test: "TestSnapshotHasAllThatWasAcknowledged",
	},
	{
		Name: "truncation-without-a-look-at-the-blobs", Promise: "N10", File: "storage/shardlog/snapshot/trim.go",
		Edits: []edit{{
			Old: `	if err := o.verify(ctx, second); err != nil {`,
			New: `	if err := o.verify(ctx, second); err != nil && !mutant("truncation-without-a-look-at-the-blobs") {`,
		}},
		Package: "storage/shardlog/snapshot", Test: "TestTrimNeedsAWholeSnapshot",
	},
	{
		Name: "truncation-without-a-look-at-the-term", Promise: "N10", File: "storage/shardlog/memlog/memlog.go",
		Edits: []edit{{
			Old: `	if err := s.claimed(term); err != nil {`,
			New: `	if err := s.claimed(term); err != nil && !mutant("truncation-without-a-look-at-the-term") {`,
		}},
		Package: "storage/shardlog/snapshot", Test: "TestReplacedOwnerChangesNothing",
	},
	{
		Name: "blob-taken-as-it-comes", Promise: "N10", File: "storage/shardlog/snapshot/verify.go",
		Edits: []edit{{
			Old: `	if n != want.size || `,
			New: `	if !mutant("blob-taken-as-it-comes") && n != want.size || !mutant("blob-taken-as-it-comes") && `,
		}},
		Package: "storage/shardlog/snapshot", Test: "TestRestorePassesADamagedSnapshotOver",
	},
	{
		Name: "snapshot-of-another-place", Promise: "N10", File: "storage/shardlog/snapshot/restore.go",
		Edits: []edit{{
			Old: `	if at != s.Last || chain != s.Chain {`,
			New: `	if (at != s.Last || chain != s.Chain) && !mutant("snapshot-of-another-place") {`,
		}},
		Package: "storage/shardlog/snapshot", Test: "TestRestoreComparesThePlace",
	},
	{
		Name: "format-file-before-the-tables", Promise: "N10", File: "storage/view.go",
		Edits: []edit{{
			Old: `	for _, name := range []string{formatFileNew, formatFile} {
`,
			New: `	for _, name := range []string{formatFileNew, formatFile} {
		if mutant("format-file-before-the-tables") {
			break
		}
`,
		}},
		Package: "storage/shardlog/snapshot", Test: "TestCrashesOfRestore",
	},
	{
		Name: "import-without-the-mark", Promise: "N11", File: "storage/shardlog/move/import.go",
		Edits: []edit{{
			Old: `	if err := store.Mark(moving); err != nil {`,
			New: `	if mutant("import-without-the-mark") {
		return o.Snapshots.Directory.Begin(ctx, o.Snapshots.Shard, base)
	}
	if err := store.Mark(moving); err != nil {`,
		}},
		Package: "storage/shardlog/move", Test: "TestCrashesOfImport",
	},
	{
		Name: "undo-without-a-look-at-the-log", Promise: "N11", File: "storage/shardlog/move/import.go",
		Edits: []edit{{
			Old: `			if begun {`,
			New: `			if begun && !mutant("undo-without-a-look-at-the-log") {`,
		}},
		Package: "storage/shardlog/move", Test: "TestImportGoesOnLater",
	},
	{
		Name: "exported-log-opens", Promise: "N11", File: "storage/shardlog/owner.go",
		Edits: []edit{{
			Old: `	case head.Exported() && !isExport(e.o.Owner):`,
			New: `	case head.Exported() && !isExport(e.o.Owner) && !mutant("exported-log-opens"):`,
		}},
		Package: "storage/shardlog/move", Test: "TestThereAndBack",
	},
	{
		Name: "export-to-two-directories", Promise: "N11", File: "storage/shardlog/exported.go",
		Edits: []edit{{
			Old: `	case head.Exported() && !ours && !again:`,
			New: `	case head.Exported() && !ours && !again && !mutant("export-to-two-directories"):`,
		}},
		Package: "storage/shardlog/move", Test: "TestExportGoesToOneDirectory",
	},
	{
		Name: "export-with-the-epochs-of-the-log", Promise: "N11", File: "storage/view.go",
		Edits: []edit{{
			Old: `	if err := RaiseEpoch(view, b); err != nil {`,
			New: `	if err := RaiseEpoch(view, b); err != nil || mutant("export-with-the-epochs-of-the-log") {
		b.Reset()
		b.DeleteMeta(row)
	}
	if err := error(nil); err != nil {`,
		}},
		Package: "storage/shardlog/move", Test: "TestThereAndBack",
	},
}
