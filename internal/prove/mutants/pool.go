package main

// poolMutants are bugs of the worker pool.
var poolMutants = []mutant{
	{
		Name: "task-does-not-know-its-pool", Promise: "J6", File: "jobs/workerpool/pool.go",
		Edits: []edit{{
			Old: `	return t, p.input(part, r, version, &t.In)
`,
			New: `	if mutant("task-does-not-know-its-pool") {
		t.part = nil
	}
	return t, p.input(part, r, version, &t.In)
`,
		}},
		Package: "jobs/workerpool", Test: "TestTaskKnowsItsPool",
	},
	{
		Name: "batch-refused-after-its-first-write", Promise: "W6", File: "jobs/workerpool/enqueue_turn.go",
		Edits: []edit{{
			Old: `	refs, same, err := p.admitAll(ctx, inputs, all)
	if err != nil {
`,
			New: `	refs, same, err := p.admitAll(ctx, inputs, all)
	if err != nil && mutant("batch-refused-after-its-first-write") {
		_, bad := p.add(ctx, inputs[0], &all[0])
		return nil, errors.Join(err, bad)
	}
	if err != nil {
`,
		}, {
			Old: `import (
	"cmp"
	"context"
`,
			New: `import (
	"cmp"
	"context"
	"errors"
`,
		}},
		Package: "jobs/workerpool", Test: "TestRefusedBatchLeavesRunningWork",
	},
	{
		Name: "dead-letters-not-counted-by-bytes", Promise: "W6", File: "jobs/workerpool/dead_letters.go",
		Edits: []edit{{
			Old: `bytes > limitBytes && len(rows) > 0 {`,
			New: `bytes > limitBytes && len(rows) > 0 && !mutant("dead-letters-not-counted-by-bytes") {`,
		}},
		Package: "jobs/workerpool", Test: "TestLargeDeadLetters",
	},
	{
		Name: "undecodable-letter-fails-the-page", Promise: "W6", File: "jobs/workerpool/dead_letters.go",
		Edits: []edit{{
			Old: `	for _, r := range rows {
		out.Bytes += r.size()
`,
			New: `	for _, r := range rows {
		if l := p.letterOf(part, r, part.inputVersion(r.num)); l.DecodeError != "" && mutant("undecodable-letter-fails-the-page") {
			return out, errors.New(l.DecodeError)
		}
		out.Bytes += r.size()
`,
		}},
		Package: "jobs/workerpool", Test: "TestUndecodableInput",
	},
	{
		Name: "undecodable-input-tried-again", Promise: "W6", File: "jobs/workerpool/pool.go",
		Edits: []edit{{
			Old: `		return !errors.As(err, &bad) &&`,
			New: `		return (mutant("undecodable-input-tried-again") || !errors.As(err, &bad)) &&`,
		}},
		Package: "jobs/workerpool", Test: "TestUndecodableInput",
	},
	{
		Name: "stale-lease-not-counted", Promise: "J8", File: "jobs/workerpool/claim.go",
		Edits: []edit{{
			Old: `	return engine.Execution{}, fmt.Errorf("task %s: %w", l.ID, p.engine.Stale(l.Token))
`,
			New: `	if mutant("stale-lease-not-counted") {
		return engine.Execution{}, fmt.Errorf("task %s: %w", l.ID, jobs.ErrStaleExecution)
	}
	return engine.Execution{}, fmt.Errorf("task %s: %w", l.ID, p.engine.Stale(l.Token))
`,
		}},
		Package: "jobs/workerpool", Test: "TestStaleLeasesAreCounted",
	},
	{
		Name: "scrub-passes-over-pools", Promise: "R6", File: "recovery/scrub_pool.go",
		Edits: []edit{{
			Old: `	if !f.pool.decode(raw) {
`,
			New: `	if mutant("scrub-passes-over-pools") {
		return nil
	}
	if !f.pool.decode(raw) {
`,
		}},
		Package: "jobs/workerpool", Test: "TestScrubArmsAPartition",
	},
	{
		Name: "scrub-passes-over-damaged-counters", Promise: "W1", File: "recovery/scrub_pool.go",
		Edits: []edit{{
			Old: `	case err != nil || !is:
`,
			New: `	case err != nil || !is || mutant("scrub-passes-over-damaged-counters"):
`,
		}},
		Package: "jobs/workerpool", Test: "TestScrubFindsDamagedCounters",
	},
	{
		Name: "lost-executions-not-counted", Promise: "R6", File: "recovery/scrub_pool.go",
		Edits: []edit{{
			Old: `	case p.executions < p.running:
`,
			New: `	case p.executions < p.running && !mutant("lost-executions-not-counted"):
`,
		}},
		Package: "jobs/workerpool", Test: "TestScrubFindsLostExecutions",
	},
	{
		Name: "shares-above-concurrency", Promise: "W3", File: "jobs/workerpool/partition.go",
		Edits: []edit{{
			Old: `	if i < total%n {
`,
			New: `	if i < total%n || i == total%n && mutant("shares-above-concurrency") {
`,
		}},
		Package: "jobs/workerpool", Test: "TestSharesSumUp",
	},
	{
		Name: "one-task-too-many", Promise: "W3", File: "jobs/workerpool/execution.go",
		Edits: []edit{{
			Old: `return p.mode != Paused && p.running < uint64(p.limit) &&`,
			New: `return p.mode != Paused && (p.running < uint64(p.limit) || p.running == uint64(p.limit) && mutant("one-task-too-many")) &&`,
		}},
		Package: "jobs/workerpool", Test: "TestConcurrencyIsExact",
	},
	{
		Name: "delayed-task-half-a-second-early", Promise: "W6", File: "jobs/workerpool/queue.go",
		Edits: []edit{{
			Old: `		if !ok || int64(e.major) > now.UnixNano() {
`,
			New: `		early := int64(0)
		if mutant("delayed-task-half-a-second-early") {
			early = 5e8
		}
		if !ok || int64(e.major) > now.UnixNano()+early {
`,
		}},
		Package: "jobs/workerpool", Test: "TestDelaysAreExact",
	},
	{
		Name: "newest-failures-dropped", Promise: "W6", File: "jobs/workerpool/execution.go",
		Edits: []edit{{
			Old: `	if len(fs) > maxFailures {
`,
			New: `	if len(fs) > maxFailures && mutant("newest-failures-dropped") {
		fs = fs[:maxFailures]
	}
	if len(fs) > maxFailures {
`,
		}},
		Package: "jobs/workerpool", Test: "TestFirstAndLastFailuresAreKept",
	},
	{
		Name: "windows-halved", Promise: "W4", File: "jobs/workerpool/queue_memory.go",
		Edits: []edit{{
			Old: `	w.entries = w.entries[:w.max]
`,
			New: `	if mutant("windows-halved") {
		w.max /= 2
	}
	w.entries = w.entries[:w.max]
`,
		}},
		Package: "jobs/workerpool", Test: "TestWindowBound",
	},
	{
		Name: "unique-key-free-at-a-failure", Promise: "W9", File: "jobs/workerpool/execution.go",
		Edits: []edit{{
			Old: `func (p *partition) again(ctx context.Context, r *row, run jobs.Run) error {
`,
			New: `func (p *partition) again(ctx context.Context, r *row, run jobs.Run) error {
	if r.rare.Unique != "" && mutant("unique-key-free-at-a-failure") {
		_ = p.st.Storage().Remove(ctx, uniquePrefix+r.rare.Unique)
	}
`,
		}},
		Package: "jobs/workerpool", Test: "TestUniqueUntilDone",
	},
	{
		Name: "unique-key-kept-for-ever", Promise: "W9", File: "jobs/workerpool/execution.go",
		Edits: []edit{{
			Old: `	if r.rare.Unique != "" {
`,
			New: `	if r.rare.Unique != "" && !mutant("unique-key-kept-for-ever") {
`,
		}},
		Package: "jobs/workerpool", Test: "TestUniqueUntilDone",
	},
	{
		Name: "outcomes-with-blanks", Promise: "J9", File: "object/metrics.go",
		Edits: []edit{{
			Old: `	outcome = strings.ReplaceAll(outcome, " ", "_") // no allocation without a blank
`,
			New: `	if !mutant("outcomes-with-blanks") {
		outcome = strings.ReplaceAll(outcome, " ", "_")
	}
`,
		}},
		Package: "jobs/workerpool", Test: "TestExecutionsByClass",
	},
	{
		Name: "tasks-shown-when-constructed-alone", Promise: "W1", File: "jobs/workerpool/partition.go",
		Edits: []edit{{
			Old: `	p.publish(ctx)
	if !p.dirty {`,
			New: `	if !mutant("tasks-shown-when-constructed-alone") {
		p.publish(ctx)
	}
	if !p.dirty {`,
		}},
		Package: "jobs/workerpool", Test: "TestTasksByPool",
	},
	{
		Name: "tasks-leave-the-metrics-with-an-eviction", Promise: "W1", File: "object/metrics.go",
		Edits: []edit{{
			Old: `	if !errors.Is(cause, errEvicted) {
`,
			New: `	if !errors.Is(cause, errEvicted) || mutant("tasks-leave-the-metrics-with-an-eviction") {
`,
		}},
		Package: "jobs/workerpool", Test: "TestTasksOfEvictedPartitions",
	},
	{
		Name: "waits-counted-from-the-submission", Promise: "W1", File: "jobs/workerpool/queue_memory.go",
		Edits: []edit{{
			Old: `	return max(r.enqueued, r.notBefore, alarm.Nanos(r.rare.Run.Scheduled))
`,
			New: `	if mutant("waits-counted-from-the-submission") {
		return r.enqueued
	}
	return max(r.enqueued, r.notBefore, alarm.Nanos(r.rare.Run.Scheduled))
`,
		}},
		Package: "jobs/workerpool", Test: "TestWaitsOfTasks",
	},
	{
		Name: "age-of-the-attempt-before", Promise: "W1", File: "jobs/workerpool/queue_memory.go",
		Edits: []edit{{
			Old: `	l.head = place{} // a retried`,
			New: `	if !mutant("age-of-the-attempt-before") {
		l.head = place{}
	} // a retried`,
		}},
		Package: "jobs/workerpool", Test: "TestReadyAgainAtTheSamePlace",
	},
	{
		Name: "refused-mode-is-taken", Promise: "W7", File: "jobs/workerpool/control.go",
		Edits: []edit{{
			Old: `		if err := p.st.Emit(ctx, EventMode, jobs.Event{Reason: m.String()}); err != nil {
			return struct{}{}, err // the mode is what is stored
		}
`,
			New: `		if err := p.st.Emit(ctx, EventMode, jobs.Event{Reason: m.String()}); err != nil {
			if mutant("refused-mode-is-taken") {
				p.mode = m
			}
			return struct{}{}, err // the mode is what is stored
		}
`,
		}},
		Package: "jobs/workerpool", Test: "TestLessRoom",
	},
	{
		Name: "rows-of-queues-not-counted", Promise: "W2", File: "jobs/workerpool/execution.go",
		Edits: []edit{{
			Old: `	return written + freshBytes*len(p.fresh), err
`,
			New: `	if mutant("rows-of-queues-not-counted") {
		return written, err
	}
	return written + freshBytes*len(p.fresh), err
`,
		}},
		Package: "jobs/workerpool", Test: "TestMoreBeginsThanABatchHolds",
	},
	{
		Name: "call-of-an-earlier-death-replaces-a-newer-one", Promise: "W6", File: "jobs/workerpool/hook.go",
		Edits: []edit{{
			Old: `	if asked && scheduledOf`,
			New: `	if asked && !mutant("call-of-an-earlier-death-replaces-a-newer-one") && scheduledOf`,
		}},
		Package: "jobs/workerpool", Test: "TestCallOfOnDeadForAnEarlierDeath",
	},
	{
		Name: "calls-of-ondead-do-not-wait", Promise: "W6", File: "jobs/workerpool/hook.go",
		Edits: []edit{{
			Old: `	if run.RetryAt.IsZero() {`,
			New: `	if run.RetryAt.IsZero() || mutant("calls-of-ondead-do-not-wait") {`,
		}},
		Package: "jobs/workerpool", Test: "TestEachCallOfOnDeadKeepsItsWaits",
	},
	{
		Name: "waits-of-ondead-forgotten-at-open", Promise: "W6", File: "jobs/workerpool/hook.go",
		Edits: []edit{{
			Old: `	if json.Unmarshal(value, &run) != nil {`,
			New: `	if json.Unmarshal(value, &run) != nil || mutant("waits-of-ondead-forgotten-at-open") {`,
		}},
		Package: "jobs/workerpool", Test: "TestEachCallOfOnDeadKeepsItsWaits",
	},
	{
		Name: "stored-calls-of-ondead-not-loaded", Promise: "W6", File: "jobs/workerpool/hook.go",
		Edits: []edit{{
			Old: `	if p.calls == 0 { // as`,
			New: `	if p.calls == 0 || mutant("stored-calls-of-ondead-not-loaded") { // as`,
		}},
		Package: "jobs/workerpool", Test: "TestEachCallOfOnDeadKeepsItsWaits",
	},
}
