package workerpool

import (
	"context"

	"github.com/holdfast-dev/holdfast/object"
)

// discardMax bounds the tasks that one turn drops or replays.
const discardMax = 2000

// discardPart is one turn's part of a Discard: pending tasks with numbers after
// After, and up to Last if that is not 0.
type discardPart struct{ After, Last uint64 }

// discarded is what came of it. Last is 0 if no tasks are left.
type discarded struct {
	Dropped int
	After   uint64
	Last    uint64
}

// discard drops as many pending tasks of a part as fit in one turn.
func (p *partition) discard(ctx context.Context, part discardPart) (discarded, error) {
	if part.Last == 0 {
		part.Last = p.order
	}
	return turn(ctx, p, func(ctx context.Context) (discarded, error) {
		rows, end, err := p.discardable(ctx, part)
		if err != nil {
			return discarded{}, err
		}
		return end, p.dropAll(ctx, rows)
	})
}

// discardable reads the first pending tasks of a part, until they are mergeBytes.
func (p *partition) discardable(ctx context.Context, part discardPart) (rows []*row, end discarded, err error) {
	seen, bytes := 0, 0
	o := object.ListOptions{Prefix: taskPrefix, StartAfter: taskKey(part.After), End: taskKey(part.Last + 1), Limit: discardMax}
	for item, err := range p.st.Storage().List(ctx, o) {
		if err != nil {
			return nil, end, err
		}
		if bytes += taskBytes + len(item.Value); bytes > p.mergeBytes() && seen > 0 {
			end.Last = part.Last
			break
		}
		num, err := numberOf(item.Key)
		if err != nil {
			return nil, end, err
		}
		seen++
		end.After = num
		if _, runs := p.opened[num]; runs {
			continue
		}
		r, err := decodeRow(num, item.Value)
		if err != nil {
			return nil, end, err
		}
		rows = append(rows, r)
	}
	if seen == discardMax {
		end.Last = part.Last
	}
	end.Dropped = len(rows)
	return rows, end, nil
}

// dropAll cancels pending tasks. The next tasks of their keys enter when all of
// them have left: one that entered before would be dropped too, for the most part,
// and each look at a key costs a search of the batch and of the store.
func (p *partition) dropAll(ctx context.Context, rows []*row) error {
	var keys []string // in the order of their first tasks
	seen := make(map[string]bool)
	for _, r := range rows {
		if err := p.dropOne(ctx, r); err != nil {
			return err
		}
		if r.key != "" && !seen[r.key] {
			seen[r.key] = true
			keys = append(keys, r.key)
		}
	}
	for _, key := range keys {
		if err := p.enterFirst(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// dropOne cancels a pending task. The caller lets the next of its key enter.
func (p *partition) dropOne(ctx context.Context, r *row) error {
	if err := p.leave(ctx, r); err != nil {
		return err
	}
	p.pending--
	if err := p.remember(ctx, *r, Cancelled); err != nil {
		return err
	}
	if err := p.emit(ctx, EventCancelled, r); err != nil {
		return err
	}
	return p.remove(ctx, r, Cancelled)
}
