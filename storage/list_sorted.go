package storage

import (
	"container/heap"
	"slices"
)

// ListOptions say which objects of a class Store.List returns. All of them apply together.
type ListOptions struct {
	Prefix string // only objects with a name that begins with it
	Label  Label  // only objects with this label; the zero value: all
	After  string // begin after this name, for example the last one of the page before
	Limit  int    // at most so many objects; zero or less: none
}

// List returns up to Limit objects of a class in the order of the bytes of their names. An
// object that begins or ends meanwhile may be in the list or not, and so may one with a label
// that changes. Each other object in the range is in it once.
//
// A list of n objects reads at most n + n/4 rows and one for each shard, wherever it begins
// and however many objects the class has. With a label it also reads the header of each
// object that it returns. It holds as much in memory as it reads.
//
// A walk over all objects of a class is cheaper with Objects, because that reads one shard
// after the other.
func (s *Store) List(class string, o ListOptions) ([]Object, error) {
	if o.Limit <= 0 {
		return nil, s.Err()
	}
	m, err := s.merge(class, o)
	if err != nil {
		return nil, err
	}
	var found []Object
	for m.Len() > 0 && len(found) < o.Limit {
		next, err := m.take()
		if err == nil && o.Label != (Label{}) {
			next, err = s.Find(next.ID)
		}
		if err != nil {
			return nil, err
		}
		if o.Label == (Label{}) || next.Label == o.Label { // a turn may have changed the label meanwhile
			found = append(found, next)
		}
	}
	return found, nil
}

// merge makes one sorted list of the lists of all shards, because a hash of the name chooses
// the shard of an object. It is a heap of those shards that have objects left, with the
// smallest name first.
type merge struct {
	store   *Store
	class   string
	options ListOptions
	portion int // how many rows of a shard are read at a time
	parts   []*part
}

// part is the list of one shard. Its rows are read by several iterators, each with a snapshot
// of its own, so it shows changes that are made meanwhile behind the name read last. No name
// is read twice, because each iterator begins behind that name.
type part struct {
	shard int
	last  string   // the name read last
	ahead []Object // read and not yet taken, in order; never empty in a heap
}

// merge reads the first portion of each shard.
//
// One iterator a portion is open at a time, because a store may have 4,096 shards. A portion
// of one row would make an iterator for each row, and the rows that a portion reads ahead of
// the page are wasted. So a portion grows with the limit, and a quarter of the page is wasted
// at most.
func (s *Store) merge(class string, o ListOptions) (*merge, error) {
	m := &merge{store: s, class: class, options: o, portion: 1 + o.Limit/(4*s.shards)}
	for shard := range s.shards {
		p := &part{shard: shard, last: o.After}
		if err := m.read(p); err != nil {
			return nil, err
		}
		if len(p.ahead) > 0 {
			m.parts = append(m.parts, p)
		}
	}
	heap.Init(m)
	return m, nil
}

// take returns the first object of the list, and reads on in its shard if need be. With a
// label the object has neither number nor epoch, because the row of a label has none.
func (m *merge) take() (Object, error) {
	p := m.parts[0]
	o := p.ahead[0]
	if p.ahead = p.ahead[1:]; len(p.ahead) == 0 {
		if err := m.read(p); err != nil {
			return o, err
		}
	}
	if len(p.ahead) == 0 {
		heap.Pop(m)
	} else {
		heap.Fix(m, 0)
	}
	return o, nil
}

// read reads the next portion of a shard. Each portion is a range of its own that ends where
// the list ends in its shard, because an iterator without that bound may walk over any number
// of deleted rows behind it.
func (m *merge) read(p *part) error {
	begin := headerKey(nil, p.shard, ID{Class: m.class})
	if m.options.Label != (Label{}) {
		begin = labelPrefix(nil, p.shard, m.class, m.options.Label)
	}
	first := max(m.options.Prefix, p.last+"\x00") // no name is empty, so this is right without a last one too
	lower := append(slices.Clone(begin), first...)
	upper := after(append(slices.Clone(begin), m.options.Prefix...))
	it, err := m.store.iter(nil, lower, upper, false, len(begin))
	if err != nil {
		return err
	}
	defer it.Close()
	for p.ahead = nil; len(p.ahead) < m.portion && it.Next(); {
		o, err := m.object(p.shard, it)
		if err != nil {
			return m.store.fail(err)
		}
		p.last, p.ahead = o.ID.Name, append(p.ahead, o)
	}
	return it.Close()
}

// object returns the object of the row that an iterator stands on.
func (m *merge) object(shard int, it *Iter) (Object, error) {
	o := Object{ID: ID{m.class, string(it.Key())}, Shard: shard, Label: m.options.Label}
	if o.Label != (Label{}) {
		return o, nil
	}
	h, err := decodeHeader(it.Value())
	o.Number, o.Epoch, o.Label = h.number, h.epoch, h.label
	return o, err
}

// Len, Less, Swap, Push and Pop are heap.Interface. Push is never called, because each part
// is there from the beginning.

func (m *merge) Len() int           { return len(m.parts) }
func (m *merge) Less(i, j int) bool { return m.parts[i].ahead[0].ID.Name < m.parts[j].ahead[0].ID.Name }
func (m *merge) Swap(i, j int)      { m.parts[i], m.parts[j] = m.parts[j], m.parts[i] }
func (m *merge) Push(p any)         { m.parts = append(m.parts, p.(*part)) }

func (m *merge) Pop() any {
	last := m.parts[len(m.parts)-1]
	m.parts = m.parts[:len(m.parts)-1]
	return last
}
