package workerpool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Rows reads the stored rows of objects. A *object.Host does so for a program that runs, and an
// object.Reader for a directory.
type Rows interface {
	Objects(ctx context.Context, class string, o object.ObjectsOptions) ([]object.ObjectInfo, error)
	Keys(ctx context.Context, id storage.ID, o object.KeysOptions) (object.KeyPage, error)
}

// TasksOptions say which tasks Tasks lists. All of them apply together, and the zero value lists
// the first object.DefaultPage tasks. Its JSON is the argument of the view tasks.
type TasksOptions struct {
	// States are those of the tasks: Pending, Running or Dead. None means all three.
	States []State `json:"states,omitempty"`
	// Queue lists only the tasks of that queue. Nil means all queues, because the default
	// queue has the empty name.
	Queue *string `json:"queue,omitempty"`
	// Key lists only the tasks with that key. Empty means all tasks.
	Key string `json:"key,omitempty"`
	// After begins behind a page: it is the Next of that page.
	After string `json:"after,omitempty"`
	// Limit is how many tasks a page has at most. Zero means object.DefaultPage; it may be up
	// to object.MaxPage.
	Limit int `json:"limit,omitempty"`
}

// TaskInfo is a task as Tasks lists it, from its stored rows.
type TaskInfo struct {
	ID         TaskID      `json:"id"`
	State      State       `json:"state"`
	Key        string      `json:"key,omitempty"`
	Queue      string      `json:"queue,omitempty"`
	Priority   int         `json:"priority,omitempty"`
	Enqueued   time.Time   `json:"enqueued"`
	NotBefore  time.Time   `json:"notBefore,omitzero"`   // of a pending task; zero: any time
	Attempt    int         `json:"attempt,omitempty"`    // as Status.Attempt
	Cancelling bool        `json:"cancelling,omitempty"` // Cancel was called while it ran
	LastError  string      `json:"lastError,omitempty"`  // of its last failure
	Died       time.Time   `json:"died,omitzero"`        // of a dead task
	Reason     jobs.Reason `json:"reason,omitempty"`     // of a dead task
	Stale      bool        `json:"stale,omitempty"`      // of a dead task: it died longer ago than Retention.StaleAfter
}

// TaskPage is a page of tasks, in the order of their ids. A page may have fewer tasks than its
// limit, or none, and not be the last one, because it reads 4,096 rows or 16 MiB at most.
type TaskPage struct {
	Tasks []TaskInfo `json:"tasks,omitempty"`
	// Next is where the next page begins, to be passed as TasksOptions.After: opaque text. It
	// is empty after the last page.
	Next string `json:"next,omitempty"`
}

// Tasks is the function Tasks for this pool.
//
//go:noinline
func (p *control) Tasks(ctx context.Context, from Rows, o TasksOptions) (TaskPage, error) {
	return Tasks(ctx, from, p.pool.set.name, o)
}

// Tasks lists a page of the pending, running and dead tasks of the pool with a name, by partition
// and number (W11). It reads stored rows alone: it runs no code, activates no partition, and needs
// no definition of the pool. Done and cancelled tasks are not listed, because they are kept
// for a time only; Pool.Status tells of one of them.
//
// A task that keeps its state is in exactly one page of those that mean it, and none is in two. A task is
// running while its execution is open. In a directory whose program was killed that is an
// execution which the next open recovers. It returns a jobs.ErrInvalid for options that do not fit
// and for a class that is no pool. A pool without tasks has an empty page.
func Tasks(ctx context.Context, from Rows, pool string, o TasksOptions) (page TaskPage, err error) {
	host, ok := from.(interface {
		Read(ctx context.Context, f func(object.Reader) error) error
	})
	if !ok {
		return tasks(ctx, from, pool, o)
	}
	err = host.Read(ctx, func(r object.Reader) (err error) { // one wait for the disk
		page, err = tasks(ctx, r, pool, o)
		return err
	})
	return page, err
}

// tasks is Tasks, by as many reads as it takes.
func tasks(ctx context.Context, from Rows, pool string, o TasksOptions) (TaskPage, error) {
	at, err := o.check()
	if err != nil {
		return TaskPage{}, fmt.Errorf("%s: Tasks: %w", pool, err)
	}
	parts, err := partitionsIn(ctx, from, pool)
	if err != nil {
		return TaskPage{}, err
	}
	l := &listing{ctx: ctx, from: from, pool: pool, o: o}
	for i, part := range parts {
		if part < at.Partition {
			continue
		}
		after := uint64(0)
		if part == at.Partition {
			after = at.Number
		}
		if err := l.partition(part, after); err != nil || l.page.Next != "" {
			return l.page, err
		}
		if i+1 < len(parts) && l.readEnough() {
			l.page.Next = TaskID{Partition: parts[i+1]}.String()
			return l.page, nil
		}
	}
	return l.page, nil
}

// check sets the defaults of the options and returns the place behind which the page begins.
func (o *TasksOptions) check() (at TaskID, err error) {
	for _, s := range o.States {
		if s != Pending && s != Running && s != Dead {
			return at, fmt.Errorf("%w: state %s: tasks are listed that are pending, running or dead", jobs.ErrInvalid, s)
		}
	}
	if o.Limit < 0 || o.Limit > object.MaxPage {
		return at, fmt.Errorf("%w: limit %d is not from 0 to %d", jobs.ErrInvalid, o.Limit, object.MaxPage)
	}
	o.Limit = cmp.Or(o.Limit, object.DefaultPage)
	if o.After == "" {
		return at, nil
	}
	part, number, _ := strings.Cut(o.After, "-")
	p, err1 := strconv.Atoi(part)
	n, err2 := strconv.ParseUint(number, 10, 64)
	at = TaskID{p, n}
	if err1 != nil || err2 != nil || at.String() != o.After || p < 0 {
		return at, fmt.Errorf("%w: after %q is the end of no page", jobs.ErrInvalid, o.After)
	}
	return at, nil
}

// wants reports whether tasks in a state are listed.
func (o *TasksOptions) wants(s State) bool { return len(o.States) == 0 || slices.Contains(o.States, s) }

// partitionsIn returns the numbers of the partitions that a pool has stored, in order.
func partitionsIn(ctx context.Context, from Rows, pool string) ([]int, error) {
	var parts []int
	for o := (object.ObjectsOptions{Limit: object.MaxPage}); ; {
		found, err := from.Objects(ctx, pool, o)
		if err != nil {
			return nil, err
		}
		for _, info := range found {
			n, err := strconv.Atoi(info.ID.Name)
			if err != nil || n < 0 || n >= maxPartitions || strconv.Itoa(n) != info.ID.Name {
				return nil, fmt.Errorf("%w: class %s is no worker pool: it has an object %q", jobs.ErrInvalid, pool, info.ID.Name)
			}
			parts = append(parts, n)
		}
		if len(found) < o.Limit {
			slices.Sort(parts)
			return parts, nil
		}
		o.After = found[len(found)-1].ID.Name
	}
}

// Bounds of a page, and the rows that are read at a time.
const (
	maxTasksRead     = 4096
	maxTaskBytesRead = 16 << 20
	tasksAtOnce      = 256
)

// listing is one call of Tasks.
type listing struct {
	ctx  context.Context
	from Rows
	pool string
	o    TasksOptions

	page  TaskPage
	read  int // rows
	bytes int // of these rows
}

// readEnough reports whether the page has reached a bound of its reading.
func (l *listing) readEnough() bool { return l.read >= maxTasksRead || l.bytes >= maxTaskBytesRead }

// add counts a row that was read.
func (l *listing) add(k object.KeyInfo) { l.read, l.bytes = l.read+1, l.bytes+len(k.Value) }

// partition lists the tasks of a partition with numbers greater than after.
//
// Live and dead tasks are two ranges. It reads some rows of each and lists all tasks up to the
// number up to which both ranges are known; then it goes on behind that number.
func (l *listing) partition(part int, after uint64) error {
	id := storage.ID{Class: l.pool, Name: strconv.Itoa(part)}
	if err := l.isPartition(id); err != nil {
		return err
	}
	runs, err := l.running(id)
	if err != nil {
		return err
	}
	few, isFew, err := l.few(id, runs)
	if err != nil {
		return err
	}
	for {
		live, liveEnd, err := l.live(id, after, few, isFew)
		if err != nil {
			return err
		}
		dead, deadEnd, err := l.rows(id, deadPrefix, after, l.o.wants(Dead))
		if err != nil {
			return err
		}
		end := min(liveEnd, deadEnd)
		if l.list(part, merged(live, dead, end), runs) || end == math.MaxUint64 {
			return nil
		}
		if after = end; l.readEnough() {
			l.page.Next = TaskID{part, after}.String()
			return nil
		}
	}
}

// isPartition returns a jobs.ErrInvalid if the object has no counters of a partition.
func (l *listing) isPartition(id storage.ID) error {
	found, err := l.from.Keys(l.ctx, id, object.KeysOptions{Prefix: countersKey, Limit: 1, Values: true})
	if err != nil || len(found.Keys) == 0 {
		return err
	}
	if found.Keys[0].Key != countersKey || new(counters).decode(found.Keys[0].Value, new(lines)) != nil {
		return fmt.Errorf("%w: %s is no partition of a worker pool", jobs.ErrInvalid, id)
	}
	return nil
}

// running returns the runs of the open executions of tasks, by number. It reads none if dead
// tasks alone are wanted, because those have none.
func (l *listing) running(id storage.ID) (map[uint64]jobs.Run, error) {
	if !l.o.wants(Pending) && !l.o.wants(Running) {
		return nil, nil
	}
	runs := make(map[uint64]jobs.Run)
	for o := (object.KeysOptions{Prefix: engine.ExecutionPrefix, Limit: object.MaxPage, Values: true}); ; {
		found, err := l.from.Keys(l.ctx, id, o)
		if err != nil {
			return nil, err
		}
		for _, k := range found.Keys {
			l.add(k)
			x, err := engine.DecodeExecution(k.Key, k.Value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", id, err)
			}
			if kind, num := subjectOf(x.Subject); kind == taskSubject {
				runs[num] = x.Run
			}
		}
		if found.Next == "" {
			return runs, nil
		}
		o.Start = found.Next
	}
}

// few returns the numbers of the pending and running tasks that may be listed, in order, if they are known without a
// look at all of them: those in the chain of a key, or those that run. It reports whether they are known; the chain of
// a key may be longer than one read.
func (l *listing) few(id storage.ID, runs map[uint64]jobs.Run) (nums []uint64, known bool, err error) {
	switch {
	case !l.o.wants(Pending) && !l.o.wants(Running):
		return nil, true, nil
	case !l.o.wants(Pending):
		nums = slices.Collect(maps.Keys(runs))
	case l.o.Key == "":
		return nil, false, nil
	default:
		found, err := l.from.Keys(l.ctx, id, object.KeysOptions{Prefix: string(chainOf(l.o.Key)), Limit: object.MaxPage, Values: true})
		if err != nil || found.Next != "" {
			return nil, false, err
		}
		for _, k := range found.Keys {
			l.add(k)
			link, err := decodeLink(k.Key, k.Value)
			if err != nil {
				return nil, false, fmt.Errorf("%s: %w", id, err)
			}
			nums = append(nums, link.num)
		}
	}
	slices.Sort(nums)
	return nums, true, nil
}

// live reads rows of pending and running tasks: of the few if those are known, because a queue may be long. It ends a
// step at the bound of the bytes too, because inputs may be large.
func (l *listing) live(id storage.ID, after uint64, few []uint64, isFew bool) (rows []*row, end uint64, err error) {
	if !isFew {
		return l.rows(id, taskPrefix, after, true)
	}
	first, found := slices.BinarySearch(few, after)
	if found {
		first++
	}
	for i, num := range few[first:] {
		if i == tasksAtOnce || i > 0 && l.bytes >= maxTaskBytesRead {
			return rows, few[first+i-1], nil
		}
		found, err := l.from.Keys(l.ctx, id, object.KeysOptions{Prefix: taskKey(num), Limit: 1, Values: true})
		if err == nil {
			rows, err = l.decode(id, rows, found.Keys)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	return rows, math.MaxUint64, nil
}

// rows reads task rows with a prefix and numbers greater than after, and returns the number up
// to which it has read all.
func (l *listing) rows(id storage.ID, prefix string, after uint64, wanted bool) (rows []*row, end uint64, err error) {
	if !wanted || after == math.MaxUint64 {
		return nil, math.MaxUint64, nil
	}
	found, err := l.from.Keys(l.ctx, id, object.KeysOptions{Prefix: prefix, Start: numbered(prefix, after+1), Limit: tasksAtOnce, Values: true})
	if err == nil {
		rows, err = l.decode(id, nil, found.Keys)
	}
	end = math.MaxUint64
	if err == nil && found.Next != "" {
		end = rows[len(rows)-1].num
	}
	return rows, end, err
}

// decode appends task rows of a partition.
func (l *listing) decode(id storage.ID, rows []*row, keys []object.KeyInfo) ([]*row, error) {
	for _, k := range keys {
		l.add(k)
		num, err := numberOf(k.Key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		r, err := decodeRow(num, k.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: task %s-%d: %w", id, id.Name, num, err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// merged returns the rows up to a number, in order. A task that is in both has died between the
// two reads, so it is dead.
func merged(live, dead []*row, end uint64) []*row {
	all := slices.Concat(dead, live)
	slices.SortStableFunc(all, func(a, b *row) int { return cmp.Compare(a.num, b.num) })
	all = slices.CompactFunc(all, func(a, b *row) bool { return a.num == b.num })
	return slices.DeleteFunc(all, func(r *row) bool { return r.num > end })
}

// list appends the tasks that the options mean, and reports whether the page is full.
func (l *listing) list(part int, rows []*row, runs map[uint64]jobs.Run) (full bool) {
	for _, r := range rows {
		if run, ok := runs[r.num]; ok && r.state == Pending {
			r.state, r.notBefore, r.rare.Run = Running, 0, run
		}
		if !l.o.wants(r.state) || l.o.Queue != nil && *l.o.Queue != r.queue || l.o.Key != "" && l.o.Key != r.key {
			continue
		}
		l.page.Tasks = append(l.page.Tasks, r.info(part))
		if len(l.page.Tasks) == l.o.Limit {
			l.page.Next = TaskID{part, r.num}.String()
			return true
		}
	}
	return false
}

// info tells of a task of a partition.
func (r *row) info(part int) TaskInfo {
	t := TaskInfo{
		ID: TaskID{part, r.num}, State: r.state, Key: r.key, Queue: r.queue, Priority: r.priority,
		Enqueued: timeOf(r.enqueued), NotBefore: timeOf(r.notBefore), Attempt: r.seen(),
		Cancelling: r.rare.Cancelling, Died: timeOf(r.endedAt), Reason: r.rare.Reason, Stale: r.rare.Stale,
	}
	if n := len(r.rare.Failures); n > 0 {
		t.LastError = r.rare.Failures[n-1].Error
	}
	return t
}

// tasksDescribed is Tasks for the view of the same name.
func (p *pool) tasksDescribed(ctx context.Context, from object.Caller, _ string, o TasksOptions) (TaskPage, error) {
	rows, ok := from.(Rows)
	if !ok {
		return TaskPage{}, errors.New("tasks are listed for a host, and not in a turn of an object")
	}
	return (&control{p}).Tasks(ctx, rows, o)
}
