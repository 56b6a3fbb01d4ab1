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

// letters lists dead letters by their numbers, until they are limitBytes, but at
// least one.
func (p *partition) letters(ctx context.Context, g page, limitBytes int) ([]*row, error) {
	o := object.ListOptions{Prefix: deadPrefix, Limit: g.Limit}
	if g.After > 0 {
		o.StartAfter = deadKey(g.After)
	}
	var rows []*row
	bytes := 0
	for item, err := range p.st.Storage().List(ctx, o) {
		if err != nil {
			return nil, err
		}
		if bytes += len(item.Value); bytes > limitBytes && len(rows) > 0 {
			break
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

// lettersPart names the dead letters of one turn.
type lettersPart struct {
	Numbers []uint64 `json:"numbers,omitempty"`
	All     bool     `json:"all,omitempty"` // those after After, in place of Numbers
	After   uint64   `json:"after,omitempty"`
	Most    int      `json:"most,omitempty"`  // of All; 0: as many as there are
	Known   bool     `json:"known,omitempty"` // an earlier turn has found all of Numbers
}

// lettersTaken is how many there were up to Last, and how many are left to a next turn.
type lettersTaken struct {
	Count int    `json:"count"`
	Last  uint64 `json:"last,omitempty"`
	Left  int    `json:"left,omitempty"`
}

// withLetters does something to as many of the dead letters of a part as fit in
// one turn.
func (p *partition) withLetters(ctx context.Context, part lettersPart, fn func(context.Context, *row) error) (lettersTaken, error) {
	return turn(ctx, p, func(ctx context.Context) (lettersTaken, error) {
		rows, left, err := p.lettersOf(ctx, part)
		if err != nil || len(rows) == 0 {
			return lettersTaken{}, err
		}
		for _, r := range rows {
			if err := p.st.Storage().Remove(ctx, deadKey(r.num)); err != nil {
				return lettersTaken{}, err
			}
			if err := p.dropCall(ctx, r.num); err != nil {
				return lettersTaken{}, err
			}
			p.dead--
			p.dirty = true
			if err := fn(ctx, r); err != nil {
				return lettersTaken{}, err
			}
		}
		return lettersTaken{len(rows), rows[len(rows)-1].num, left - len(rows)}, nil
	})
}

// lettersOf reads the first dead letters of a part, and tells how many it is in all.
func (p *partition) lettersOf(ctx context.Context, part lettersPart) (rows []*row, all int, err error) {
	if !part.All {
		rows, err = p.numbered(ctx, part)
		return rows, len(part.Numbers), err
	}
	most := defaultTo(part.Most, int(p.dead))
	rows, err = p.letters(ctx, page{After: part.After, Limit: max(1, min(discardMax, most))}, p.mergeBytes())
	return rows, most, err
}

// numbered reads the first dead letters of those that a part names. If no earlier
// turn has, it makes sure that the others are there too.
func (p *partition) numbered(ctx context.Context, part lettersPart) (rows []*row, err error) {
	bytes := 0
	for _, num := range part.Numbers {
		full := len(rows) == discardMax || bytes > p.mergeBytes()
		if full && part.Known {
			break
		}
		r, ok, err := p.letter(ctx, num)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, fmt.Errorf("%s: %w: dead letter %s", p.st.ID(), jobs.ErrNotFound, p.id(num))
		}
		if !full {
			bytes += r.size()
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// replay makes dead letters pending again, with all their attempts before them and
// behind the tasks there are.
func (p *partition) replay(ctx context.Context, part lettersPart) (lettersTaken, error) {
	return p.withLetters(ctx, part, func(ctx context.Context, r *row) error {
		attempts := r.rare.Run.Attempt
		p.order++
		r.state, r.ended, r.notBefore, r.order = Pending, 0, 0, p.order
		r.rare.Reason = jobs.NotGivenUp
		r.rare.Run = jobs.Run{Number: 1, Attempt: attempts, Earlier: r.rare.Run.Failed(), Scheduled: p.st.Now()}
		p.pending++
		if err := p.holdAgain(ctx, r); err != nil {
			return err
		}
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
func (p *partition) discardDead(ctx context.Context, part lettersPart) (lettersTaken, error) {
	return p.withLetters(ctx, part, func(ctx context.Context, r *row) error {
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
