package workerpool

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// settings is a Config without its types.
type settings struct {
	name        string
	version     string // of inputs that are stored now
	partitions  int
	concurrency int
	perKey      int
	maxQueued   int
	queues      []*line // templates
	keepDone    time.Duration
	window      int // entries of a window
	engine      jobs.Options

	work    func(ctx context.Context, p *partition, r *row, x jobs.Execution, version string) ([]byte, error) // nil: tasks are claimed
	onDead  func(ctx context.Context, p *partition, r *row, version string) error
	onEmpty func(ctx context.Context, partition int) error
	widest  *object.Method[int, int]
}

// partition is an object of the pool: its tasks, and what runs of them. Storage
// is written first and memory changed after; a turn that fails in between resets
// the activation.
type partition struct {
	set    *settings
	st     *object.State
	index  int
	limit  int // how many tasks may run here
	engine *jobs.Engine

	counters
	versions jobs.Versions // that inputs were stored under, by task number
	version  string        // the last of them

	dirty  bool // counters or passes differ from what is stored
	lines  lines
	waits  window
	fresh  []freshEntry      // put in a queue in this turn and not stored there yet
	heads  map[string]int    // of keys that this turn has looked at: their tasks, if fewer than PerKey
	begins map[string]uint64 // of some keys: no task that has not ended is before it in their order
	opened map[uint64]active // by task number; as many as counters.running

	calling  int       // executions open of OnDead
	emptying bool      // an execution of OnEmpty is open
	emptyRun jobs.Run  // the progress of a call of OnEmpty that is to be made again
	callAt   time.Time // no call of OnDead before this

	waiters map[uint64]chan struct{} // closed when the task has ended; 0: when no task is left
	backlog *object.Backlog
}

// active is a task with an open execution.
type active struct {
	token jobs.Token
	row   *row // nil: not read yet
}

// freshEntry is a task that was put in a queue in the present turn.
type freshEntry struct {
	line *line
	at   place
}

// newPartition is the constructor: it reads the counters, what runs, and the
// first of what waits.
func newPartition(ctx context.Context, st *object.State, set *settings) (*partition, error) {
	index, err := strconv.Atoi(st.Name())
	if err != nil || index < 0 || index >= maxPartitions || strconv.Itoa(index) != st.Name() {
		return nil, fmt.Errorf("%w: %q is not the number of a partition", jobs.ErrNotFound, st.Name())
	}
	p := &partition{
		set: set, st: st, index: index,
		waits:   newWindow(set.window),
		heads:   make(map[string]int),
		begins:  make(map[string]uint64),
		opened:  make(map[uint64]active),
		waiters: make(map[uint64]chan struct{}),
		backlog: st.Backlog(),
	}
	if err := p.load(ctx); err != nil {
		return nil, err
	}
	if p.engine, err = jobs.Attach(ctx, st, set.engine, p); err != nil {
		return nil, err
	}
	if p.adopt(); uint64(len(p.opened)) < p.running {
		if err := p.repair(ctx); err != nil {
			return nil, err
		}
	}
	if uint64(len(p.opened)) != p.running {
		return nil, fmt.Errorf("%w: %d tasks run, %d are counted", storage.ErrCorrupt, len(p.opened), p.running)
	}
	p.publish(ctx)
	return p, nil
}

// load reads what is stored, but for the executions.
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
	return p.fill(ctx)
}

// widestKnown is the most partitions that the pool has ever had. Partition 0
// remembers it; the others ask.
func (p *partition) widestKnown(ctx context.Context) (int, error) {
	known := int(p.counters.partitions)
	if p.index > 0 {
		var err error
		if known, err = p.set.widest.Call(ctx, p.st, "0", 0); err != nil {
			return 0, err
		}
	}
	return max(known, p.set.partitions), nil
}

// widen makes sure that partition 0 knows of this partition before it has its
// first task.
func (p *partition) widen(ctx context.Context) error {
	if p.order > 0 || p.index == 0 {
		return nil
	}
	_, err := p.set.widest.Call(ctx, p.st, "0", p.set.partitions)
	return err
}

// share is what partition i of n may run of total.
func share(total, n, i int) int {
	s := total / n
	if i < total%n {
		s++
	}
	return max(s, 1)
}

// adopt takes over the executions that the engine found.
func (p *partition) adopt() {
	for _, x := range p.engine.Executions() {
		switch kind, num := subjectOf(x.Subject); kind {
		case taskSubject:
			p.opened[num] = active{token: x.Token}
		case deadSubject:
			p.calling++
		case emptySubject:
			p.emptying = true
		}
	}
}

// Subjects of the pool's executions: a task, a call of OnDead for a task, a call
// of OnEmpty.
const (
	taskSubject  = "task/"
	deadSubject  = "dead/"
	emptySubject = "empty"
)

func subjectOf(s string) (kind string, num uint64) {
	if s == emptySubject || len(s) < len(taskSubject) {
		return s, 0
	}
	num, _ = strconv.ParseUint(s[len(taskSubject):], 10, 64)
	return s[:len(taskSubject)], num
}

func subject(kind string, num uint64) string {
	return string(strconv.AppendUint(append(make([]byte, 0, 32), kind...), num, 10))
}

// TaskName is the id of a task in logs; a hook is named with the task that it is
// called for.
func (p *partition) TaskName(s string) string {
	switch kind, num := subjectOf(s); kind {
	case taskSubject:
		return p.id(num).String()
	case deadSubject:
		return "OnDead " + p.id(num).String()
	default:
		return "OnEmpty"
	}
}

func (p *partition) id(num uint64) TaskID { return TaskID{p.index, num} }

// Alarm is the engine's.
func (p *partition) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return p.engine.Alarm(ctx, info)
}

// turn runs fn as a turn that may change something.
func turn[R any](ctx context.Context, p *partition, fn func(ctx context.Context) (R, error)) (res R, err error) {
	err = p.engine.Turn(ctx, func(ctx context.Context) (err error) {
		res, err = fn(ctx)
		return err
	})
	return res, err
}

// Due begins what is due.
func (p *partition) Due(ctx context.Context, now time.Time) error {
	for _, step := range [...]func(context.Context, time.Time) error{p.promote, p.begin, p.call} {
		if err := step(ctx, now); err != nil {
			return err
		}
	}
	return nil
}

// Next is the earliest time at which Due has something to do.
func (p *partition) Next() time.Time {
	next := p.nextCall()
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

// since is a time at which what is ready was ready.
func (p *partition) since() time.Time { return time.Unix(0, p.changed) }

// earliest is the earlier time, where zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
