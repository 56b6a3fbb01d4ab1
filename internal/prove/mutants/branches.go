package main

// branchMutants are bugs of branches of workflows, of steps behind a breaker, and of runs that begin
// anew.
var branchMutants = []mutant{
	{
		Name: "losers-are-not-cancelled", Promise: "F18", File: "jobs/workflow/first.go",
		Edits: []edit{{
			Old: `			if l != winner && !l.ended {
`,
			New: `			if l != winner && !l.ended && !mutant("losers-are-not-cancelled") {
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashFirstOfASignalAndASleep/map",
	},
	{
		Name: "loser-goes-on-in-a-repeat", Promise: "F18", File: "jobs/workflow/branch.go",
		Edits: []edit{{
			Old: `	l.failed = !l.leave && known == fateLosing
`,
			New: `	l.failed = !l.leave && known == fateLosing && !mutant("loser-goes-on-in-a-repeat")
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashFirstOfASignalAndASleep/map",
	},
	{
		Name: "loser-that-has-ended-goes-on", Promise: "F18", File: "jobs/workflow/branch.go",
		Edits: []edit{{
			Old: `(known == fateLost || `,
			New: `(known == fateLost && !mutant("loser-that-has-ended-goes-on") || `,
		}},
		Package: "jobs/workflow", Test: "TestBranchesDiverge",
	},
	{
		Name: "loser-is-cut-off-in-a-repeat", Promise: "F18", File: "jobs/workflow/branch.go",
		Edits: []edit{{
			Old: `				if fates[place] = fateLost; i`,
			New: `				if fates[place] = fateLost; !mutant("loser-is-cut-off-in-a-repeat") && i`,
		}},
		Package: "jobs/workflow", Test: "TestCrashLoserCleansUp/map",
	},
	{
		Name: "first-to-end-is-the-last", Promise: "F18", File: "jobs/workflow/first.go",
		Edits: []edit{{
			Old: `l.rank < winner.rank) {`,
			New: `(l.rank < winner.rank) != mutant("first-to-end-is-the-last")) {`,
		}},
		Package: "jobs/workflow", Test: "TestFirstOfEndedBranches",
	},
	{
		Name: "loser-takes-a-signal", Promise: "F18", File: "jobs/workflow/signal.go",
		Edits: []edit{{
			Old: `		if c.toCancel() { // since`,
			New: `		if !mutant("loser-takes-a-signal") && c.toCancel() { // since`,
		}},
		Package: "jobs/workflow", Test: "TestLoserTakesNoSignal",
	},
	{
		Name: "branches-go-on-after-the-end", Promise: "F17", File: "jobs/workflow/function.go",
		Edits: []edit{{
			Old: `		c.closeBranches()
`,
			New: `		if !mutant("branches-go-on-after-the-end") {
			c.closeBranches()
		}
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashBranchesAlive/map",
	},
	{
		Name: "ended-branch-does-more", Promise: "F3", File: "jobs/workflow/branch.go",
		Edits: []edit{{
			Old: `	l.over = known == fateEnded
`,
			New: `	l.over = known == fateEnded && !mutant("ended-branch-does-more")
`,
		}},
		Package: "jobs/workflow", Test: "TestBranchesDiverge",
	},
	{
		Name: "left-over-entries-of-a-branch", Promise: "F3", File: "jobs/workflow/branch.go",
		Edits: []edit{{
			Old: `	if left != nil && !l.leave {
`,
			New: `	if left != nil && !l.leave && !mutant("left-over-entries-of-a-branch") {
`,
		}},
		Package: "jobs/workflow", Test: "TestBranchesDiverge",
	},
	{
		Name: "undos-before-those-of-branches", Promise: "F9", File: "jobs/workflow/function.go",
		Edits: []edit{{
			Old: `	s.awaitBranches()
`,
			New: `	if !mutant("undos-before-those-of-branches") {
		s.awaitBranches()
	}
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashUndosOfBranches/map",
	},
	{
		Name: "retry-beside-cancelled-branches", Promise: "F17", File: "jobs/workflow/verbs.go",
		Edits: []edit{{
			Old: `		if e.Kind == history.Cancel && e.Scope != "" &&`,
			New: `		if !mutant("retry-beside-cancelled-branches") && e.Kind == history.Cancel && e.Scope != "" &&`,
		}},
		Package: "jobs/workflow", Test: "TestCrashRetryBesideBranches/map",
	},
	{
		Name: "open-breaker-counts-an-attempt", Promise: "K3", File: "jobs/workflow/step.go",
		Edits: []edit{{
			Old: `s.snoozed(name, err); ok {`,
			New: `s.snoozed(name, err); ok && !mutant("open-breaker-counts-an-attempt") {`,
		}},
		Package: "jobs/workflow", Test: "TestCrashThrough/map",
	},
	{
		Name: "value-that-is-not-encoded-opens-the-breaker", Promise: "K3", File: "jobs/workflow/step_through.go",
		Edits: []edit{{
			Old: `			if errors.As(err, &final) { // the`,
			New: `			if errors.As(err, &final) && !mutant("value-that-is-not-encoded-opens-the-breaker") { // the`,
		}},
		Package: "jobs/workflow", Test: "TestThroughALongOutage",
	},
	{
		Name: "restart-keeps-the-cancel", Promise: "F19", File: "jobs/workflow/restart.go",
		Edits: []edit{{
			Old: `		r.Cancel, r.Reason, r.Seen = false, "", false
`,
			New: `		if !mutant("restart-keeps-the-cancel") {
			r.Cancel, r.Reason, r.Seen = false, "", false
		}
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashRestart/map",
	},
	{
		Name: "restart-keeps-the-output", Promise: "F12", File: "jobs/workflow/restart.go",
		Edits: []edit{{
			Old: `in.st.Storage().Remove(ctx, outputKey)`,
			New: `in.st.Storage().Remove(ctx, map[bool]string{false: outputKey, true: "no output"}[mutant("restart-keeps-the-output")])`,
		}},
		Package: "jobs/workflow", Test: "TestCrashRestart/map",
	},
	{
		Name: "restart-keeps-the-letter", Promise: "F19", File: "jobs/workflow/restart.go",
		Edits: []edit{{
			Old: `		if letter == 0 {
`,
			New: `		if letter == 0 || mutant("restart-keeps-the-letter") {
`,
		}},
		Package: "jobs/workflow", Test: "TestCrashRestart/map",
	},
	{
		Name: "retry-all-at-once", Promise: "F19", File: "jobs/workflow/restart.go",
		Edits: []edit{{
			Old: `		next = seams.Steady().Add(retryEvery)
`,
			New: `		if !mutant("retry-all-at-once") {
			next = seams.Steady().Add(retryEvery)
		}
`,
		}},
		Package: "jobs/workflow", Test: "TestRetryAll",
	},
	{
		Name: "new-begins-beside-a-repeat", Promise: "F3", File: "jobs/workflow/repeat.go",
		Edits: []edit{{
			Old: `	waits := s.unread > 0 || s.passing
`,
			New: `	waits := (s.unread > 0 || s.passing) && !mutant("new-begins-beside-a-repeat")
`,
		}},
		Package: "jobs/workflow", Test: "TestChangedCodeBesideARepeat",
	},
	{
		Name: "last-to-repeat-goes-first", Promise: "F3", File: "jobs/workflow/repeat.go",
		Edits: []edit{{
			Old: `	s.pass()
`,
			New: `	if !mutant("last-to-repeat-goes-first") {
		s.pass()
	}
`,
		}, {
			Old: `	s.unread = 0
`,
			New: `	s.unread = 0
	if mutant("last-to-repeat-goes-first") {
		for i := len(s.waiters) - 1; i >= 0; i-- {
			if s.waiters[i].repeats != nil {
				s.wake(s.waiters[i])
			}
		}
	}
`,
		}},
		Package: "jobs/workflow", Test: "TestOrderOfARepeat",
	},
	{
		Name: "new-waits-for-a-branch-behind-it", Promise: "F3", File: "jobs/workflow/stretch.go",
		Edits: []edit{{
			Old: `	if s.unread > 0 {
`,
			New: `	if s.unread > 0 && !mutant("new-waits-for-a-branch-behind-it") {
`,
		}},
		Package: "jobs/workflow", Test: "TestNewStepBeforeALaterBranch",
	},
	{
		Name: "new-is-shown-beside-a-repeat", Promise: "F14", File: "jobs/workflow/variable.go",
		Edits: []edit{{
			Old: `	c.awaitRepeats()
`,
			New: `	if !mutant("new-is-shown-beside-a-repeat") {
		c.awaitRepeats()
	}
`,
		}},
		Package: "jobs/workflow", Test: "TestChangedCodeBesideARepeat",
	},
	{
		Name: "branch-behind-shows-its-value-again", Promise: "F14", File: "jobs/workflow/variable.go",
		Edits: []edit{{
			Old: `|| c.sc.over ||`,
			New: `|| c.sc.over && !mutant("branch-behind-shows-its-value-again") ||`,
		}},
		Package: "jobs/workflow", Test: "TestCrashVarOfABranchBehind/each/map",
	},
	{
		Name: "loser-shows-its-value-again", Promise: "F14", File: "jobs/workflow/variable.go",
		Edits: []edit{{
			Old: `c.sc.reader.Peek() != nil || c.sc.leaves`,
			New: `c.sc.reader.Peek() != nil || c.sc.leaves && !mutant("loser-shows-its-value-again")`,
		}},
		Package: "jobs/workflow", Test: "TestCrashVarOfABranchBehind/a_loser/map",
	},
	{
		Name: "new-is-stored-behind-a-panic", Promise: "F10", File: "jobs/workflow/entry_pending.go",
		Edits: []edit{{
			Old: `	case s.outcome.kind != running:
		return errOver
`,
			New: `	case s.outcome.kind != running && !mutant("new-is-stored-behind-a-panic"):
		return errOver
`,
		}},
		Package: "jobs/workflow", Test: "TestNothingNewBehindAPanic",
	},
	{
		Name: "run-begins-anew-in-a-branch", Promise: "F10", File: "jobs/workflow/patch.go",
		Edits: []edit{{
			Old: `	case c.sc.path != "":
`,
			New: `	case c.sc.path != "" && !mutant("run-begins-anew-in-a-branch"):
`,
		}},
		Package: "jobs/workflow", Test: "TestContinueAsMisuse",
	},
	{
		Name: "run-begins-anew-beside-branches", Promise: "F17", File: "jobs/workflow/patch.go",
		Edits: []edit{{
			Old: `c.sc.unjoined(); n > 0 {`,
			New: `c.sc.unjoined(); n > 0 && !mutant("run-begins-anew-beside-branches") {`,
		}},
		Package: "jobs/workflow", Test: "TestContinueAsMisuse",
	},
}
