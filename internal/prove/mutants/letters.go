package main

// letterMutants are bugs of dead letters under the Retention of their pool.
var letterMutants = []mutant{
	{
		Name: "letter-is-stale-late", Promise: "W12", File: "jobs/workerpool/retention.go",
		Edits: []edit{{
			Old: `		return s.retention.StaleAfter
`,
			New: `		if mutant("letter-is-stale-late") {
			return s.retention.StaleAfter + 1
		}
		return s.retention.StaleAfter
`,
		}},
		Package: "jobs/workerpool", Test: "TestDeadLettersGoByTheRetention",
	},
	{
		Name: "letter-goes-without-its-index", Promise: "W12", File: "jobs/workerpool/dead_letters.go",
		Edits: []edit{{
			Old: `	if err := p.unfileAll(ctx, r); err != nil {
`,
			New: `	if mutant("letter-goes-without-its-index") {
		p.dead--
		p.dirty = true
		return p.exhume(ctx, r)
	}
	if err := p.unfileAll(ctx, r); err != nil {
`,
		}},
		Package: "jobs/workerpool", Test: "TestReplayBeforeOnDeleteIsOver",
	},
	{
		Name: "letter-does-not-wait-for-its-calls", Promise: "W12", File: "jobs/workerpool/retention.go",
		Edits: []edit{{
			Old: `		if p.calling[id] {
			return true, nil
		}
`,
			New: `		if mutant("letter-does-not-wait-for-its-calls") {
			return false, nil
		}
		if p.calling[id] {
			return true, nil
		}
`,
		}},
		Package: "jobs/workerpool", Test: "TestLetterWaitsForItsCalls",
	},
	{
		Name: "call-of-an-earlier-death-removes-the-letter", Promise: "W12", File: "jobs/workerpool/retention.go",
		Edits: []edit{{
			Old: `	if err != nil || !ok || id.hook() != onDead && !timeOf(r.endedAt).Equal(died) {
`,
			New: `	if mutant("call-of-an-earlier-death-removes-the-letter") && ok && id.hook() == onDelete {
		return p.removeLetter(ctx, r)
	}
	if err != nil || !ok || id.hook() != onDead && !timeOf(r.endedAt).Equal(died) {
`,
		}},
		Package: "jobs/workerpool", Test: "TestReplayBeforeOnDeleteIsOver",
	},
	{
		Name: "longer-retention-forgets-the-letter", Promise: "W12", File: "jobs/workerpool/retention.go",
		Edits: []edit{{
			Old: `	case !p.over(r):
		return`,
			New: `	case !p.over(r) && mutant("longer-retention-forgets-the-letter"):
		return nil
	case !p.over(r):
		return`,
		}},
		Package: "jobs/workerpool", Test: "TestLongerRetentionDuringACallOfOnDelete",
	},
	{
		Name: "letters-of-before-the-retention-stay", Promise: "W12", File: "jobs/workerpool/dead_letters.go",
		Edits: []edit{{
			Old: `	if !p.set.ages() || p.whole == 1 {
`,
			New: `	if !p.set.ages() || p.whole == 1 || mutant("letters-of-before-the-retention-stay") {
`,
		}},
		Package: "jobs/workerpool", Test: "TestRetentionOfLettersThatChanges",
	},
	{
		Name: "letter-goes-in-two-commits", Promise: "W12", File: "jobs/workerpool/retention.go",
		Edits: []edit{{
			Old: `	if err := p.dropPhases(ctx, r.num); err != nil {
		return err
	}
	p.count(Cancelled)
`,
			New: `	if mutant("letter-goes-in-two-commits") {
		if err := p.st.Sync(ctx); err != nil {
			return err
		}
	}
	if err := p.dropPhases(ctx, r.num); err != nil {
		return err
	}
	p.count(Cancelled)
`,
		}},
		Package: "jobs/workerpool", Test: "TestCrashStaleLetter/map",
	},
	{
		Name: "letters-have-no-alarm", Promise: "W12", File: "jobs/workerpool/partition.go",
		Edits: []edit{{
			Old: `	next := earliest(p.nextCall(), step)
`,
			New: `	next := earliest(p.nextCall(), step)
	if mutant("letters-have-no-alarm") {
		next = p.nextCall()
	}
`,
		}},
		Package: "jobs/workerpool", Test: "TestCrashStaleLetter/map",
	},
	{
		Name: "failed-hook-of-a-letter-is-not-told", Promise: "W12", File: "jobs/workerpool/retention.go",
		Edits: []edit{{
			Old: `	if id.hook() != onDead && out.Kind == engine.GaveUp {
`,
			New: `	if id.hook() != onDead && out.Kind == engine.GaveUp && !mutant("failed-hook-of-a-letter-is-not-told") {
`,
		}},
		Package: "jobs/workerpool", Test: "TestHooksOfLetters",
	},
	{
		Name: "all-letters-go-in-one-batch", Promise: "W12", File: "jobs/workerpool/retention.go",
		Edits: []edit{{
			Old: `		if bytes, err := p.turnBytes(ctx); bytes >= p.st.Driver().MaxBatchBytes()/2 || err != nil {
			return err
		}
		if err := p.ageFirst`,
			New: `		if bytes, err := p.turnBytes(ctx); (bytes >= p.st.Driver().MaxBatchBytes()/2 && !mutant("all-letters-go-in-one-batch")) || err != nil {
			return err
		}
		if err := p.ageFirst`,
		}},
		Package: "jobs/workerpool", Test: "TestManyLettersAreRemoved",
	},
	{
		Name: "scrub-passes-over-letters-without-an-alarm", Promise: "W12", File: "recovery/scrub_pool.go",
		Edits: []edit{{
			Old: `	case p.aging:
`,
			New: `	case p.aging && !mutant("scrub-passes-over-letters-without-an-alarm"):
`,
		}},
		Package: "jobs/workerpool", Test: "TestScrubArmsThePartitionOfLetters",
	},
}
