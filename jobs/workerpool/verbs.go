package workerpool

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// Validator is implemented by inputs that can be wrong. A task with an input that
// is refused is not taken.
type Validator interface{ Validate() error }

// Enqueue adds a task. When it returns without an error the task is stored, and
// will be done, dead or cancelled. Errors: what In's Validate returns,
// jobs.ErrInvalid, ErrQueueFull, ErrDraining, and object.ErrValueTooLarge if the
// encoded input is larger than seven eighths of MaxValueBytes. A refused task
// leaves the pool, and what runs in it, as they were.
func (p *Pool[In, Out]) Enqueue(ctx context.Context, from object.Caller, in In, opts ...Option) (TaskRef, error) {
	s := submission[In]{in, optionsOf(opts)}
	if err := p.check(&s); err != nil {
		return TaskRef{}, err
	}
	return p.enqueue.Call(ctx, from, p.route(from, &s), s)
}

// check returns what is wrong with a task.
func (p *Pool[In, Out]) check(s *submission[In]) error {
	if p.validates {
		if v, ok := any(s.In).(Validator); ok {
			if err := v.Validate(); err != nil {
				return err
			}
		}
	}
	if err := s.Options.validate(); err != nil {
		return err
	}
	return p.set.known(&s.Options)
}

// mayValidate reports whether some In is a Validator.
func mayValidate[In any]() bool {
	t := reflect.TypeFor[In]()
	return t.Kind() == reflect.Interface || t.Implements(reflect.TypeFor[Validator]())
}

// Item is a task of a batch.
type Item[In any] struct {
	In      In
	Options []Option
}

// EnqueueBatch adds up to 10,000 tasks, in one commit for each partition. It
// returns their ids in the order of items. A partition takes its part whole or
// refuses it whole, before it writes anything, and the error names the index of the
// item that it refuses. If a partition refuses its part, or the call fails, the ids
// of the tasks that are not known to be taken are zero; with idempotency keys the
// call can be repeated as it is. Errors: those of Enqueue, and object.ErrBatchTooLarge
// if the part of one partition is larger than seven eighths of MaxBatchBytes.
func (p *Pool[In, Out]) EnqueueBatch(ctx context.Context, from object.Caller, items []Item[In]) ([]TaskRef, error) {
	if len(items) > maxBatch {
		return nil, jobs.Invalidf("workerpool", "%d tasks in a batch, the most are %d", len(items), maxBatch)
	}
	var parts []batchPart[In]
	for i, item := range items {
		s := submission[In]{item.In, optionsOf(item.Options)}
		if err := p.check(&s); err != nil {
			return nil, &refusedTask{i, err}
		}
		parts = addToPart(parts, p.route(from, &s), i, s)
	}
	refs := make([]TaskRef, len(items))
	var errs error
	for _, part := range parts {
		got, err := p.batch.Call(ctx, from, part.object, part.tasks)
		if bad := (*refusedTask)(nil); errors.As(err, &bad) {
			err = &refusedTask{part.index[bad.index], bad.err}
		}
		errs = errors.Join(errs, err)
		for i, ref := range got {
			refs[part.index[i]] = ref
		}
	}
	return refs, errs
}

// batchPart is the part of a batch that goes to one partition.
type batchPart[In any] struct {
	object string
	index  []int // of the tasks in the batch
	tasks  []submission[In]
}

func addToPart[In any](parts []batchPart[In], object string, i int, s submission[In]) []batchPart[In] {
	for k := range parts {
		if p := &parts[k]; p.object == object {
			p.index, p.tasks = append(p.index, i), append(p.tasks, s)
			return parts
		}
	}
	return append(parts, batchPart[In]{object, []int{i}, []submission[In]{s}})
}

// Status returns what the pool knows of a task. Error: jobs.ErrNotFound, also for
// a task that ended more than Config.KeepDone ago.
func (p *Pool[In, Out]) Status(ctx context.Context, from object.Caller, id TaskID) (Info[Out], error) {
	return p.info.Call(ctx, from, id.object(), id.Number)
}

// Wait returns the output of a task when it is done, or ErrFailed or ErrCancelled
// when it has ended so. While the host shuts down it waits for a task that runs in
// this process; for any other it ends with object.ErrShutdown.
func (p *Pool[In, Out]) Wait(ctx context.Context, from object.Caller, id TaskID) (Out, error) {
	info, err := again(func() (Info[Out], error) { return p.wait.Call(ctx, from, id.object(), id.Number) })
	if err == nil && info.DecodeError != "" {
		err = fmt.Errorf("workerpool: %s: read Info.Raw with Status", info.DecodeError)
	}
	if err != nil {
		return info.Result, err
	}
	switch info.State {
	case Dead:
		last := ""
		if n := len(info.Failures); n > 0 {
			last = ": " + info.Failures[n-1].Error
		}
		return info.Result, fmt.Errorf("task %s: %w%s", id, ErrFailed, last)
	case Cancelled:
		return info.Result, fmt.Errorf("task %s: %w", id, ErrCancelled)
	}
	return info.Result, nil
}

// again repeats a wait that was cut off because the partition left memory.
func again[R any](wait func() (R, error)) (R, error) {
	for {
		r, err := wait()
		if !errors.Is(err, object.ErrReset) {
			return r, err
		}
	}
}

// Cancel takes a task back and returns its state after that: Cancelled for one
// that was pending, for certain; Running for one that runs, whose context ends
// and which is done, if it returns no error all the same, and cancelled
// otherwise; or the state in which it had ended. Error: jobs.ErrNotFound.
func (p *Pool[In, Out]) Cancel(ctx context.Context, from object.Caller, id TaskID) (State, error) {
	return p.cancel.Call(ctx, from, id.object(), id.Number)
}

// Stats counts the tasks. The partitions are read one after the other.
func (p *Pool[In, Out]) Stats(ctx context.Context, from object.Caller) (Stats, error) {
	var sum Stats
	err := p.objects(ctx, from, func(name string) error {
		part, err := p.stats.Call(ctx, from, name, struct{}{})
		sum.add(part)
		sum.Partitions = append(sum.Partitions, part)
		return err
	})
	if err == nil {
		sum.Mode = sum.Partitions[0].Mode
	}
	return sum, err
}

// Pause lets no further task begin until Resume; what runs goes on, and tasks are
// taken. It ends a Drain.
func (p *Pool[In, Out]) Pause(ctx context.Context, from object.Caller) error {
	return p.setMode(ctx, from, Paused)
}

// Resume ends a Pause or a Drain.
func (p *Pool[In, Out]) Resume(ctx context.Context, from object.Caller) error {
	return p.setMode(ctx, from, Open)
}

// Drain takes no tasks any more (ErrDraining), until Resume, and returns when all
// there were have ended. It ends a Pause. If ctx ends before, or the host shuts down
// while tasks are pending or claimed (object.ErrShutdown), the pool goes on draining;
// a later Drain waits again.
func (p *Pool[In, Out]) Drain(ctx context.Context, from object.Caller) error {
	if err := p.setMode(ctx, from, Draining); err != nil {
		return err
	}
	return p.objects(ctx, from, func(name string) error {
		_, err := again(func() (struct{}, error) { return p.waitEmpty.Call(ctx, from, name, struct{}{}) })
		return err
	})
}

func (p *Pool[In, Out]) setMode(ctx context.Context, from object.Caller, m Mode) error {
	return p.objects(ctx, from, func(name string) error {
		_, err := p.mode.Call(ctx, from, name, m)
		return err
	})
}

// Discard cancels the tasks that are pending now and returns how many. Tasks that
// begin while it goes on are left to run.
func (p *Pool[In, Out]) Discard(ctx context.Context, from object.Caller) (int, error) {
	total := 0
	err := p.objects(ctx, from, func(name string) error {
		for part := (discardPart{}); ; {
			res, err := p.discard.Call(ctx, from, name, part)
			total += res.Dropped
			if err != nil || res.Last == 0 {
				return err
			}
			part = discardPart{res.After, res.Last}
		}
	})
	return total, err
}

// pageBytes is from how many bytes of inputs on DeadLetters ends a page.
const pageBytes = 4 << 20

// DeadLetters lists up to limit dead letters after one, by partition and number;
// the zero TaskID is before all of them. It returns fewer, but at least one, where
// their inputs are many bytes: from 4 MiB on. Only an empty page is the last one.
func (p *Pool[In, Out]) DeadLetters(ctx context.Context, from object.Caller, after TaskID, limit int) ([]DeadLetter[In], error) {
	var all []DeadLetter[In]
	n, err := p.partitions(ctx, from)
	bytes := 0
	for i := after.Partition; err == nil && i < n && len(all) < limit && bytes < pageBytes; {
		g := page{Limit: limit - len(all)}
		if i == after.Partition {
			g.After = after.Number
		}
		var some lettersPage[In]
		some, err = p.letters.Call(ctx, from, TaskID{Partition: i}.object(), g)
		if len(some.Letters) == 0 {
			i++
			continue
		}
		bytes += some.Bytes
		all = append(all, some.Letters...)
		after = all[len(all)-1].ID
	}
	return all, err
}

// lettersPage is dead letters of one partition, and how large they are.
type lettersPage[In any] struct {
	Letters []DeadLetter[In] `json:"letters,omitempty"`
	Bytes   int              `json:"bytes,omitempty"`
}

// Replay makes dead letters pending again, with fresh attempts, behind the other
// tasks of their queues and keys, as many in a turn as fit. It returns how many. Of a
// partition with an id that is no dead letter none is replayed, and the error is
// jobs.ErrNotFound; so it is if another caller takes one of them meanwhile, and then
// those before it are replayed.
func (p *Pool[In, Out]) Replay(ctx context.Context, from object.Caller, ids ...TaskID) (int, error) {
	return eachPart(ids, func(name string, nums []uint64) (int, error) {
		return lettersIn(ctx, from, p.replay, name, lettersPart{Numbers: nums})
	})
}

// ReplayAll replays the dead letters there are.
func (p *Pool[In, Out]) ReplayAll(ctx context.Context, from object.Caller) (int, error) {
	total := 0
	err := p.objects(ctx, from, func(name string) error {
		n, err := lettersIn(ctx, from, p.replay, name, lettersPart{All: true})
		total += n
		return err
	})
	return total, err
}

// DiscardDead removes dead letters; their tasks count as cancelled from then on.
// It returns how many, and has the error of Replay.
func (p *Pool[In, Out]) DiscardDead(ctx context.Context, from object.Caller, ids ...TaskID) (int, error) {
	return eachPart(ids, func(name string, nums []uint64) (int, error) {
		return lettersIn(ctx, from, p.discardDead, name, lettersPart{Numbers: nums})
	})
}

// lettersIn does something to the dead letters of one partition, turn after turn.
func lettersIn(ctx context.Context, from object.Caller, m *object.Method[lettersPart, lettersTaken], name string, part lettersPart) (total int, err error) {
	for {
		took, err := m.Call(ctx, from, name, part)
		total += took.Count
		if err != nil || took.Left <= 0 {
			return total, err
		}
		part.Known, part.After, part.Most = true, took.Last, took.Left
		if !part.All {
			part.Numbers = part.Numbers[took.Count:]
		}
	}
}

// eachPart calls f with the tasks of each partition, each once.
func eachPart(ids []TaskID, f func(name string, nums []uint64) (int, error)) (total int, errs error) {
	var parts []batchPart[uint64]
	seen := make(map[TaskID]bool, len(ids))
	for i, id := range ids {
		if !seen[id] {
			seen[id] = true
			parts = addToPart(parts, id.object(), i, submission[uint64]{In: id.Number})
		}
	}
	for _, part := range parts {
		nums := make([]uint64, len(part.tasks))
		for i, t := range part.tasks {
			nums[i] = t.In
		}
		n, err := f(part.object, nums)
		total += n
		errs = errors.Join(errs, err)
	}
	return total, errs
}
