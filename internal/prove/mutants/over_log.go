package main

// overLogMutants are bugs of callers, reads and work over a log that is silent, or that another process has taken over.
var overLogMutants = []mutant{
	{
		Name: "stale-read", Promise: "O7", File: "storage/durable.go",
		Edits: []edit{{
			Old: `	if s.fenced == nil && p.durable.Load() == p.began.Load() {`,
			New: `	if (s.fenced == nil || mutant("stale-read")) && p.durable.Load() == p.began.Load() {`,
		}, {
			Old: `	if s.fenced == nil {
		return t
	}`,
			New: `	if s.fenced == nil || mutant("stale-read") {
		return t
	}`,
		}},
		Package: "internal/prove/linearize", Test: "TestTakeovers",
	},
	{
		Name: "read-confirmed-by-a-sync-before-it", Promise: "O7", File: "storage/durable.go",
		Edits: []edit{{
			Old: `	p.began.Add(1)
	return p.applied(0)`,
			New: `	if mutant("read-confirmed-by-a-sync-before-it") {
		return Ticket(p.last.Load())
	}
	p.began.Add(1)
	return p.applied(0)`,
		}},
		Package: "storage", Test: "TestReaderWaitsForASyncAfterItsRead",
	},
	{
		Name: "unknown-taken-for-stored", Promise: "O7", File: "storage/durable_fenced.go",
		Edits: []edit{{
			Old: `		if f.unknown {
			return ErrUnconfirmed
		}`,
			New: `		if f.unknown && mutant("unknown-taken-for-stored") {
			return nil
		}
		if f.unknown {
			return ErrUnconfirmed
		}`,
		}},
		Package: "storage", Test: "TestCallersLeaveASilentLog",
	},
	{
		Name: "caller-leaves-a-log-too-soon", Promise: "O7", File: "storage/durable_fenced.go",
		Edits: []edit{{
			Old: `p.looks-f.since <= unknownLooks {`,
			New: `(p.looks-f.since <= unknownLooks && !(mutant("caller-leaves-a-log-too-soon") && p.looks-f.since == unknownLooks)) {`,
		}},
		Package: "storage", Test: "TestCallersLeaveASilentLog",
	},
	{
		Name: "full-log-takes-commits", Promise: "O17", File: "storage/space.go",
		Edits: []edit{{
			Old: `	if s.fenced != nil {
		if err := s.fenced.Full(); err != nil {`,
			New: `	if s.fenced != nil && !mutant("full-log-takes-commits") {
		if err := s.fenced.Full(); err != nil {`,
		}},
		Package: "storage", Test: "TestFullLogRefusesCommits",
	},
	{
		Name: "go-without-seen", Promise: "O9", File: "object/work.go",
		Edits: []edit{{
			Old: `	h.lifecycle.busy.Add(int64(len(routines)))
`,
			New: `	h.lifecycle.busy.Add(int64(len(routines)))
	if h.store.Durable(storage.Ticket(a.last.Load())) && mutant("go-without-seen") {
		h.crew.Add(h.flightLog.suspects.holdRoutines(routines)...)
		return
	}
`,
		}},
		Package: "object", Test: "TestReplacedHostIsMute",
	},
	{
		Name: "release-without-seen", Promise: "O8", File: "object/state.go",
		Edits: []edit{{
			Old: `	return h.storageError(s.act.object.ID, h.store.WaitFollowed(`,
			New: `	if mutant("release-without-seen") {
		return h.storageError(s.act.object.ID, h.store.WaitDurable(storage.Ticket(s.act.last.Load())))
	}
	return h.storageError(s.act.object.ID, h.store.WaitFollowed(`,
		}},
		Package: "object", Test: "TestReplacedHostIsMute",
	},
	{
		Name: "commit-of-another-is-known", Promise: "O12", File: "object/call.go",
		Edits: []edit{{
			Old: `	case h.store.OverLog() && (committed || h.calledOthers(r)):`,
			New: `	case h.store.OverLog() && (committed || h.calledOthers(r) && !mutant("commit-of-another-is-known")):`,
		}},
		Package: "object", Test: "TestReplacedHostIsMute",
	},
	{
		Name: "refusal-without-seen", Promise: "O7", File: "object/activation.go",
		Edits: []edit{{
			Old: `			if r.gated {
				r.ticket =`,
			New: `			if r.gated && !mutant("refusal-without-seen") {
				r.ticket =`,
		}},
		Package: "object", Test: "TestRefusedCallsOfAReplacedHost",
	},
	{
		Name: "suspension-cuts-off-nothing", Promise: "N5", File: "object/suspension.go",
		Edits: []edit{{
			Old: `		r.Cancel(ErrSuspended)
`,
			New: `		if mutant("suspension-cuts-off-nothing") {
			continue
		}
		r.Cancel(ErrSuspended)
`,
		}},
		Package: "object", Test: "TestSuspendsAfterTwoSeconds",
	},
	{
		Name: "suspension-begins-work", Promise: "N5", File: "object/suspension.go",
		Edits: []edit{{
			Old: `	off, closed := s.off.Load(), s.closed
`,
			New: `	off, closed := s.off.Load() && !mutant("suspension-begins-work"), s.closed
`,
		}},
		Package: "object", Test: "TestStaleAnswerResumesNothing",
	},
	{
		Name: "suspension-has-no-end", Promise: "N5", File: "object/suspension.go",
		Edits: []edit{{
			Old: `	default:
		s.resume()
`,
			New: `	case mutant("suspension-has-no-end"):
	default:
		s.resume()
`,
		}},
		Package: "object", Test: "TestNothingBeginsInASuspendedHost",
	},
	{
		Name: "message-begins-in-a-suspended-host", Promise: "N5", File: "object/turn.go",
		Edits: []edit{{
			Old: `if op.message.deferred() {`,
			New: `if !mutant("message-begins-in-a-suspended-host") && op.message.deferred() {`,
		}},
		Package: "object", Test: "TestMessageOfASuspendedHost",
	},
	{
		Name: "messages-wait-for-ever-after-a-suspension", Promise: "N5", File: "object/suspension.go",
		Edits: []edit{{
			Old: `	for _, step := range then {
		step()
`,
			New: `	for _, step := range then {
		if mutant("messages-wait-for-ever-after-a-suspension") {
			break
		}
		step()
`,
		}},
		Package: "object", Test: "TestMessagesOverASlowLog",
	},
	{
		Name: "suspension-ends-before-a-receiver-pauses", Promise: "N5", File: "object/suspension.go",
		Edits: []edit{{
			Old: `	if !s.after(func() { x.resume(to) }) {`,
			New: `	if !s.after(func() { x.resume(to) }) && !mutant("suspension-ends-before-a-receiver-pauses") {`,
		}},
		Package: "object", Test: "TestHostGoesOnWhileAMessageIsKeptBack",
	},
	{
		Name: "suspended-delayed-message-is-postponed", Promise: "N5", File: "object/message_turn.go",
		Edits: []edit{{
			Old: `	case x.host.suspension.after(func() { x.retry(e) }):
`,
			New: `	case !mutant("suspended-delayed-message-is-postponed") && x.host.suspension.after(func() { x.retry(e) }):
`,
		}},
		Package: "object", Test: "TestDelayedMessagesOfASuspendedHost",
	},
	{
		Name: "suspension-ends-a-trial", Promise: "A8", File: "object/message_flight.go",
		Edits: []edit{{
			Old: ` && !m.waits)`,
			New: ` && (!m.waits || mutant("suspension-ends-a-trial")))`,
		}},
		Package: "object", Test: "TestSuspectOnTrialOverASuspension",
	},
	{
		Name: "suspension-withdraws-what-has-begun", Promise: "M3", File: "object/internal/inbox/pause.go",
		Edits: []edit{{
			Old: `func(u *Message) bool { return u.Begun }`,
			New: `func(u *Message) bool { return u.Begun && !mutant("suspension-withdraws-what-has-begun") }`,
		}},
		Package: "object", Test: "TestLentTurnOverASuspension",
	},
	{
		Name: "suspension-counts-as-a-pause-in-a-row", Promise: "M3", File: "object/internal/inbox/pause.go",
		Edits: []edit{{
			Old: `	b.reason, b.drains = reason, true
	before := b.paused
`,
			New: `	b.reason, b.drains = reason, true
	if mutant("suspension-counts-as-a-pause-in-a-row") && len(under) < len(b.under) {
		b.pauses++
	}
	before := b.paused
`,
		}},
		Package: "object/internal/inbox", Test: "TestSuspend",
	},
	{
		Name: "work-is-never-confirmed", Promise: "N5", File: "object/suspension.go",
		Edits: []edit{{
			Old: `		s.ask()
		next = suspendAfter - age
`,
			New: `		if !mutant("work-is-never-confirmed") {
			s.ask()
		}
		next = suspendAfter - age
`,
		}},
		Package: "object", Test: "TestConfirmsEachSecondWhileAnythingRuns",
	},
	{
		Name: "suspension-costs-a-recovery", Promise: "O14", File: "jobs/engine/wake.go",
		Edits: []edit{{
			Old: `x.action.Cause == recovery.CauseSuspended ||`,
			New: `x.action.Cause == recovery.CauseSuspended && !mutant("suspension-costs-a-recovery") ||`,
		}},
		Package: "jobs/engine", Test: "TestSuspendedWorkRunsAgain",
	},
	{
		Name: "timeout-counts-before-the-begin", Promise: "J7", File: "jobs/engine/work.go",
		Edits: []edit{{
			Old: `	r.began.Store(r.engine.st.Now().UnixNano())
`,
			New: `	if r.began.Store(r.engine.st.Now().UnixNano()); mutant("timeout-counts-before-the-begin") {
		r.began.Store(r.given.Began.UnixNano())
	}
`,
		}},
		Package: "jobs/engine", Test: "TestTimeoutOfAHeldWork",
	},
	{
		Name: "held-work-is-overdue", Promise: "J7", File: "jobs/engine/work.go",
		Edits: []edit{{
			Old: `	began := r.start()
	return r.timeout`,
			New: `	began := r.start()
	if began.IsZero() && mutant("held-work-is-overdue") {
		began = r.given.Began
	}
	return r.timeout`,
		}},
		Package: "jobs/engine", Test: "TestHeartbeatOfALease",
	},
	{
		Name: "pool-never-overlaps", Promise: "N5", File: "jobs/workerpool/pool.go",
		Edits: []edit{{
			Old: `OverlapWhileUnconfirmed: c.OverlapWhileUnconfirmed}`,
			New: `OverlapWhileUnconfirmed: c.OverlapWhileUnconfirmed && !mutant("pool-never-overlaps")}`,
		}},
		Package: "jobs/workerpool", Test: "TestTasksOverASilentLog",
	},
	{
		Name: "suspended-phase-has-failed", Promise: "N5", File: "jobs/workerpool/phase.go",
		Edits: []edit{{
			Old: `if !errors.Is(context.Cause(ctx), object.ErrSuspended) {`,
			New: `if mutant("suspended-phase-has-failed") || !errors.Is(context.Cause(ctx), object.ErrSuspended) {`,
		}},
		Package: "jobs/workerpool", Test: "TestPhaseOverASilentLog",
	},
	{
		Name: "recovery-does-not-wait-for-the-owner-before", Promise: "R2", File: "object/suspension.go",
		Edits: []edit{{
			Old: `	if p := h.store.Previous(); p.Epoch > 0 && !p.Clean {`,
			New: `	if p := h.store.Previous(); p.Epoch > 0 && !p.Clean && !mutant("recovery-does-not-wait-for-the-owner-before") {`,
		}},
		Package: "jobs/engine", Test: "TestWorkOfACutOffOwner",
	},
	{
		Name: "owner-lost-is-a-crash", Promise: "A8", File: "storage/durable_fenced.go",
		Edits: []edit{{
			Old: `!s.previous.Clean && s.fenced.Replaced()`,
			New: `!s.previous.Clean && s.fenced.Replaced() && !mutant("owner-lost-is-a-crash")`,
		}},
		Package: "object", Test: "TestOwnersLost",
	},
	{
		Name: "crash-is-a-lost-owner", Promise: "A8", File: "storage/shardlog/owner.go",
		Edits: []edit{{
			Old: `before.Node() != e.o.Owner`,
			New: `(before.Node() != e.o.Owner || mutant("crash-is-a-lost-owner"))`,
		}},
		Package: "object", Test: "TestCrashOverALog",
	},
}
