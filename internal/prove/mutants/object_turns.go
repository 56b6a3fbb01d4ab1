package main

// turnMutants are bugs of calls and turns.
var turnMutants = []mutant{
	{
		Name: "lent-turn-is-not-in-the-graph", Promise: "O8", File: "object/call.go",
		Edits: []edit{{
			Old: `	if t == nil {
		return h.outside(ctx, c, r)`,
			New: `	if t == nil || mutant("lent-turn-is-not-in-the-graph") {
		return h.outside(ctx, c, r)`,
		}},
		Package: "object", Test: "TestCirclesThroughLentTurns",
	},
	{
		Name: "fingerprint-is-not-compared", Promise: "O16", File: "object/answer.go",
		Edits: []edit{{
			Old: `	if r.print == 0 {
		return nil
	}
	stored`,
			New: `	if r.print == 0 || mutant("fingerprint-is-not-compared") {
		return nil
	}
	stored`,
		}},
		Package: "object", Test: "TestCrashKeyReused",
	},
	{
		Name: "fingerprint-of-a-failed-call-stays", Promise: "O16", File: "object/answer.go",
		Edits: []edit{{
			Old: `	a.answers.key = key
`,
			New: `	if mutant("fingerprint-of-a-failed-call-stays") {
		if err := a.sameArgument(t, r, op); err != nil {
			return err
		}
		if r.print != 0 {
			if err := t.mark(printKey(op, r.key), binary.BigEndian.AppendUint64(nil, r.print), 2*cmp.Or(r.ttl, answerTTL)); err != nil {
				return err
			}
		}
	}
	a.answers.key = key
`,
		}},
		Package: "object", Test: "TestKeyReusedWhileTheFirstRuns",
	},
	{
		Name: "fingerprint-counts-spaces", Promise: "O16", File: "object/answer.go",
		Edits: []edit{{
			Old: `	if !json.Valid(arg) {`,
			New: `	if mutant("fingerprint-counts-spaces") || !json.Valid(arg) {`,
		}},
		Package: "object", Test: "TestKeyReused",
	},
	{
		Name: "repeat-is-not-in-the-graph", Promise: "O8", File: "object/answer.go",
		Edits: []edit{{
			Old: `		if err := h.waits.begin(t, a, on); err != nil {
			return err
		}
`,
			New: `		if mutant("repeat-is-not-in-the-graph") {
			return h.seams.Executor.Wait(ctx, first.back)
		}
		if err := h.waits.begin(t, a, on); err != nil {
			return err
		}
`,
		}},
		Package: "object", Test: "TestCircleThroughARepeat",
	},
	{
		Name: "lent-turn-needs-no-object", Promise: "O8", File: "object/call_waits.go",
		Edits: []edit{{
			Old: `t.turn.phase.Load() == phaseLost {`,
			New: `t.turn.phase.Load() == phaseLost || t.turn.phase.Load() == phaseLent && mutant("lent-turn-needs-no-object") {`,
		}},
		Package: "object", Test: "TestALentTurnNeedsItsObjectBack",
	},
	{
		Name: "stuck-turn-told-at-each-look", Promise: "O8", File: "object/host_holdwatch.go",
		Edits: []edit{{
			Old: `held.told = true`,
			New: `held.told = !mutant("stuck-turn-told-at-each-look")`,
		}},
		Package: "object", Test: "TestTurnHeldTooLong",
	},
	{
		Name: "turns-in-a-row-taken-for-one", Promise: "O8", File: "object/host_holdwatch.go",
		Edits: []edit{{
			Old: `if !ok || held.turn != turns {`,
			New: `if !ok || held.turn != turns && !mutant("turns-in-a-row-taken-for-one") {`,
		}},
		Package: "object", Test: "TestHeldTurnsAreToldApart",
	},
	{
		Name: "hold-watch-never-wakes-again", Promise: "O8", File: "object/host_holdwatch.go",
		Edits: []edit{{
			Old: `		w.awake.Store(false)
`,
			New: `		w.awake.Store(mutant("hold-watch-never-wakes-again"))
`,
		}},
		Package: "object", Test: "TestHoldWatchRests",
	},
	{
		Name: "overload-blames-the-mailbox", Promise: "O11", File: "object/activation_mailbox.go",
		Edits: []edit{{
			Old: `ErrOverloaded, age.Round(time.Millisecond), a.holder())`,
			New: `ErrOverloaded, age.Round(time.Millisecond), blame(a))`,
		}, {
			Old: `// admit refuses the newest`,
			New: `func blame(a *activation) string {
	if mutant("overload-blames-the-mailbox") {
		return "in a mailbox that is full"
	}
	return a.holder()
}

// admit refuses the newest`,
		}},
		Package: "object", Test: "TestOverloadNamesTheTurn",
	},
	{
		Name: "failed-block-refuses-no-waiting-call", Promise: "O4", File: "object/turn_sections.go",
		Edits: []edit{{
			Old: `	if !notTheCodes(err) {
		_`,
			New: `	if !notTheCodes(err) && !mutant("failed-block-refuses-no-waiting-call") {
		_`,
		}},
		Package: "object", Test: "TestCallsBehindABlockThatFails",
	},
	{
		Name: "waiting-call-begins-after-a-shutdown", Promise: "O14", File: "object/turn.go",
		Edits: []edit{{
			Old: `	if h.lifecycle.cutOff() {`,
			New: `	if h.lifecycle.cutOff() && !mutant("waiting-call-begins-after-a-shutdown") {`,
		}},
		Package: "object", Test: "TestShutdownBehindASlowConstructor",
	},
	{
		Name: "release-keeps-the-object-of-its-turn", Promise: "O8", File: "object/turn_sections.go",
		Edits: []edit{{
			Old: `		a.yield()
		return s.inTurn(t)
`,
			New: `		if !mutant("release-keeps-the-object-of-its-turn") {
			a.yield()
		}
		return s.inTurn(t)
`,
		}},
		Package: "object", Test: "TestReleaseThatOutlivesItsTurnGivesTheObjectOn",
	},
	{
		Name: "half-a-transaction-is-committed", Promise: "O6", File: "object/turn.go",
		Edits: []edit{{
			Old: `	case t.txs > 0:`,
			New: `	case t.txs > 0 && !mutant("half-a-transaction-is-committed"):`,
		}},
		Package: "object", Test: "TestGoroutinesThatOutliveTheirTurn",
	},
	{
		Name: "cause-hides-the-deadline", Promise: "O12", File: "seam/cause.go",
		Edits: []edit{{
			Old: `	case errors.Is(cause, err):`,
			New: `	case errors.Is(cause, err) || mutant("cause-hides-the-deadline"):`,
		}},
		Package: "object", Test: "TestErrorsMatchCauseAndContext",
	},
	{
		Name: "deadline-hides-its-cause", Promise: "O12", File: "seam/deadline.go",
		Edits: []edit{{
			Old: `	if c.plain() {
		return c.parent.Value(key)`,
			New: `	if c.plain() || mutant("deadline-hides-its-cause") {
		return c.parent.Value(key)`,
		}},
		Package: "seam", Test: "TestDeadlineEnds",
	},
	{
		Name: "cancel-leaves-a-goroutine-that-waits", Promise: "O20", File: "seam/deadline.go",
		Edits: []edit{{
			Old: `	if c.waiter != nil {
		c.waiter.Reset(0)`,
			New: `	if c.waiter != nil && !mutant("cancel-leaves-a-goroutine-that-waits") {
		c.waiter.Reset(0)`,
		}},
		Package: "seam", Test: "TestDeadlineEndsWaits",
	},
	{
		Name: "goexit-keeps-the-object", Promise: "O6", File: "object/turn.go",
		Edits: []edit{{
			Old: `			if owns {
				a.yield()`,
			New: `			if owns && !mutant("goexit-keeps-the-object") {
				a.yield()`,
		}},
		Package: "object", Test: "TestGoexitServesTheOthers",
	},
	{
		Name: "watch-leaves-its-place", Promise: "O1", File: "object/internal/tap/listener.go",
		Edits: []edit{{
			Old: `if t.listeners == 0 && t != &h.all {`,
			New: `if t.listeners == 0 && t != &h.all && !mutant("watch-leaves-its-place") {`,
		}},
		Package: "object", Test: "TestWatchLeavesNothingBehind",
	},
	{
		Name: "inspect-before-durable", Promise: "O7", File: "object/reader.go",
		Edits: []edit{{
			Old: `	answer, err := look(NewReader(h.store))
	if err == nil {`,
			New: `	answer, err := look(NewReader(h.store))
	if err == nil && !mutant("inspect-before-durable") {`,
		}},
		Package: "object", Test: "TestLooksWaitForTheDisk",
	},
	{
		Name: "dead-store-answers-from-memory", Promise: "O13", File: "object/state.go",
		Edits: []edit{{
			Old: `	if err == nil {
		err = h.store.Err()`,
			New: `	if err == nil && !mutant("dead-store-answers-from-memory") {
		err = h.store.Err()`,
		}},
		Package: "object", Test: "TestReadsOfADeadStore",
	},
	{
		Name: "unconfirmed-outruns-the-disk", Promise: "S8", File: "object/turn_commit.go",
		Edits: []edit{{
			Old: `	if h.store.Congested() {`,
			New: `	if h.store.Congested() && !mutant("unconfirmed-outruns-the-disk") {`,
		}},
		Package: "object", Test: "TestUnconfirmedCallersWaitForAFullPipeline",
	},
	{
		Name: "deleted-object-keeps-its-reason", Promise: "O5", File: "object/activation_construct.go",
		Edits: []edit{{
			Old: `		case a.object.Number == 0: // it was deleted meanwhile`,
			New: `		case a.object.Number == 0 && !mutant("deleted-object-keeps-its-reason"):`,
		}},
		Package: "object", Test: "TestReasonAfterAPurge",
	},
	{
		Name: "shared-part-of-a-slice-not-seen", Promise: "O3", File: "object/internal/sharing/sharing.go",
		Edits: []edit{{
			Old: `		if first < g.end && g.first < first+size {`,
			New: `		if first == g.first || first < g.end && g.first < first+size && !mutant("shared-part-of-a-slice-not-seen") {`,
		}},
		Package: "harness", Test: "TestSharedMemoryIsFound",
	},
	{
		Name: "block-needs-the-draft-of-its-turn", Promise: "O9", File: "object/turn_sections.go",
		Edits: []edit{{
			Old: `	a := state.act
	clock`,
			New: `	a := state.act
	if mutant("block-needs-the-draft-of-its-turn") {
		a = t.act
	}
	clock`,
		}},
		Package: "object", Test: "TestBlockAtTheReturnOfItsHandler",
	},
	{
		Name: "caller-leaves-a-turn-that-has-failed", Promise: "O9", File: "object/turn.go",
		Edits: []edit{{
			Old: `		r.failing()
`,
			New: `		if !mutant("caller-leaves-a-turn-that-has-failed") {
			r.failing()
		}
`,
		}},
		Package: "object", Test: "TestDoThatEndsItsOwnContext",
	},
}
