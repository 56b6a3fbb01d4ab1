package why

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
)

// Bounds of one look.
const (
	deepest = 16 // answers in a chain of Because
	looks   = 5  // at an object that changes meanwhile
)

// looker makes the facts of one answer and of all that it leads to.
type looker struct {
	Source
	seen map[string]bool // objects and tasks that the chain has passed: a circle ends there
}

// look returns the facts of an object.
func (l *looker) look(ctx context.Context, id storage.ID) (*facts, error) {
	f := &facts{id: id, now: l.now()}
	if err := id.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", object.ErrBadName, err)
	}
	if err := l.lookLive(ctx, f); err != nil {
		return nil, err
	}
	err := l.steadily(ctx, f, func(f *facts, o storage.Object) error { return l.rows(ctx, f, o) })
	if err != nil {
		return nil, err
	}
	return f, l.follow(ctx, f)
}

// lookTask returns the facts of a task of a pool.
func (l *looker) lookTask(ctx context.Context, pool string, id workerpool.TaskID) (*facts, error) {
	f := &facts{id: storage.ID{Class: pool, Name: fmt.Sprint(id.Partition)}, taskID: id.String(), now: l.now()}
	if err := f.id.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", object.ErrBadName, err)
	}
	if err := l.lookLive(ctx, f); err != nil {
		return nil, err
	}
	err := l.steadily(ctx, f, func(f *facts, o storage.Object) error { return l.task(f, o, id.Number) })
	if err != nil {
		return nil, err
	}
	return f, l.follow(ctx, f)
}

// steadily reads rows with fn until no turn has changed them meanwhile, so that the facts are of
// one moment. An object that changes without end is told as it was last. No row of a
// host that has ended can be read, so its facts are those of the store alone. So are those of an
// object with damaged rows, and the damage.
func (l *looker) steadily(ctx context.Context, f *facts, fn func(*facts, storage.Object) error) error {
	before := *f
	for n := 0; ; n++ {
		*f = before
		steady, err := l.once(f, fn)
		if err != nil && l.host != nil && l.store.Err() != nil {
			*f = before
			f.unread = true
			return l.lookLive(ctx, f)
		}
		if err != nil && damaged(err) {
			*f = before
			f.damage = err
			return nil
		}
		if steady || err != nil || n == looks {
			return err
		}
	}
}

// damaged reports whether an error tells of bytes that cannot be read, and not of a store that answers no more.
func damaged(err error) bool {
	return errors.Is(err, storage.ErrCorrupt) || errors.Is(err, alarm.ErrCorrupt)
}

// once reads rows with fn, and reports whether none has changed meanwhile.
func (l *looker) once(f *facts, fn func(*facts, storage.Object) error) (steady bool, err error) {
	o, err := l.store.Find(f.id)
	if err != nil {
		return false, err
	}
	was, err := l.stamp(o)
	if err != nil {
		return false, err
	}
	f.exists = o.Number != 0
	if err := fn(f, o); err != nil || l.host == nil {
		return true, err
	}
	if o, err = l.store.Find(f.id); err != nil {
		return false, err
	}
	is, err := l.stamp(o)
	return bytes.Equal(was, is), err
}

// stamp is made of the rows of an object of which each turn changes one.
func (l *looker) stamp(o storage.Object) ([]byte, error) {
	all := fmt.Append(nil, o.Number)
	row, _, err := l.store.Alarm(o)
	all = append(all, row...)
	for _, key := range [...]string{jobs.MetaKey, "c", "b", "run"} {
		value, _, bad := l.store.Data(nil, o, key)
		all = append(all, value...)
		err = errors.Join(err, bad)
	}
	return all, err
}

// rows reads the rows of an object.
func (l *looker) rows(ctx context.Context, f *facts, o storage.Object) error {
	in, err := object.NewReader(l.store).Inspect(ctx, f.id)
	if err != nil {
		return err
	}
	f.letters, f.alarm = len(in.DeadLetters), in.Alarm
	for i, d := range in.DeadLetters {
		if d.Kind == object.DeadAlarm {
			f.dead = &in.DeadLetters[i]
		}
	}
	if len(in.Events) > 0 {
		f.lastEvent = in.Events[0]
	}
	if !f.exists {
		return nil
	}
	if f.finding, err = recovery.Examine(l.store, o); err != nil {
		return err
	}
	if err := l.sort(f, o); err != nil {
		return err
	}
	if f.kind == aPartition {
		return l.hooks(f, o)
	}
	if err := l.executions(f, o); err != nil || f.run != nil || !in.Execution {
		return err
	}
	if f.kind == plainObject {
		f.run = &execution{Execution: engine.Execution{Began: in.ExecutionSince, Epoch: in.ExecutionEpoch}}
		f.run.alive = l.host != nil // the class alone knows whether its work goes on
	}
	return nil
}

// sort finds out which kind of object it is, and reads the rows of that kind.
func (l *looker) sort(f *facts, o storage.Object) (err error) {
	raw, _, err := l.store.Data(nil, o, jobs.MetaKey)
	if err != nil {
		return err
	}
	if f.meta.Read(f.id.Class, f.id.Name, raw) {
		f.kind, f.planned = aJob, l.planned[f.id.Class]
		switch f.meta.Type {
		case "debounce":
			f.buffer, _, err = debounce.LookAt(l.store, o)
		case "workflow":
			f.flow, _, err = workflow.LookAt(l.store, o)
		}
		return err
	}
	var ok bool
	if f.pool, ok, err = workerpool.LookPartition(l.store, o); ok || err != nil {
		f.kind = aPartition
		return err
	}
	if f.circuit, ok, err = breaker.LookAt(l.store, o); ok {
		f.kind = aBreaker
	}
	return err
}

// executions reads the open executions of a job.
func (l *looker) executions(f *facts, o storage.Object) error {
	if f.kind != aJob {
		return nil
	}
	return l.walk(o, func(x engine.Execution) {
		if x.Hook {
			f.hook = l.judged(f, x)
		} else {
			f.run = l.judged(f, x)
		}
	})
}

// hooks reads the open calls of hooks of a partition, and looks for a task that was cut off.
func (l *looker) hooks(f *facts, o storage.Object) error {
	return l.walk(o, func(x engine.Execution) {
		switch {
		case x.Hook:
			f.hook = l.judged(f, x)
		case f.run == nil && !x.Outside:
			if e := l.judged(f, x); !e.alive {
				f.run = e
			}
		}
	})
}

func (l *looker) walk(o storage.Object, fn func(engine.Execution)) error {
	var bad error
	err := l.store.WalkData(o, "x/", "x0", func(key, value []byte) bool {
		var x engine.Execution
		if x, bad = engine.DecodeExecution(string(key), value); bad == nil {
			fn(x)
		}
		return bad == nil
	})
	return errors.Join(err, bad)
}

// judged asks recovery.Check about an execution that does not run in this process. The
// limits are the defaults, because those of the definition stand in no row.
func (l *looker) judged(f *facts, x engine.Execution) *execution {
	e := &execution{Execution: x}
	if e.alive = l.alive(f, e); e.alive {
		return e
	}
	s := recovery.Snapshot{
		Now: f.now, Epoch: l.store.Epoch(), Began: l.store.OpenedAt().Round(0).UTC(), Open: true, OpenEpoch: x.Epoch,
		Since: x.Began, Losses: x.Run.Losses, Free: f.store.previous.Clean && f.store.previous.Epoch == x.Epoch,
		OwnerLost: l.store.OwnerLost() && f.store.previous.Epoch == x.Epoch, OwnersLost: x.Run.OwnersLost,
	}
	if f.live != nil {
		s.Hold = f.live.RecoveryHold
	}
	if x.Outside {
		s.Until = x.Lease
	}
	e.loss = recovery.Check(s, recovery.Limits{})
	return e
}

// alive reports whether the work of an execution runs in this process, or is about to.
func (l *looker) alive(f *facts, x *execution) bool {
	switch {
	case f.live == nil || x.Epoch != l.store.Epoch():
		return false
	case f.heldBack(x), f.now.Sub(x.Began) < time.Second:
		return true
	}
	return slices.Contains(f.live.Works, "execution") || len(f.live.Works) == object.MaxExplained
}

// task reads the rows of a task.
func (l *looker) task(f *facts, o storage.Object, number uint64) (err error) {
	f.kind = aTask
	if f.exists {
		if f.pool, f.exists, err = workerpool.LookPartition(l.store, o); err != nil || !f.exists {
			return err
		}
	}
	if !f.exists {
		return nil
	}
	if f.task, f.exists, err = workerpool.LookTask(l.store, o, number, f.pool.Executions); err != nil || !f.exists {
		return err
	}
	for _, x := range f.pool.Executions {
		if x.Number == number {
			f.run = l.judged(f, x.Execution)
		}
	}
	if f.run != nil || f.task.Status.State != workerpool.Pending {
		return nil
	}
	f.alarm, err = l.alarmOf(o)
	return err
}

// alarmOf reads the alarm of a partition.
func (l *looker) alarmOf(o storage.Object) (*object.AlarmState, error) {
	value, ok, err := l.store.Alarm(o)
	if err != nil || !ok {
		return nil, err
	}
	row, err := alarm.DecodeRow(value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.ID, err)
	}
	return &object.AlarmState{Due: row.Due, Scheduled: row.Scheduled, Attempts: row.Attempt, Crashes: row.Crashes, LastError: row.LastError, OwnersLost: row.OwnersLost}, nil
}

// follow looks at those that f waits for, up to the bound of a chain.
func (l *looker) follow(ctx context.Context, f *facts) (err error) {
	name := f.id.String() + " " + f.taskID
	if l.seen[name] || len(l.seen) >= deepest {
		return nil
	}
	l.seen[name] = true
	if number := f.firstAhead(); number > 0 {
		f.ahead, err = l.lookTask(ctx, f.id.Class, workerpool.TaskID{Partition: f.task.Status.ID.Partition, Number: number})
	}
	if w := f.waitOf(waitChild); w != nil && err == nil {
		if class, child, ok := strings.Cut(w.Name, "/"); ok {
			f.child, err = l.look(ctx, storage.ID{Class: class, Name: child})
		}
	}
	if id, ok := f.waitsForObject(); ok && err == nil {
		f.other, err = l.look(ctx, id)
	}
	return err
}

// firstAhead is the task that a task waits for: the first of its key, or the one that has run for
// the longest time; 0: none.
func (f *facts) firstAhead() uint64 {
	switch {
	case f.kind != aTask:
	case f.task.Spot == workerpool.BehindKey:
		return f.task.First
	case f.waits() && len(f.pool.Executions) > 0:
		return f.pool.Executions[0].Number
	}
	return 0
}
