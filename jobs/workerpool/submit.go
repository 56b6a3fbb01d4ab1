package workerpool

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// A submission writes nothing before each task of it is admitted, because a turn
// that fails after its first write ends the activation, and with it what runs.

// submit adds a task: its row, its place, the counters and its idempotency key in
// one batch.
func (p *partition) submit(ctx context.Context, input []byte, o options) (TaskRef, error) {
	ref, known, err := p.repeated(ctx, &o)
	if known || err != nil {
		return ref, err
	}
	var all admission
	if err := p.admit(&all, &o, len(input)); err != nil {
		return TaskRef{}, err
	}
	if err := p.widen(ctx); err != nil {
		return TaskRef{}, err
	}
	return p.add(ctx, input, &o)
}

// submitAll adds the tasks of a batch, or none of them.
func (p *partition) submitAll(ctx context.Context, inputs [][]byte, all []options) ([]TaskRef, error) {
	refs, same, err := p.admitAll(ctx, inputs, all)
	if err != nil {
		return nil, err
	}
	if err := p.widen(ctx); err != nil {
		return nil, err
	}
	for i := range all {
		if err := p.countHeads(ctx, all[i].Key); err != nil {
			return nil, err
		}
	}
	for i := range all {
		if first, repeats := same[i]; repeats {
			refs[i] = TaskRef{ID: refs[first].ID, Repeated: true}
		}
		if refs[i].Repeated {
			continue
		}
		if refs[i], err = p.add(ctx, inputs[i], &all[i]); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

// admitAll admits the tasks of a batch. It returns the refs of those that are
// there already, and which tasks repeat an earlier one of the same batch.
func (p *partition) admitAll(ctx context.Context, inputs [][]byte, all []options) (refs []TaskRef, same map[int]int, err error) {
	refs, same = make([]TaskRef, len(all)), make(map[int]int)
	var a admission
	firsts := make(map[string]int)
	for i := range all {
		o, known := &all[i], false
		if refs[i], known, err = p.repeated(ctx, o); err != nil {
			return nil, nil, err
		}
		if known {
			continue
		}
		if first, repeats := o.earlier(firsts); repeats {
			same[i] = first
			continue
		}
		if err := p.admit(&a, o, len(inputs[i])); err != nil {
			return nil, nil, &refusedTask{i, err}
		}
		firsts[idempotentMark+o.Once], firsts[uniqueKeys+o.Unique] = i, i
	}
	return refs, same, nil
}

// earlier finds the task of the same batch that has the idempotency key or the
// unique key of o.
func (o *options) earlier(firsts map[string]int) (first int, ok bool) {
	if o.Once != "" {
		if first, ok = firsts[idempotentMark+o.Once]; ok {
			return first, true
		}
	}
	if o.Unique != "" {
		first, ok = firsts[uniqueKeys+o.Unique]
	}
	return first, ok
}

// refusedTask is why a batch was refused: its task at index was.
type refusedTask struct {
	index int
	err   error
}

func (r *refusedTask) Error() string { return fmt.Sprintf("task %d: %v", r.index, r.err) }
func (r *refusedTask) Unwrap() error { return r.err }

// repeated finds the task of an idempotency key, or the one that holds a unique key.
func (p *partition) repeated(ctx context.Context, o *options) (ref TaskRef, ok bool, err error) {
	var b []byte
	if o.Once != "" {
		b, ok, err = p.st.Marked(ctx, idempotentMark+o.Once)
	}
	if o.Unique != "" && !ok && err == nil {
		b, ok, err = p.st.Storage().Get(ctx, uniqueKeys+o.Unique)
	}
	if err != nil || !ok {
		return TaskRef{}, false, err
	}
	num, err := decodeNumber(b)
	return TaskRef{ID: p.id(num), Repeated: true}, true, err
}

// add stores a task that was admitted.
func (p *partition) add(ctx context.Context, input []byte, o *options) (TaskRef, error) {
	now := p.st.Now()
	num := p.order + 1
	r := &row{
		num: num, order: num, priority: o.Priority, key: o.Key, queue: o.Queue,
		enqueued: now.UnixNano(), notBefore: o.notBefore(now), input: input,
	}
	if err := p.versioned(ctx, num); err != nil {
		return TaskRef{}, err
	}
	if err := p.hold(ctx, r, o.Unique); err != nil {
		return TaskRef{}, err
	}
	if err := p.put(ctx, taskKey(num), r); err != nil {
		return TaskRef{}, err
	}
	if o.Once != "" {
		ttl := defaultTo(o.OnceFor, onceFor)
		if err := p.st.Mark(ctx, idempotentMark+o.Once, encodeNumber(num), ttl); err != nil {
			return TaskRef{}, err
		}
	}
	p.order = num
	p.submitted++
	p.pending++
	p.counters.partitions = max(p.counters.partitions, uint64(p.set.partitions))
	p.dirty = true
	return TaskRef{ID: p.id(num)}, p.join(ctx, r)
}

// hold gives a task a unique key, if it is to have one.
func (p *partition) hold(ctx context.Context, r *row, key string) error {
	r.rare.Unique = key
	if key == "" {
		return nil
	}
	return p.st.Storage().PutBytes(ctx, uniqueKeys+key, encodeNumber(r.num))
}

// holdAgain gives a dead letter that is replayed its unique key back, if no other task
// has it.
func (p *partition) holdAgain(ctx context.Context, r *row) error {
	if r.rare.Unique == "" {
		return nil
	}
	_, taken, err := p.st.Storage().Get(ctx, uniqueKeys+r.rare.Unique)
	if err != nil {
		return err
	}
	if taken {
		r.rare.Unique = ""
	}
	return p.hold(ctx, r, r.rare.Unique)
}

// join puts a task behind those of its key, or in its queue if it may enter.
func (p *partition) join(ctx context.Context, r *row) error {
	enters, err := p.chain(ctx, r)
	if err != nil || !enters {
		return err
	}
	return p.enter(ctx, r)
}

// admission is what the tasks that a turn has admitted are going to add.
type admission struct {
	tasks uint64
	bytes int // about what they write, and no less
}

// taskBytes is more than a task writes beside its input and its names: the keys
// and the fixed parts of its row and of its rows in a queue, in a chain, and of an
// idempotency key.
const taskBytes = 400

// reserved is the part of a row or a batch that admission leaves free, as a
// divisor: a row grows with each failure, and a turn begins tasks after it has
// added some.
const reserved = 8

// admit adds a task to those of the turn, or returns why it is not taken.
func (p *partition) admit(a *admission, o *options, inputBytes int) error {
	if err := p.set.known(o); err != nil {
		return err
	}
	rowBytes := taskBytes + inputBytes + 2*len(o.Key) + 2*len(o.Queue) + 2*len(o.Once) + 4*len(o.Unique)
	mostRow, mostBatch := p.st.MaxValueBytes()/reserved*(reserved-1), p.st.MaxBatchBytes()/reserved*(reserved-1)
	switch queued := p.pending + a.tasks; {
	case p.mode == Draining:
		return fmt.Errorf("%s: %w", p.st.ID(), ErrDraining)
	case queued >= uint64(share(p.set.maxQueued, p.set.partitions, p.index)):
		return fmt.Errorf("%s: %w: %d tasks are pending", p.st.ID(), ErrQueueFull, queued)
	case rowBytes > mostRow:
		return fmt.Errorf("%s: %w: a task of %d bytes, the limit is %d: an eighth of MaxValueBytes is for its failures", p.st.ID(), object.ErrValueTooLarge, rowBytes, mostRow)
	case a.bytes+rowBytes > mostBatch:
		return fmt.Errorf("%s: %w: %d bytes of tasks in a batch, the limit is %d: submit them in several", p.st.ID(), object.ErrBatchTooLarge, a.bytes+rowBytes, mostBatch)
	}
	a.tasks++
	a.bytes += rowBytes
	return nil
}

// known returns an error if the pool has no such queue.
func (s *settings) known(o *options) error {
	for _, q := range s.queues {
		if q.name == o.Queue {
			return nil
		}
	}
	return jobs.Invalidf("workerpool", "no queue is named %q: name it in Config.Queues", o.Queue)
}
