package main

// workflowMutants are bugs of workflows.
var workflowMutants = []mutant{
	{
		Name: "next-step-begins-before-the-entry", Promise: "F2", File: "jobs/workflow/step.go",
		Edits: []edit{{
			Old: `		s.flush()
		began := s.now()
`,
			New: `		if !mutant("next-step-begins-before-the-entry") {
			s.flush()
		}
		began := s.now()
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashNoStepComesBack/map",
	},
	{
		Name: "end-without-the-last-entry", Promise: "F1", File: "jobs/workflow/instance.go",
		Edits: []edit{{
			Old: `	in := s.in
	if err := s.store(ctx); err != nil {
`,
			New: `	in := s.in
	if mutant("end-without-the-last-entry") {
	} else if err := s.store(ctx); err != nil {
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashThreeSteps",
	},
	{
		Name: "sleep-begins-anew-in-a-repeat", Promise: "F4", File: "jobs/workflow/sleep.go",
		Edits: []edit{{
			Old: `	if e == nil {
`,
			New: `	if e != nil && mutant("sleep-begins-anew-in-a-repeat") {
		e.Until = ctx.s.now().Add(d)
	}
	if e == nil {
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashSleep",
	},
	{
		Name: "sleep-that-was-cut-off-looks-over", Promise: "F3", File: "jobs/workflow/sleep.go",
		Edits: []edit{{
			Old: `	if next != nil && next.Kind == history.Cancel &&`,
			New: `	if !mutant("sleep-that-was-cut-off-looks-over") && next != nil && next.Kind == history.Cancel &&`,
		}},
		Package: "jobs/workflow", Test: "TestCrashChildCancelled/map",
	},
	{
		Name: "signal-lost-when-a-run-begins-anew", Promise: "F5", File: "jobs/workflow/generations.go",
		Edits: []edit{{
			Old: `	r, gone := in.nextGeneration(in.row)
`,
			New: `	if mutant("signal-lost-when-a-run-begins-anew") {
		for _, seqs := range in.signals.byName {
			for _, seq := range seqs {
				if err := in.removeSignal(ctx, seq); err != nil {
					return err
				}
			}
		}
	}
	r, gone := in.nextGeneration(in.row)
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashContinueAs",
	},
	{
		Name: "newest-signal-is-taken-first", Promise: "F5", File: "jobs/workflow/signals.go",
		Edits: []edit{{
			Old: `	w.sizes[seq] = bytes
`,
			New: `	if mutant("newest-signal-is-taken-first") {
		w.byName[name] = append([]uint64{seq}, w.byName[name][:len(w.byName[name])-1]...)
	}
	w.sizes[seq] = bytes
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashHistoryOfARun/map",
	},
	{
		Name: "ended-run-takes-a-signal", Promise: "F5", File: "jobs/workflow/signals.go",
		Edits: []edit{{
			Old: `	case in.job.Meta().Status.Ended():
`,
			New: `	case in.job.Meta().Status.Ended() && !mutant("ended-run-takes-a-signal"):
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashHistoryOfARun/map",
	},
	{
		Name: "signal-stays-when-taken", Promise: "F5", File: "jobs/workflow/signals.go",
		Edits: []edit{{
			Old: `	if err := in.st.Storage().Remove(ctx, seqKey(signalPrefix, seq)); err != nil {
`,
			New: `	if mutant("signal-stays-when-taken") {
		in.signals.remove(seq)
		return nil
	}
	if err := in.st.Storage().Remove(ctx, seqKey(signalPrefix, seq)); err != nil {
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashSignals",
	},
	{
		Name: "name-of-an-entry-not-compared", Promise: "F3", File: "jobs/internal/history/scope.go",
		Edits: []edit{{
			Old: `	if e.Name != name || !slices`,
			New: `	if e.Name != name && !mutant("name-of-an-entry-not-compared") || !slices`,
		}},
		Package: "jobs/workflow", Test: "TestCrashStuck/renamed",
	},
	{
		Name: "two-branches-share-a-scope", Promise: "F3", File: "jobs/workflow/each.go",
		Edits: []edit{{
			Old: `func (b *branches) pathOf(i int) string {`,
			New: `func (b *branches) pathOf(i int) string {
	if mutant("two-branches-share-a-scope") {
		i /= 2
	}
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashEach/map",
	},
	{
		Name: "branch-left-out-of-a-repeat", Promise: "F9", File: "jobs/workflow/each.go",
		Edits: []edit{{
			Old: `	for b.next < b.count {
`,
			New: `	for b.next < b.count && !(b.failed && mutant("branch-left-out-of-a-repeat")) {
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashEachCancelled",
	},
	{
		Name: "restart-of-an-open-run-cuts-off-its-step", Promise: "F19", File: "jobs/workflow/restart.go",
		Edits: []edit{{
			Old: `			return err // before a write`,
			New: `			if mutant("restart-of-an-open-run-cuts-off-its-step") {
				err = errors.Join(err, in.put(ctx, r))
			}
			return err // before a write`,
		}},
		Package: "jobs/workflow", Test: "TestRestartDuringAStep",
	},
	{
		Name: "pause-that-was-taken-back-holds-the-run", Promise: "J10", File: "jobs/workflow/stretch.go",
		Edits: []edit{{
			Old: `		s.hold = false
		s.wakeAll(`,
			New: `		s.hold = mutant("pause-that-was-taken-back-holds-the-run")
		if s.hold {
			return
		}
		s.wakeAll(`,
		}},
		Package: "jobs/workflow", Test: "TestPauseTakenBack",
	},
	{
		Name: "rest-waits-after-the-pause-was-taken-back", Promise: "J10", File: "jobs/workflow/stretch.go",
		Edits: []edit{{
			Old: `&& !rests && !s.hold`,
			New: `&& (!rests || mutant("rest-waits-after-the-pause-was-taken-back")) && !s.hold`,
		}},
		Package: "jobs/workflow", Test: "TestRestsThoughThePauseWasTakenBack",
	},
	{
		Name: "first-rests-before-it-decides", Promise: "F18", File: "jobs/workflow/first.go",
		Edits: []edit{{
			Old: `		c.await(ls...) // no rest`,
			New: `		c.await(ls...)
		if mutant("first-rests-before-it-decides") {
			c.restIfAsked()
		}
		// no rest`,
		}},
		Package: "jobs/workflow", Test: "TestFirstAcrossAPause",
	},
	{
		Name: "cancel-not-stored", Promise: "F8", File: "jobs/workflow/verbs.go",
		Edits: []edit{{
			Old: `	r.Cancel, r.Reason = true, engine.Shorten(reason)
`,
			New: `		r.Cancel, r.Reason = !mutant("cancel-not-stored"), engine.Shorten(reason)
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashChildCancelled",
	},
	{
		Name: "undos-first-to-last", Promise: "F9", File: "jobs/workflow/function.go",
		Edits: []edit{{
			Old: `			return cmp.Compare(b.seq(), a.seq())
`,
			New: `			if mutant("undos-first-to-last") {
				return cmp.Compare(a.seq(), b.seq())
			}
			return cmp.Compare(b.seq(), a.seq())
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashEachFails",
	},
	{
		Name: "entry-takes-no-crash-back", Promise: "F11", File: "jobs/workflow/instance.go",
		Edits: []edit{{
			Old: `	if err := in.job.Engine().Progressed(ctx, t); err != nil {`,
			New: `	if mutant("entry-takes-no-crash-back") {
	} else if err := in.job.Engine().Progressed(ctx, t); err != nil {`,
		}},
		Package: "jobs/workflow", Test: "TestCrashesCountWithoutProgressOnly",
	},
	{
		Name: "begin-takes-crashes-back", Promise: "F11", File: "jobs/workflow/stretch.go",
		Edits: []edit{{
			Old: `	s.begin(ctx, x)
	s.spawn(`,
			New: `	s.begin(ctx, x)
	if mutant("begin-takes-crashes-back") {
		s.turn(func(ctx context.Context) error { return s.in.append(ctx, s.token, nil) })
	}
	s.spawn(`,
		}},
		Package: "jobs/workflow", Test: "TestCrashesCountWithoutProgressOnly",
	},
	{
		Name: "key-by-position", Promise: "F1", File: "jobs/workflow/step.go",
		Edits: []edit{{
			Old: `	c.sc.asked[name]++
`,
			New: `	c.sc.asked[name]++
	if mutant("key-by-position") {
		c.sc.asked[name] = c.sc.made + 1
	}
`,
		}},
		Package: "jobs/workflow", Test: "TestRandomPrograms",
	},
	{
		Name: "failed-atomic-sends-its-messages", Promise: "F6", File: "jobs/workflow/atomic.go",
		Edits: []edit{{
			Old: `	return s.st.Storage().Transaction(ctx, func(ctx context.Context, storage *object.Storage) error {
		var value []byte
`,
			New: `	if mutant("failed-atomic-sends-its-messages") {
		var failed error
		err := s.st.Storage().Transaction(ctx, func(ctx context.Context, storage *object.Storage) error {
			value, err := fn(ctx, &Tx{storage, s.st})
			if failed = err; err == nil {
				err = store(value)
			} else {
				err = nil
			}
			return err
		})
		return errors.Join(err, failed)
	}
	return s.st.Storage().Transaction(ctx, func(ctx context.Context, storage *object.Storage) error {
		var value []byte
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashAtomic",
	},
	{
		Name: "answer-of-an-earlier-life", Promise: "F7", File: "jobs/workflow/child.go",
		Edits: []edit{{
			Old: `c.Answer != nil || a.Parent != in.asParent(a.Parent.Place) {`,
			New: `c.Answer != nil || a.Parent != in.asParent(a.Parent.Place) && !mutant("answer-of-an-earlier-life") {`,
		}},
		Package: "jobs/workflow", Test: "TestCrashChildOfAnEarlierLife",
	},
	{
		Name: "orphan-of-a-terminated-parent", Promise: "F7", File: "jobs/workflow/verbs.go",
		Edits: []edit{{
			Old: `	if err := in.cancelChildren(ctx, "the parent was terminated", true); err != nil {`,
			New: `	if mutant("orphan-of-a-terminated-parent") {
	} else if err := in.cancelChildren(ctx, "the parent was terminated", true); err != nil {`,
		}},
		Package: "jobs/workflow", Test: "TestCrashChildOfAnEarlierLife",
	},
	{
		Name: "early-cancel-leaves-no-mark", Promise: "F7", File: "jobs/workflow/child.go",
		Edits: []edit{{
			Old: `		return none{}, in.st.Mark(ctx, key, nil, markKept)
`,
			New: `		if mutant("early-cancel-leaves-no-mark") {
			return none{}, nil
		}
		return none{}, in.st.Mark(ctx, key, nil, markKept)
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashChildCancelledBeforeItsStart",
	},
	{
		Name: "child-of-a-given-up-branch-goes-on", Promise: "F7", File: "jobs/workflow/child.go",
		Edits: []edit{{
			Old: `		return s.in.giveUpChild(ctx, place,`,
			New: `		if mutant("child-of-a-given-up-branch-goes-on") {
			return nil
		}
		return s.in.giveUpChild(ctx, place,`,
		}},
		Package: "jobs/workflow", Test: "TestChildOfAGivenUpBranch",
	},
	{
		Name: "branch-without-entries-loses-its-undo", Promise: "F9", File: "jobs/workflow/function.go",
		Edits: []edit{{
			Old: `	if sc.of == nil ||`,
			New: `	if sc.of == nil || mutant("branch-without-entries-loses-its-undo") ||`,
		}},
		Package: "jobs/workflow", Test: "TestCrashUndoOfABranchWithoutEntries/map",
	},
	{
		Name: "left-over-entries-unseen", Promise: "F3", File: "jobs/workflow/function.go",
		Edits: []edit{{
			Old: `	case next != nil:
		s.stuck(`,
			New: `	case next != nil && !mutant("left-over-entries-unseen"):
		s.stuck(`,
		}},
		Package: "jobs/workflow", Test: "TestCrashStuck/ends_early",
	},
	{
		Name: "letter-stays-after-retry", Promise: "F12", File: "jobs/workflow/verbs.go",
		Edits: []edit{{
			Old: `in.st.Driver().Exhume(ctx, letter), in.put(ctx, r))
`,
			New: `in.put(ctx, r))
		if !mutant("letter-stays-after-retry") {
			err = errors.Join(err, in.st.Driver().Exhume(ctx, letter))
		}
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashUndoGivenUp",
	},
	{
		Name: "all-entries-in-one-batch", Promise: "F1", File: "jobs/workflow/entry_pending.go",
		Edits: []edit{{
			Old: `	if p.bytes+p.varBytes <= limit {`,
			New: `	if p.bytes+p.varBytes <= limit || mutant("all-entries-in-one-batch") {`,
		}},
		Package: "jobs/workflow", Test: "TestPendingParts",
	},
	{
		Name: "wait-not-stored-beside-a-step", Promise: "F4", File: "jobs/workflow/stretch.go",
		Edits: []edit{{
			Old: `	if !alone && !until.IsZero() &&`,
			New: `	if !mutant("wait-not-stored-beside-a-step") && !alone && !until.IsZero() &&`,
		}},
		Package: "jobs/workflow", Test: "TestCrashWaitsBesideALongStep/map",
	},
}
