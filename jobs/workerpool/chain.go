package workerpool

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// The tasks of one key that have not ended are a chain, in the order of their
// submission. The first PerKey of them have entered: they are in a queue, wait for
// a time, or run. The others are only in the chain.

// beginsMax bounds the keys of which a partition knows where their chains begin.
const beginsMax = 4096

// chained lists the first n tasks of a key that have not ended. It looks from where
// it found the first the last time, which spares the store the rows that were before.
func (p *partition) chained(ctx context.Context, key string, n int) ([]link, error) {
	var links []link
	o := object.ListOptions{Prefix: string(chainOf(key)), Start: chainKey(key, p.begins[key]), Limit: n}
	for item, err := range p.st.Storage().List(ctx, o) {
		if err != nil {
			return nil, err
		}
		if len(item.Value) != 9 {
			return nil, fmt.Errorf("%w: row %x of key %q", storage.ErrCorrupt, item.Value, key)
		}
		num, err := decodeNumber(item.Value[1:])
		if err != nil {
			return nil, err
		}
		links = append(links, link{key: item.Key, num: num, entered: item.Value[0] == 1})
	}
	return links, p.noteBegin(key, links)
}

// noteBegin notes where the chain of a key begins: at its first link or, if there is
// none, not before the task that was submitted last, which may be about to join it.
func (p *partition) noteBegin(key string, links []link) (err error) {
	begin := p.order
	if len(links) > 0 {
		if begin, err = numberOf(links[0].key); err != nil {
			return err
		}
	}
	if len(p.begins) >= beginsMax {
		clear(p.begins)
	}
	p.begins[key] = begin
	return nil
}

// link is a task among those of its key.
type link struct {
	key     string // where it is stored
	num     uint64
	entered bool // it is in a queue, waits for its time, or runs
}

func (l link) value() []byte {
	b := []byte{0}
	if l.entered {
		b[0] = 1
	}
	return append(b, encodeNumber(l.num)...)
}

// chain adds a task to those of its key and reports whether it may enter. Of the
// tasks of a key, the first PerKey have entered.
func (p *partition) chain(ctx context.Context, r *row) (bool, error) {
	if r.key == "" {
		return true, nil
	}
	if err := p.countHeads(ctx, r.key); err != nil {
		return false, err
	}
	l := link{key: chainKey(r.key, r.order), num: r.num, entered: p.heads[r.key] < p.set.perKey}
	p.heads[r.key]++
	return l.entered, p.st.Storage().PutBytes(ctx, l.key, l.value())
}

// countHeads notes how many tasks of a key there are, if they are fewer than
// PerKey. To ask before the turn writes is cheaper.
func (p *partition) countHeads(ctx context.Context, key string) error {
	if _, known := p.heads[key]; known || key == "" {
		return nil
	}
	links, err := p.chained(ctx, key, p.set.perKey)
	if err == nil {
		p.heads[key] = len(links)
	}
	return err
}

// enterFirst lets the first tasks of a key enter that have not: those before them
// have ended.
func (p *partition) enterFirst(ctx context.Context, key string) error {
	if key == "" {
		return nil
	}
	delete(p.heads, key)
	links, err := p.chained(ctx, key, p.set.perKey)
	if err != nil {
		return err
	}
	for _, l := range links {
		if l.entered {
			continue
		}
		l.entered = true
		if err := p.st.Storage().PutBytes(ctx, l.key, l.value()); err != nil {
			return err
		}
		next, err := p.mustTask(ctx, l.num)
		if err != nil {
			return err
		}
		if err := p.enter(ctx, next); err != nil {
			return err
		}
	}
	return nil
}
