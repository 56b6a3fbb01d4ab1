package workerpool

import (
	"cmp"
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// A submission checks all its tasks before it writes anything. A turn that
// fails after its first write resets the instance, which would cancel the
// running tasks of the partition because of one refused submission. The way of
// a submission:
//
//  1. repeated looks for the task of the idempotency key or the unique key.
//  2. admit checks the mode, the queue, MaxQueued and the sizes.
//  3. widen tells partition 0 of a partition that is new.
//  4. add stores the task, its keys and the counters.
//  5. join puts it in the chain of its key, or directly in its queue.

// submitOne is submit as a turn, and submitBatch submitAll.
func (p *partition) submitOne(ctx context.Context, input []byte, o options) (TaskRef, error) {
	return turn(ctx, p, func(ctx context.Context) (TaskRef, error) { return p.submit(ctx, input, o) })
}

func (p *partition) submitBatch(ctx context.Context, inputs [][]byte, all []options) ([]TaskRef, error) {
	return turn(ctx, p, func(ctx context.Context) ([]TaskRef, error) { return p.submitAll(ctx, inputs, all) })
}

// submit adds one task and returns its id, or the id of the task that it
// repeats.
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

// admitAll checks the tasks of a batch. It returns the refs of those that exist
// already, and maps each task that repeats an earlier one of the batch to that
// one.
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
		firsts[oncePrefix+o.Once], firsts[uniquePrefix+o.Unique] = i, i
	}
	return refs, same, nil
}

// earlier finds an earlier task of the same batch with the idempotency key or
// the unique key of o.
func (o *options) earlier(firsts map[string]int) (first int, ok bool) {
	if o.Once != "" {
		if first, ok = firsts[oncePrefix+o.Once]; ok {
			return first, true
		}
	}
	if o.Unique != "" {
		first, ok = firsts[uniquePrefix+o.Unique]
	}
	return first, ok
}

// refusedTask is the refusal of a batch: it names the index of the refused
// task.
type refusedTask struct {
	index int
	err   error
}

func (r *refusedTask) Error() string { return fmt.Sprintf("task %d: %v", r.index, r.err) }
func (r *refusedTask) Unwrap() error { return r.err }

// repeated finds the task that was submitted under the idempotency key of o, or
// the one that holds its unique key.
func (p *partition) repeated(ctx context.Context, o *options) (ref TaskRef, ok bool, err error) {
	var b []byte
	if o.Once != "" {
		b, ok, err = p.st.Marked(ctx, oncePrefix+o.Once)
	}
	if o.Unique != "" && !ok && err == nil {
		b, ok, err = p.st.Storage().Get(ctx, uniquePrefix+o.Unique)
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
	num := p.nextOrder()
	r := &row{
		num: num, order: num, priority: o.Priority, key: o.Key, queue: o.Queue,
		enqueued: now.UnixNano(), notBefore: o.notBefore(now), input: input,
	}
	if url := o.Webhook; url != "" { // a copy, because the address of a field would keep all options in the heap
		r.rare.Webhook = &url
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
		ttl := cmp.Or(o.OnceFor, onceFor)
		if err := p.st.Mark(ctx, oncePrefix+o.Once, encodeNumber(num), ttl); err != nil {
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

// hold gives a task its unique key. An empty key is none.
func (p *partition) hold(ctx context.Context, r *row, key string) error {
	r.rare.Unique = key
	if key == "" {
		return nil
	}
	return p.st.Storage().PutBytes(ctx, uniquePrefix+key, encodeNumber(r.num))
}

// holdAgain gives a replayed dead letter its unique key back, unless another
// task holds it.
func (p *partition) holdAgain(ctx context.Context, r *row) error {
	if r.rare.Unique == "" {
		return nil
	}
	_, taken, err := p.st.Storage().Get(ctx, uniquePrefix+r.rare.Unique)
	if err != nil {
		return err
	}
	if taken {
		r.rare.Unique = ""
	}
	return p.hold(ctx, r, r.rare.Unique)
}

// admission adds up the tasks that a turn has admitted so far.
type admission struct {
	tasks uint64
	bytes int // an upper estimate of the bytes that they write
}

// taskBytes is an upper bound of the bytes that a task writes besides its input
// and names: the keys and fixed fields of its task row, its ready row, its
// link, and its idempotency key.
const taskBytes = 400

// reserved is the divisor for the part of a row and of a batch that admission
// leaves free: one eighth. A row grows with each failure, and a turn also
// begins tasks after it has added some.
const reserved = 8

// admit adds a task to a, or returns the reason for refusing it.
func (p *partition) admit(a *admission, o *options, inputBytes int) error {
	if err := p.set.known(o); err != nil {
		return err
	}
	rowBytes := taskBytes + inputBytes + 2*len(o.Key) + 2*len(o.Queue) + 2*len(o.Once) + 4*len(o.Unique) + 2*len(o.Webhook)
	mostRow, mostBatch := p.st.Driver().MaxValueBytes()/reserved*(reserved-1), p.st.Driver().MaxBatchBytes()/reserved*(reserved-1)
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

// known returns a jobs.ErrInvalid if the pool has no such queue.
func (s *settings) known(o *options) error {
	for _, q := range s.queues {
		if q.name == o.Queue {
			return nil
		}
	}
	return engine.Invalidf("workerpool", "no queue is named %q: name it in Config.Queues", o.Queue)
}

// Versions of inputs. The versions row says from which task number on inputs
// have which Version, so that a task row need not name its own. A task keeps
// its number in a retry and in a replay, and so its version.

// loadVersions reads the versions row.
func (p *partition) loadVersions(ctx context.Context) error {
	b, ok, err := p.st.Storage().Get(ctx, versionsKey)
	if err != nil || !ok {
		return err
	}
	if p.versions, err = engine.ParseVersions(b); err != nil {
		return fmt.Errorf("%s: %w", p.st.ID(), err)
	}
	p.version = p.versions.Last()
	return nil
}

// versioned notes that tasks from num on are stored with the Version of this
// Config. It writes only if the task before had another Version, and then drops
// versions that no stored input has any more.
func (p *partition) versioned(ctx context.Context, num uint64) error {
	if p.version == p.set.version {
		return nil
	}
	oldest, err := p.oldest(ctx, num)
	if err != nil {
		return err
	}
	all := p.versions.From(num, p.set.version).Since(oldest)
	if err := p.st.Storage().PutBytes(ctx, versionsKey, []byte(all)); err != nil {
		return err
	}
	p.versions, p.version = all, p.set.version
	return nil
}

// oldest is the smallest number of a task with a stored input, at most num.
func (p *partition) oldest(ctx context.Context, num uint64) (uint64, error) {
	for _, prefix := range [...]string{taskPrefix, deadPrefix} {
		for item, err := range p.st.Storage().List(ctx, object.ListOptions{Prefix: prefix, Limit: 1}) {
			if err != nil {
				return 0, err
			}
			first, err := numberOf(item.Key)
			if err != nil {
				return 0, err
			}
			num = min(num, first)
		}
	}
	return num, nil
}

// inputVersion is the version under which the input of a task was stored. Call
// it in a turn; work outside of turns gets the version as an argument.
func (p *partition) inputVersion(num uint64) string { return p.versions.At(num) }
