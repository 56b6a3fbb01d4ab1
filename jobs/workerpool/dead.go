package workerpool

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// letter reads a dead letter.
func (p *partition) letter(ctx context.Context, num uint64) (*row, bool, error) {
	b, ok, err := p.st.Storage().Get(ctx, deadKey(num))
	if err != nil || !ok {
		return nil, false, err
	}
	r, err := decodeRow(num, b)
	return r, true, err
}

// page asks for up to Limit things with numbers after After.
type page struct {
	After uint64
	Limit int
}

// letters lists dead letters by their numbers.
func (p *partition) letters(ctx context.Context, g page) ([]*row, error) {
	o := object.ListOptions{Prefix: deadPrefix, Limit: g.Limit}
	if g.After > 0 {
		o.StartAfter = deadKey(g.After)
	}
	var rows []*row
	for item, err := range p.st.Storage().List(ctx, o) {
		if err != nil {
			return nil, err
		}
		num, err := numberOf(item.Key)
		if err != nil {
			return nil, err
		}
		r, err := decodeRow(num, item.Value)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// withLetters does something to each of some dead letters, in one turn. Without
// numbers it is done to the first limit of them all. It returns how many there were.
func (p *partition) withLetters(ctx context.Context, nums []uint64, fn func(context.Context, *row) error) (int, error) {
	return turn(ctx, p, func(ctx context.Context) (int, error) {
		var rows []*row
		var err error
		if nums == nil {
			rows, err = p.letters(ctx, page{Limit: discardMax})
		} else {
			rows, err = p.lettersOf(ctx, nums)
		}
		if err != nil {
			return 0, err
		}
		for _, r := range rows {
			if err := p.st.Storage().Remove(ctx, deadKey(r.num)); err != nil {
				return 0, err
			}
			if err := p.dropCall(ctx, r.num); err != nil {
				return 0, err
			}
			p.dead--
			p.dirty = true
			if err := fn(ctx, r); err != nil {
				return 0, err
			}
		}
		return len(rows), nil
	})
}

func (p *partition) lettersOf(ctx context.Context, nums []uint64) ([]*row, error) {
	var rows []*row
	seen := make(map[uint64]bool, len(nums))
	for _, num := range nums {
		if seen[num] {
			continue
		}
		seen[num] = true
		r, ok, err := p.letter(ctx, num)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("%s: %w: dead letter %s", p.st.ID(), jobs.ErrNotFound, p.id(num))
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// replay makes dead letters pending again, with all their attempts before them and
// behind the tasks there are.
func (p *partition) replay(ctx context.Context, nums []uint64) (int, error) {
	return p.withLetters(ctx, nums, func(ctx context.Context, r *row) error {
		attempts := r.rare.Run.Attempt
		p.order++
		r.state, r.ended, r.notBefore, r.order = Pending, 0, 0, p.order
		r.rare.Reason = jobs.NotGivenUp
		r.rare.Run = jobs.Run{Number: 1, Attempt: attempts, Earlier: r.rare.Run.Failed(), Scheduled: p.st.Now()}
		p.pending++
		if err := p.put(ctx, taskKey(r.num), r); err != nil {
			return err
		}
		if err := p.emit(ctx, EventReplayed, r); err != nil {
			return err
		}
		return p.join(ctx, r)
	})
}

// discardDead cancels dead letters.
func (p *partition) discardDead(ctx context.Context, nums []uint64) (int, error) {
	return p.withLetters(ctx, nums, func(ctx context.Context, r *row) error {
		p.count(Cancelled)
		if err := p.emit(ctx, EventCancelled, r); err != nil {
			return err
		}
		return p.remember(ctx, *r, Cancelled)
	})
}

// ended finds a task that is neither pending nor running.
func (p *partition) ended(ctx context.Context, num uint64) (*row, error) {
	r, ok, err := p.letter(ctx, num)
	if err != nil || ok {
		return r, err
	}
	b, ok, err := p.st.Marked(ctx, numbered(endedMark, num))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%s: %w: task %s", p.st.ID(), jobs.ErrNotFound, p.id(num))
	}
	return decodeRow(num, b)
}

// look finds a task wherever it is.
func (p *partition) look(ctx context.Context, num uint64) (*row, error) {
	r, ok, err := p.task(ctx, num)
	if err != nil {
		return nil, err
	}
	if !ok {
		return p.ended(ctx, num)
	}
	if a, runs := p.opened[num]; runs {
		x, _ := p.engine.Lookup(a.token)
		r.state, r.notBefore, r.rare.Run = Running, 0, x.Run
	}
	return r, nil
}
