package workerpool

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/jobs"
)

// submit adds a task: its row, its place, the counters and its idempotency key in
// one batch.
func (p *partition) submit(ctx context.Context, input []byte, o options) (TaskRef, error) {
	if o.Once != "" {
		b, ok, err := p.st.Marked(ctx, idempotentMark+o.Once)
		if err != nil {
			return TaskRef{}, err
		}
		if ok {
			num, err := decodeNumber(b)
			return TaskRef{ID: p.id(num), Repeated: true}, err
		}
	}
	if err := p.admit(o); err != nil {
		return TaskRef{}, err
	}
	if err := p.widen(ctx); err != nil {
		return TaskRef{}, err
	}
	now := p.st.Now()
	num := p.order + 1
	r := &row{
		num: num, order: num, priority: o.Priority, key: o.Key, queue: o.Queue,
		enqueued: now.UnixNano(), notBefore: o.notBefore(now), input: input,
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

// join puts a task behind those of its key, or in its queue if it may enter.
func (p *partition) join(ctx context.Context, r *row) error {
	enters, err := p.chain(ctx, r)
	if err != nil || !enters {
		return err
	}
	return p.enter(ctx, r)
}

// admit returns why a task is not taken.
func (p *partition) admit(o options) error {
	known := false
	for _, q := range p.set.queues {
		known = known || q.name == o.Queue
	}
	switch {
	case !known:
		return fmt.Errorf("workerpool: %w: no queue is named %q", jobs.ErrInvalid, o.Queue)
	case p.mode == Draining:
		return fmt.Errorf("%s: %w", p.st.ID(), ErrDraining)
	case p.pending >= uint64(share(p.set.maxQueued, p.set.partitions, p.index)):
		return fmt.Errorf("%s: %w: %d tasks are pending", p.st.ID(), ErrQueueFull, p.pending)
	}
	return nil
}
