package workerpool

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Settle ends a turn: it writes what the turn put in queues and did not begin,
// fills windows that have run empty, shows the metrics, and writes the counters.
func (p *partition) Settle(ctx context.Context, now time.Time) error {
	for _, f := range p.fresh {
		if i, ok := f.line.window.search(f.at); ok && f.line.window.entries[i].fresh {
			e := &f.line.window.entries[i]
			if err := p.st.Storage().PutBytes(ctx, readyKey(f.line.name, f.at), encodeNumber(e.num)); err != nil {
				return err
			}
			e.fresh = false
			if len(e.row.input) > keepBytes {
				e.row = nil
			}
		}
	}
	clear(p.heads)
	clear(p.fresh)
	p.fresh = p.fresh[:0]
	for _, l := range p.lines.all {
		l.window.trim()
	}
	p.waits.trim()
	if err := p.fill(ctx); err != nil {
		return err
	}
	p.publish(ctx)
	if !p.dirty {
		return nil
	}
	p.changed = now.UnixNano()
	p.dirty = false
	var room [256]byte // enough for some queues, which then need no allocation
	return p.st.Storage().PutBytes(ctx, countersKey, p.counters.append(room[:0], &p.lines))
}

// fill loads windows that have run empty.
func (p *partition) fill(ctx context.Context) error {
	for _, l := range p.lines.all {
		if err := p.fillLine(ctx, l); err != nil {
			return err
		}
	}
	return p.fillWaits(ctx)
}

func (p *partition) fillLine(ctx context.Context, l *line) error {
	if !l.window.wants() {
		return nil
	}
	return p.fillWindow(ctx, &l.window, linePrefix(l.name))
}

func (p *partition) fillWaits(ctx context.Context) error {
	if !p.waits.wants() {
		return nil
	}
	return p.fillWindow(ctx, &p.waits, []byte(waitPrefix))
}

// fillWindow loads what comes next of the rows with the prefix.
func (p *partition) fillWindow(ctx context.Context, w *window, prefix []byte) error {
	o := object.ListOptions{Prefix: string(prefix), Limit: w.loads()}
	if w.edge != (place{}) {
		o.StartAfter = placed(prefix, w.edge)
	}
	var es []entry
	for item, err := range p.st.Storage().List(ctx, o) {
		if err != nil {
			return err
		}
		at, err := placeOf(item.Key)
		if err != nil {
			return err
		}
		num, err := decodeNumber(item.Value)
		if err != nil {
			return err
		}
		es = append(es, entry{place: at, num: num})
	}
	w.load(es)
	return nil
}
