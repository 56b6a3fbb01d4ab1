package main

var objectMutants = []mutant{
	{
		Name: "await-holds-up-shutdown", Promise: "O14", File: "object/host_lifecycle.go",
		Edits: []edit{{
			Old: `	h.awaits.end()
`,
			New: `	if !mutant("await-holds-up-shutdown") {
		h.awaits.end()
	}
`,
		}},
		Package: "object", Test: "TestShutdownEndsAwait",
	},
	{
		Number: 3, Name: "mark-in-a-second-commit", Promise: "O16", File: "object/answer.go",
		Edits: []edit{{
			Old: `	ttl := cmp.Or(r.ttl, answerTTL)
`,
			New: `	if mutant("mark-in-a-second-commit") {
		if err := t.commit(false); err != nil {
			return err
		}
	}
	ttl := cmp.Or(r.ttl, answerTTL)
`,
		}},
		Package: "object", Test: "TestCrashDeposits/map",
	},
	{
		Number: 6, Name: "alarm-deleted-at-dispatch", Promise: "A4", File: "object/alarm.go",
		Edits: []edit{{
			Old: `	handler, ok := a.instance.(AlarmHandler)
`,
			New: `	if mutant("alarm-deleted-at-dispatch") {
		t.firing = nil
		t.write()
		t.writes.alarmSet, t.writes.removes = true, true
		if err := t.commit(false); err != nil {
			return err
		}
	}
	handler, ok := a.instance.(AlarmHandler)
`,
		}},
		Package: "object", Test: "TestCrashAlarm/map",
	},
	{
		Number: 12, Name: "reply-before-sync", Promise: "O7", File: "object/call.go",
		Edits: []edit{{
			Old: `	r.gated = !r.unconfirmed`,
			New: `	r.gated = !r.unconfirmed && !mutant("reply-before-sync")`,
		}, {
			Old: `	if e := h.hold(ctx, r); e != nil {`,
			New: `	if mutant("reply-before-sync") {
	} else if e := h.hold(ctx, r); e != nil {`,
		}},
		Package: "object", Test: "TestCrashDeposits/map",
	},
	{
		Number: 13, Name: "dedup-in-memory-only", Promise: "O16", File: "object/answer.go",
		Edits: []edit{{
			Old: `	if first := a.answers.lent[key]; first != nil {`,
			New: `	if kept, found := remembered.Load(memory{a, key}); found {
		return op.decodeResult(h.options.Codec, kept.([]byte))
	}
	if first := a.answers.lent[key]; first != nil {`,
		}, {
			Old: `		return fmt.Errorf("%s: encode the answer of %s: %w", a.object.ID, op.methodName(), err)
	}
`,
			New: `		return fmt.Errorf("%s: encode the answer of %s: %w", a.object.ID, op.methodName(), err)
	}
	if mutant("dedup-in-memory-only") {
		remembered.Store(memory{a, key}, answer)
		return nil
	}
`,
		}, {
			Old: `// mark writes an expiring mark, in place of the one under key if there is one.
`,
			New: `type memory struct {
	a   *activation
	key string
}

var remembered sync.Map // of memory

// mark writes an expiring mark, in place of the one under key if there is one.
`,
		}, {
			Old: `	"fmt"
`,
			New: `	"fmt"
	"sync"
`,
		}},
		Package: "object", Test: "TestCrashDeposits/map",
	},
	{
		Number: 14, Name: "reply-before-its-commit", Promise: "O7", File: "object/turn.go",
		Edits: []edit{{
			Old: `	r.err = a.perform(t, r)
	owns := t.end()
	r.ticket = a.upTo(r)
`,
			New: `	before := a.last.Load()
	r.err = a.perform(t, r)
	owns := t.end()
	r.ticket = a.upTo(r)
	if mutant("reply-before-its-commit") {
		r.ticket = storage.Ticket(before)
	}
`,
		}},
		Package: "object", Test: "TestCrashDeposits/map",
	},
	{
		Name: "alarm-generation-not-checked", Promise: "A5", File: "object/alarm.go",
		Edits: []edit{{
			Old: `	if row == nil || row.Gen != f.gen {
		f.settled`,
			New: `	if row == nil || row.Gen != f.gen && !mutant("alarm-generation-not-checked") {
		f.settled`,
		}},
		Package: "object", Test: "TestReplacedAlarmDoesNothing",
	},
	{
		Name: "answer-outlives-its-time", Promise: "O16", File: "object/answer_marks.go",
		Edits: []edit{{
			Old: `h.seams.Clock.Now().UnixNano() < expires}`,
			New: `mutant("answer-outlives-its-time") || h.seams.Clock.Now().UnixNano() < expires}`,
		}},
		Package: "object", Test: "TestIdempotencyKey",
	},
	{
		Name: "old-mark-left-in-its-bucket", Promise: "O16", File: "object/answer.go",
		Edits: []edit{{
			Old: `	if old != 0 && old != removal {`,
			New: `	if old != 0 && old != removal && !mutant("old-mark-left-in-its-bucket") {`,
		}},
		Package: "object", Test: "TestMarkSetAgainForAShorterTime",
	},
	{
		Name: "bucket-indexed-before-the-commit", Promise: "O16", File: "object/answer.go",
		Edits: []edit{{
			Old: `		k.indexing = removal
`,
			New: `		k.indexing = removal
		if mutant("bucket-indexed-before-the-commit") {
			known.setIndexed(removal)
		}
`,
		}},
		Package: "object", Test: "TestMarkAfterATurnThatFailed",
	},
	{
		Name: "filter-misses-a-new-mark", Promise: "D2", File: "object/answer_marks.go",
		Edits: []edit{{
			Old: `	if k := t.answers(); t.holds() && k.filter != nil {`,
			New: `	if k := t.answers(); t.holds() && k.filter != nil && !mutant("filter-misses-a-new-mark") {`,
		}},
		Package: "jobs/debounce", Test: "TestCrashRepeatedAdd/map",
	},
	{
		Name: "filter-used-before-all-marks-are-read", Promise: "O16", File: "object/answer_marks.go",
		Edits: []edit{{
			Old: `	return f.loaded && !f.full`,
			New: `	return (f.loaded || mutant("filter-used-before-all-marks-are-read")) && !f.full`,
		}},
		Package: "object", Test: "TestManyMarksAfterARestart",
	},
	{
		Name: "evicted-while-lent-out", Promise: "O8", File: "object/activation_mailbox.go",
		Edits: []edit{{
			Old: ` || a.holds.Load() > 0 {
		a.mu.Unlock()
		return
`,
			New: ` || a.holds.Load() > 0 && !mutant("evicted-while-lent-out") {
		a.mu.Unlock()
		return
`,
		}, {
			Old: `	return a.running || a.head != nil || a.holds.Load() > 0
`,
			New: `	return a.running || a.head != nil || a.holds.Load() > 0 && !mutant("evicted-while-lent-out")
`,
		}},
		Package: "object", Test: "TestReleaseLendsTheTurn",
	},
	{
		Name: "eviction-forgets-the-ticket", Promise: "O7", File: "object/activation.go",
		Edits: []edit{{
			Old: `	raise(&c.host.departed, a.last.Load())
`,
			New: `	if !mutant("eviction-forgets-the-ticket") {
		raise(&c.host.departed, a.last.Load())
	}
`,
		}},
		Package: "object", Test: "TestGateAfterEviction",
	},
	{
		Name: "failed-turn-keeps-its-memory", Promise: "O6", File: "object/turn_commit.go",
		Edits: []edit{{
			Old: `	if wrote || errors.Is(err, ErrPanic) {`,
			New: `	if (wrote || errors.Is(err, ErrPanic)) && !mutant("failed-turn-keeps-its-memory") {`,
		}},
		Package: "object", Test: "TestTurnIsOneCommit",
	},
	{
		Name: "fenced-turn-commits", Promise: "O15", File: "object/turn_commit.go",
		Edits: []edit{{
			Old: `	if a.gone {
		return named(a.object.ID, ErrReset)
	}
	a.writing = true`,
			New: `	if a.gone && !mutant("fenced-turn-commits") {
		return named(a.object.ID, ErrReset)
	}
	a.writing = true`,
		}},
		Package: "object", Test: "TestDeleteWhileTheAlarmsHandlerRuns",
	},
	{
		Name: "put-batch-leaves-one-out", Promise: "O6", File: "object/storage.go",
		Edits: []edit{{
			Old: `	for i, e := range entries {
		t.put(e.Key, values[i])
	}
`,
			New: `	for i, e := range entries {
		if mutant("put-batch-leaves-one-out") && i > 0 {
			break
		}
		t.put(e.Key, values[i])
	}
`,
		}},
		Package: "object", Test: "TestCrashDeposits/map",
	},
	{
		Name: "work-starts-before-durable", Promise: "O7", File: "object/work.go",
		Edits: []edit{{
			Old: `	h.afterDurable.Do(h.store.Seen(storage.Ticket(a.last.Load())), func(err error) {
`,
			New: `	after := h.store.Seen(storage.Ticket(a.last.Load()))
	if mutant("work-starts-before-durable") {
		after = 0
	}
	h.afterDurable.Do(after, func(err error) {
`,
		}},
		Package: "object", Test: "TestNoReplyBeforeTheCommitIsDurable",
	},
	{
		Name: "failed-handler-starts-its-work", Promise: "O6", File: "object/turn_commit.go",
		Edits: []edit{{
			Old: `	t.writes, t.after = writes{}, nil
`,
			New: `	t.writes = writes{}
	if !mutant("failed-handler-starts-its-work") {
		t.after = nil
	}
`,
		}},
		Package: "object", Test: "TestWorkOfAHandlerThatFails",
	},
	{
		Name: "suspects-fly-together", Promise: "A8", File: "object/alarm_flight.go",
		Edits: []edit{{
			Old: `		case h.flightLog.suspects.some.Load() && h.holdAlarm(e):`,
			New: `		case !mutant("suspects-fly-together") && h.holdAlarm(e):`,
		}},
		Package: "object", Test: "TestSlowAlarmBesideOneThatKills",
	},
	{
		Name: "failure-keeps-the-count-of-crashes", Promise: "A8", File: "object/alarm.go",
		Edits: []edit{{
			Old: `	row.Crashes, row.CutEpoch, row.OwnersLost = 0, 0, 0
`,
			New: `	if !mutant("failure-keeps-the-count-of-crashes") {
		row.Crashes, row.CutEpoch, row.OwnersLost = 0, 0, 0
	}
`,
		}},
		Package: "object", Test: "TestFailureEndsTheCountOfCrashes",
	},
	{
		Name: "circle-never-forgotten", Promise: "O8", File: "object/call_waits.go",
		Edits: []edit{{
			Old: `	if len(c.on) > 0 {
		return`,
			New: `	if len(c.on) > 0 || mutant("circle-never-forgotten") {
		return`,
		}},
		Package: "object", Test: "TestWaysThatAreNoCircle",
	},
	{
		Name: "eviction-ends-with-the-last-object", Promise: "O10", File: "object/activation_mailbox.go",
		Edits: []edit{{
			Old: `	l.sweeping, l.timer = true, nil
`,
			New: `	l.sweeping = true
	if !mutant("eviction-ends-with-the-last-object") {
		l.timer = nil
	}
`,
		}},
		Package: "object", Test: "TestIdleObjectsLeaveMemoryAgain",
	},
	{
		Name: "later-unconfirmed-commits-stay-unsynced", Promise: "S8", File: "object/call.go",
		Edits: []edit{{
			Old: `		l.planned.Store(false)
`,
			New: `		if !mutant("later-unconfirmed-commits-stay-unsynced") {
			l.planned.Store(false)
		}
`,
		}},
		Package: "object", Test: "TestUnconfirmed",
	}, {
		Name: "unconfirmed-do-waits", Promise: "S8", File: "object/work.go",
		Edits: []edit{{
			Old: `	if r.init(s.act.object.ID, doOp(fn), opts); r.key != "" {
`,
			New: `	if mutant("unconfirmed-do-waits") {
		opts = nil
	}
	if r.init(s.act.object.ID, doOp(fn), opts); r.key != "" {
`,
		}},
		Package: "object", Test: "TestUnconfirmedDo",
	},
}
