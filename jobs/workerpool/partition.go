package workerpool

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// partition is one object of the pool: it holds tasks and runs a share of them.
// Package object runs its methods as turns, one at a time, so it has no mutex.
//
// Rule: each method writes to storage first and changes memory after. A turn
// that fails between the two resets the instance, and the constructor reads
// storage again.
//
// States of a task, with the method that makes each change:
//
//	Enqueue ─ add ─▶ pending ─ start ─▶ running ─ taskOutcome ─▶ done, dead, cancelled
//	                    ▲                  │
//	                    └────── again ─────┘  retry, snooze, crash
//
// ARCHITECTURE.md, section Jobs, names the stops of a task from file to file.
//
// Four caches save reads of storage: heads, begins, line.since and entry.row.
// Each has its gain beside it, in processor time a task on a busy machine.
type partition struct {
	set    *settings
	st     *object.State
	index  int
	limit  int // the most tasks that may run here; see share
	engine *engine.Engine

	counters
	versions engine.Versions // the versions of stored inputs, by task number
	version  string          // the last of them

	unmended bool   // dead letters may lack a row of another list; see mendLetters
	mendedTo uint64 // the letters up to this number have been looked at for that

	dirty bool // counters or virtual times differ from storage
	lines lines
	waits window
	// fresh lists tasks that became ready in this turn. Their rows in r/ are
	// stored by Settle, unless the task begins before that.
	fresh []freshEntry
	// heads caches the chain lengths of keys that this turn has read, up to
	// PerKey. An EnqueueBatch of 1,000 tasks of 10 keys costs 4 µs a task with
	// it and 27 µs without, because each read of a chain searches the batch.
	heads map[string]int
	// begins caches, for up to beginsMax keys, the order at which the chain
	// begins. It raises 23,600 tasks a second of 1,000 keys to 37,300; see
	// chained for the reason.
	begins    map[string]uint64
	executing map[uint64]runningTask // the running tasks by number; always counters.running many

	owed     window          // the calls for letters that are owed, by the time of the next attempt
	calling  map[callID]bool // those with an open execution
	emptying bool            // whether an execution of OnEmpty is open
	emptyRun jobs.Run        // progress of a call of OnEmpty to be repeated

	letterLines [agingLeft]window // the letters that wait for a step of the Retention, by their death

	waiters map[uint64]chan struct{} // by task number; closed when the task ends. Number 0: when no task is left
	backlog *object.Backlog
}

// freshEntry is a task that became ready in the current turn.
type freshEntry struct {
	line *line
	at   place
}

// newPartition is the constructor. It loads the counters, the open executions
// and the first entries of each queue; the other tasks stay in storage.
func newPartition(ctx context.Context, st *object.State, set *settings) (*partition, error) {
	index, err := strconv.Atoi(st.Name())
	if err != nil || index < 0 || index >= maxPartitions || strconv.Itoa(index) != st.Name() {
		return nil, fmt.Errorf("%w: %q is not the number of a partition", jobs.ErrNotFound, st.Name())
	}
	p := &partition{
		set: set, st: st, index: index,
		waits:     newWindow(set.window),
		owed:      newWindow(set.window),
		calling:   make(map[callID]bool),
		heads:     make(map[string]int),
		begins:    make(map[string]uint64),
		executing: make(map[uint64]runningTask),
		waiters:   make(map[uint64]chan struct{}),
		backlog:   st.Driver().Backlog(),
	}
	if err := p.load(ctx); err != nil {
		return nil, err
	}
	if p.unmended {
		if err := errors.Join(p.mendLetters(ctx), p.Settle(ctx, st.Now())); err != nil {
			return nil, err
		}
	}
	if p.engine, err = engine.Attach(ctx, st, set.engine, p); err != nil {
		return nil, err
	}
	if p.adopt(); uint64(len(p.executing)) < p.running {
		if err := p.repair(ctx); err != nil {
			return nil, err
		}
	}
	if uint64(len(p.executing)) != p.running {
		return nil, fmt.Errorf("%w: %d tasks have an open execution, but %d are counted as running", storage.ErrCorrupt, len(p.executing), p.running)
	}
	p.publish(ctx)
	return p, nil
}

// load reads everything but the executions, which the engine reads.
func (p *partition) load(ctx context.Context) error {
	for _, q := range p.set.queues {
		p.lines.named(q.name).weight = q.weight
	}
	b, ok, err := p.st.Storage().Get(ctx, countersKey)
	if err != nil {
		return err
	}
	if ok {
		if err := p.counters.decode(b, &p.lines); err != nil {
			return err
		}
	}
	p.checkLetters()
	if err := p.loadVersions(ctx); err != nil {
		return err
	}
	if err := p.loadEmpty(ctx); err != nil {
		return err
	}
	widest, err := p.widestKnown(ctx)
	if err != nil {
		return err
	}
	p.limit = share(p.set.concurrency, widest, p.index)
	for _, l := range p.lines.all {
		l.window = newWindow(p.set.window)
	}
	for a := range p.letterLines {
		p.letterLines[a] = newWindow(p.set.window)
	}
	return p.fill(ctx)
}

// widestKnown is the largest number of partitions that the pool ever had.
// Partition 0 stores it; the others call partition 0. It bounds each
// partition's share, so that tasks left in partitions of an earlier Config
// count too.
func (p *partition) widestKnown(ctx context.Context) (int, error) {
	known := int(p.counters.partitions)
	if p.index > 0 {
		var err error
		if known, err = p.set.widest(ctx, p.st, "0", 0); err != nil {
			return 0, err
		}
	}
	return max(known, p.set.partitions), nil
}

// widen tells partition 0 about this partition before it stores its first task.
func (p *partition) widen(ctx context.Context) error {
	if p.order > 0 || p.index == 0 {
		return nil
	}
	_, err := p.set.widest(ctx, p.st, "0", p.set.partitions, object.Repeatable()) // a maximum
	return err
}

// eraNumbers is how many tasks a partition may get in an era of the store.
const eraNumbers = 1 << 32

// nextOrder returns the next order of a task. The orders of each era have a range of their own, because the source of a restored store may have
// given those that follow to tasks of its own, and other systems may know their keys.
func (p *partition) nextOrder() uint64 {
	return max(p.order, p.st.Driver().Era()*eraNumbers) + 1
}

// share is the part of total that belongs to partition i of n, at least 1.
func share(total, n, i int) int {
	s := total / n
	if i < total%n {
		s++
	}
	return max(s, 1)
}

// adopt takes over the executions that the engine found open in storage.
func (p *partition) adopt() {
	for _, x := range p.engine.Executions() {
		switch kind, num := subjectOf(x.Subject); kind {
		case taskSubject:
			p.executing[num] = runningTask{token: x.Token}
		case emptySubject:
			p.emptying = true
		default:
			p.calling[callOf(num, hookOf(kind))] = true
		}
	}
}

// id makes the TaskID of a task of this partition.
func (p *partition) id(num uint64) TaskID { return TaskID{p.index, num} }

// Alarm handles a wake-up: the engine renews leases, recovers lost executions,
// and then calls Due.
func (p *partition) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return p.engine.Alarm(ctx, info)
}

// turn runs fn as a turn that may change something. The engine then calls
// Settle and sets the alarm.
func turn[R any](ctx context.Context, p *partition, fn func(ctx context.Context) (R, error)) (res R, err error) {
	err = p.engine.Turn(ctx, func(ctx context.Context) (err error) {
		res, err = fn(ctx)
		return err
	})
	return res, err
}

// Due is called by the engine in each turn that may change something. It moves
// letters and tasks on whose time has come, begins tasks, and begins hook
// calls.
func (p *partition) Due(ctx context.Context, now time.Time) error {
	for _, step := range [...]func(context.Context, time.Time) error{p.age, p.promote, p.begin, p.call} {
		if err := step(ctx, now); err != nil {
			return err
		}
	}
	if p.unmended {
		return p.mendLetters(ctx)
	}
	return nil
}

// Next is the earliest time at which Due has something to do; zero if there is
// none. The engine sets the object's alarm accordingly.
func (p *partition) Next() time.Time {
	step, _ := p.nextStep()
	next := earliest(p.nextCall(), step)
	if p.unmended {
		return earliest(next, p.since())
	}
	if p.mode == Paused || p.set.work == nil || p.running >= uint64(p.limit) {
		return next
	}
	if p.lines.next() != nil {
		return earliest(next, p.since())
	}
	if e, ok := p.waits.first(); ok {
		return earliest(next, time.Unix(0, int64(e.major)))
	}
	return next
}

// since is a time at which the tasks that are ready now were ready already: the
// last write of the counters. A time in the past makes the alarm due at once.
func (p *partition) since() time.Time { return time.Unix(0, p.changed) }

// earliest is the earlier of two times, of which the zero time is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Settle ends a turn; the engine calls it last. In this order it
//
//  1. stores the ready rows of tasks that became ready and did not begin,
//  2. trims the windows, which may have grown in the turn,
//  3. loads the next entries of windows that are empty,
//  4. publishes the metrics,
//  5. stores the counters if they changed.
//
// A task that begins in the turn that made it ready thus never has a ready row,
// which saves two rows of an idle pool's task.
func (p *partition) Settle(ctx context.Context, now time.Time) error {
	for _, f := range p.fresh {
		if i, ok := f.line.window.search(f.at); ok && f.line.window.entries[i].fresh {
			e := &f.line.window.entries[i]
			if err := p.st.Storage().PutBytes(ctx, readyKey(f.line.name, f.at), encodeNumber(e.num)); err != nil {
				return err
			}
			e.fresh = false
			if len(e.row.input) > keepBytes {
				e.row = nil
			}
		}
	}
	clear(p.heads)
	clear(p.fresh)
	p.fresh = p.fresh[:0]
	for _, l := range p.lines.all {
		l.window.trim()
	}
	p.waits.trim()
	p.owed.trim()
	for a := range p.letterLines {
		p.letterLines[a].trim()
	}
	if err := p.fill(ctx); err != nil {
		return err
	}
	p.publish(ctx)
	if !p.dirty {
		return nil
	}
	p.changed = now.UnixNano()
	p.dirty = false
	var room [256]byte // fits a few queues, so that most calls allocate nothing
	return p.st.Storage().PutBytes(ctx, countersKey, p.counters.append(room[:0], &p.lines))
}
