package workerpool

import (
	"context"

	"github.com/holdfast-dev/holdfast/object"
)

// Rows of tasks that were left to storage are read some at a time: those of tasks
// that follow one another in a queue lie together, for the most part.

const (
	aheadMax   = 64       // tasks whose rows are asked for together
	aheadMin   = 8        // for fewer, single reads cost less
	aheadSpan  = 128      // of their numbers
	aheadBytes = 64 << 10 // of rows read for them
)

// firstRow returns the row of the first entry of w, which is not empty.
func (p *partition) firstRow(ctx context.Context, w *window) (*row, error) {
	e := &w.entries[0]
	if e.row == nil && !e.alone {
		if err := p.readAhead(ctx, w); err != nil {
			return nil, err
		}
	}
	if e.row != nil {
		return e.row, nil
	}
	return p.mustTask(ctx, e.num)
}

// readAhead reads the rows of the first entry of w and of those after it that lie
// near to it. It leaves out those with too large an input to be kept.
func (p *partition) readAhead(ctx context.Context, w *window) error {
	first := w.entries[0].num
	near := w.entries[:min(len(w.entries), aheadMax)]
	wanted := make(map[uint64]*entry, len(near))
	for i := range near {
		if e := &near[i]; e.row == nil && !e.alone && e.num-first < aheadSpan {
			e.alone, wanted[e.num] = true, e
		}
	}
	if len(wanted) < aheadMin {
		return nil
	}
	bytes := 0
	o := object.ListOptions{Start: taskKey(first), End: taskKey(first + aheadSpan)}
	for item, err := range p.st.Storage().List(ctx, o) {
		if err != nil {
			return err
		}
		num, err := numberOf(item.Key)
		if err != nil {
			return err
		}
		if bytes += len(item.Value); bytes > aheadBytes {
			break
		}
		if e := wanted[num]; e != nil {
			r, err := decodeRow(num, item.Value)
			if err != nil {
				return err
			}
			if len(r.input) <= keepBytes {
				e.row = r
			}
		}
	}
	return nil
}
