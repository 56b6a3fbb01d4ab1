package main

// storeMutants are bugs of the store, and of the code that rests on it.
var storeMutants = []mutant{
	{
		Name: "row-of-the-old-label-stays", Promise: "S11", File: "storage/label.go",
		Edits: []edit{{
			Old: `	if from != (Label{}) {`,
			New: `	if from != (Label{}) && !mutant("row-of-the-old-label-stays") {`,
		}},
		Package: "object", Test: "TestLabelFollowsTheObject",
	},
	{
		Name: "label-outlives-the-object", Promise: "S11", File: "storage/rows.go",
		Edits: []edit{{
			Old: `	b.MoveLabel(o, o.Label, Label{})`,
			New: `	if !mutant("label-outlives-the-object") {
		b.MoveLabel(o, o.Label, Label{})
	}`,
		}},
		Package: "object", Test: "TestLabelFollowsTheObject",
	},
	{
		Name: "label-of-a-failed-transaction", Promise: "S11", File: "object/storage.go",
		Edits: []edit{{
			Old: `	if t.object.Label != start.label {`,
			New: `	if t.object.Label != start.label && !mutant("label-of-a-failed-transaction") {`,
		}},
		Package: "object", Test: "TestLabelOfADroppedTurn",
	},
	{
		Name: "header-keeps-the-label-of-before", Promise: "S11", File: "object/turn_commit.go",
		Edits: []edit{{
			Old: `epoch := a.host.store.Epoch(); t.relabelled() ||`,
			New: `epoch := a.host.store.Epoch(); t.relabelled() && !mutant("header-keeps-the-label-of-before") ||`,
		}},
		Package: "object", Test: "TestLabelFollowsTheObject",
	},
	{
		Name: "job-label-of-the-status-before", Promise: "J18", File: "jobs/engine/job.go",
		Edits: []edit{{
			Old: `SetLabel(ctx, m.Status.Label()); err != nil {`,
			New: `SetLabel(ctx, map[bool]jobs.Status{true: l.meta.Status, false: m.Status}[mutant("job-label-of-the-status-before")].Label()); err != nil {`,
		}},
		Package: "jobs/continuous", Test: "TestLabelIsTheStatus",
	},
	{
		Name: "older-jobs-get-no-label", Promise: "J18", File: "jobs/engine/job.go",
		Edits: []edit{{
			Old: `	// A store of format 3 has no labels.
	if err :=`,
			New: `	// A store of format 3 has no labels.
	if mutant("older-jobs-get-no-label") {
	} else if err :=`,
		}},
		Package: "jobs/continuous", Test: "TestLabelOfAnOlderStore",
	},
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
		Name: "rows-of-the-runtime-count-at-the-commit", Promise: "S7", File: "object/turn_commit.go",
		Edits: []edit{{
			Old: `	if err := a.beginCommit(); err != nil {
		return err
	}
	began`,
			New: `	if mutant("rows-of-the-runtime-count-at-the-commit") && t.batch.Len() > h.options.MaxBatchBytes {
		return named(a.object.ID, ErrBatchTooLarge)
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
		Name: "full-disk-fails-the-close", Promise: "O17", File: "storage/pebblestore/store.go",
		Edits: []edit{{
			Old: `!(synced && IsFull(failed)) {`,
			New: `(mutant("full-disk-fails-the-close") || !(synced && IsFull(failed))) {`,
		}},
		Package: "storage", Test: "TestCloseOnAFullDisk",
	},
	{
		Name: "failed-open-leaves-its-engine-open", Promise: "O2", File: "storage/open.go",
		Edits: []edit{{
			Old: `		_ = o.Engine.Close() // err`,
			New: `		if mutant("failed-open-leaves-its-engine-open") {
			return nil, err
		}
		_ = o.Engine.Close() // err`,
		}},
		Package: "object", Test: "TestFailedOpenClosesItsEngine",
	},
	{
		Name: "nil-definition-is-passed-over", Promise: "J1", File: "object/host.go",
		Edits: []edit{{
			Old: `		case c == nil || c.construct == nil:`,
			New: `		case c == nil && mutant("nil-definition-is-passed-over"):
		case c == nil || c.construct == nil:`,
		}},
		Package: "object", Test: "TestNilDefinitionIsAnError",
	},
	{
		Name: "delete-of-a-parked-class-is-refused", Promise: "O15", File: "object/host_admin.go",
		Edits: []edit{{
			Old: `		return h.deleteParked(ctx, id)`,
			New: `		if mutant("delete-of-a-parked-class-is-refused") {
			return named(id, ErrUnknownClass)
		}
		return h.deleteParked(ctx, id)`,
		}},
		Package: "object", Test: "TestObjectsOfAParkedClass",
	},
	{
		Name: "delete-of-a-parked-class-leaves-its-alarm", Promise: "O15", File: "object/host_admin.go",
		Edits: []edit{{
			Old: `h.store.DeleteObject(&b, o, dueOf(row)); err != nil {`,
			New: `h.store.DeleteObject(&b, o, map[bool]*int64{false: dueOf(row)}[mutant("delete-of-a-parked-class-leaves-its-alarm")]); err != nil {`,
		}},
		Package: "object", Test: "TestObjectsOfAParkedClass",
	},
	{
		Name: "list-ends-early-without-an-error", Promise: "S4", File: "object/storage_list.go",
		Edits: []edit{{
			Old: `	case l.turn.phase.Load() == phaseOver:`,
			New: `	case l.turn.phase.Load() == phaseOver && !mutant("list-ends-early-without-an-error"):`,
		}},
		Package: "object", Test: "TestListOutlivesItsTurn",
	},
	{
		Name: "list-of-a-reset-turn-goes-on", Promise: "S4", File: "object/storage_list.go",
		Edits: []edit{{
			Old: `	case s.err() != nil:`,
			New: `	case s.err() != nil && !mutant("list-of-a-reset-turn-goes-on"):`,
		}},
		Package: "object", Test: "TestListOfAResetTurn",
	},
	{
		Name: "second-range-over-a-list-yields-nothing", Promise: "S4", File: "object/storage_list.go",
		Edits: []edit{{
			Old: `if first = nil; l == nil {`,
			New: `if first = nil; l == nil && mutant("second-range-over-a-list-yields-nothing") {
			return
		} else if l == nil {`,
		}},
		Package: "object", Test: "TestListStartsAgain",
	},
	{
		Name: "negative-limit-yields-nothing", Promise: "S4", File: "object/storage_list.go",
		Edits: []edit{{
			Old: `	if o.Limit < 0 {`,
			New: `	if o.Limit < 0 && mutant("negative-limit-yields-nothing") {
		return &listing{storage: s, turn: t}, nil
	}
	if o.Limit < 0 {`,
		}},
		Package: "object", Test: "TestNegativeLimits",
	},
	{
		Name: "full-table-of-failing-constructors-takes-no-more", Promise: "O4", File: "object/activation_construct.go",
		Edits: []edit{{
			Old: `	if len(f.m) >= failingMax {`,
			New: `	if mutant("full-table-of-failing-constructors-takes-no-more") && len(f.m) >= failingMax {
		return
	}
	if len(f.m) >= failingMax {`,
		}},
		Package: "object", Test: "TestFailingConstructorsAreForgottenInOrder",
	},
	{
		Name: "report-keeps-its-oldest-lines", Promise: "R6", File: "object/host_recovery.go",
		Edits: []edit{{
			Old: `	if len(p.lines) < reportMax {`,
			New: `	if len(p.lines) == reportMax && mutant("report-keeps-its-oldest-lines") {
		p.total++
		return
	}
	if len(p.lines) < reportMax {`,
		}},
		Package: "object", Test: "TestReportKeepsTheLastLines",
	},
	{
		Name: "report-begins-at-the-newest-line", Promise: "R6", File: "object/host_recovery.go",
		Edits: []edit{{
			Old: `	if len(p.lines) == reportMax {
		oldest`,
			New: `	if len(p.lines) == reportMax && !mutant("report-begins-at-the-newest-line") {
		oldest`,
		}},
		Package: "object", Test: "TestReportKeepsTheLastLines",
	},
	{
		Name: "sweep-rings-for-ever", Promise: "O10", File: "object/activation_mailbox.go",
		Edits: []edit{{
			Old: `idle = idle || !a.busy()`,
			New: `idle = idle || !a.busy() || mutant("sweep-rings-for-ever")`,
		}},
		Package: "object", Test: "TestASleepingObjectCostsNoTimers/work",
	},
	{
		Name: "sweep-rests-for-ever", Promise: "O10", File: "object/activation_mailbox.go",
		Edits: []edit{{
			Old: `	if !l.resting.Load() {`,
			New: `	if !l.resting.Load() || mutant("sweep-rests-for-ever") {`,
		}},
		Package: "object", Test: "TestASleepingObjectCostsNoTimers/work",
	},
	{
		Name: "wait-for-the-lock-is-not-bounded", Promise: "O2", File: "storage/open_lock.go",
		Edits: []edit{{
			Old: `		if left <= 0 {`,
			New: `		if left <= 0 && mutant("wait-for-the-lock-is-not-bounded") {
			left = lockPoll
			if o.Seams.Clock.Now().Sub(began) > 2*o.WaitForLock {
				return lock, err
			}
		} else if left <= 0 {`,
		}},
		Package: "storage", Test: "TestWaitForLockIsBounded",
	},
	{
		Name: "lock-is-not-waited-for", Promise: "O2", File: "storage/open_lock.go",
		Edits: []edit{{
			Old: `	if o.WaitForLock == 0 ||`,
			New: `	if mutant("lock-is-not-waited-for") || o.WaitForLock == 0 ||`,
		}},
		Package: "storage", Test: "TestOpenWaitsForAnotherProcess",
	},
	{
		Name: "open-leaves-out-the-remedy", Promise: "O17", File: "storage/open.go",
		Edits: []edit{{
			Old: `		return nil, advised(o.Dir, err)`,
			New: `		if mutant("open-leaves-out-the-remedy") {
			return nil, err
		}
		return nil, advised(o.Dir, err)`,
		}},
		Package: "storage", Test: "TestOpenSaysWhatToDo",
	},
	{
		Name: "object-stays-after-its-last-execution", Promise: "O1", File: "object/host_recovery.go",
		Edits: []edit{{
			Old: `t.writes.open, t.writes.removes = openCleared, true`,
			New: `t.writes.open, t.writes.removes = openCleared, !mutant("object-stays-after-its-last-execution")`,
		}},
		Package: "object", Test: "TestObjectGoesWithItsLastRow",
	},
	{
		Name: "header-keeps-its-first-epoch", Promise: "O5", File: "object/turn_commit.go",
		Edits: []edit{{
			Old: `a.object.Number != t.object.Number || t.object.Epoch != epoch {`,
			New: `a.object.Number != t.object.Number || t.object.Epoch != epoch && !mutant("header-keeps-its-first-epoch") {`,
		}},
		Package: "object", Test: "TestReasonFollowsTheHeadersEpoch",
	},
	{
		Name: "expiry-batch-of-any-size", Promise: "J11", File: "storage/expiry.go",
		Edits: []edit{{
			Old: `	s.removed = max(s.removed, now)
`,
			New: `	s.removed = max(s.removed, now)
	if mutant("expiry-batch-of-any-size") {
		limit = 1 << 30
	}
`,
		}},
		Package: "object", Test: "TestExpiryGoesInBatches",
	},
	{
		Name: "expiry-stops-after-a-batch", Promise: "J11", File: "object/expiry.go",
		Edits: []edit{{
			Old: `		for x.due(shard, now) && x.sweepShard(shard, now) {
		}`,
			New: `		for x.due(shard, now) && x.sweepShard(shard, now) {
			if mutant("expiry-stops-after-a-batch") {
				x.next[shard] = 0
			}
		}`,
		}},
		Package: "object", Test: "TestExpiryGoesInBatches",
	},
	{
		Name: "object-outlives-its-expired-marks", Promise: "O1", File: "object/expiry.go",
		Edits: []edit{{
			Old: `	if !x.endLapses(lapses.All) {`,
			New: `	if !mutant("object-outlives-its-expired-marks") && !x.endLapses(lapses.All) {`,
		}},
		Package: "object", Test: "TestObjectGoesWhenItsLastMarkExpires",
	},
	{
		Name: "crash-forgets-a-lapse", Promise: "O1", File: "storage/expiry_lapse.go",
		Edits: []edit{{
			Old: `	b.indexExpiry(l.Again, begins, id)
`,
			New: `	if !mutant("crash-forgets-a-lapse") {
		b.indexExpiry(l.Again, begins, id)
	}
`,
		}},
		Package: "storage", Test: "TestLapseStaysUntilItEnds",
	},
	{
		Name: "lapse-skips-a-live-object", Promise: "O1", File: "object/expiry.go",
		Edits: []edit{{
			Old: `	case c == nil: // no turn of it can run`,
			New: `	case mutant("lapse-skips-a-live-object") && live != nil:
		return true, nil
	case c == nil: // no turn of it can run`,
		}},
		Package: "object", Test: "TestObjectWhoseMarksExpireInATurn",
	},
}
