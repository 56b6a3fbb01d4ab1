package storage

import (
	"container/heap"
	"encoding/binary"
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
// A list of up to n objects takes one seek for each shard and a few more, and reads at most n + 3n/2
// rows and one for each shard, wherever it begins and however many objects the class has. With a
// label it also reads the header of each object that it returns. It holds as much in memory as it
// reads.
//
// A walk over all objects of a class is cheaper with Objects, because that reads one shard
// after the other.
func (s *Store) List(class string, o ListOptions) ([]Object, error) {
	if o.Limit <= 0 {
		return nil, s.Err()
	}
	m := newMerge(s, class, o)
	defer m.rows.close()
	var found []Object
	for err := m.begin(); m.Len() > 0 && len(found) < o.Limit; {
		var next Object
		if err == nil {
			next, err = m.take()
		}
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
	return found, m.rows.close()
}

// merge makes one sorted list of the lists of all shards, because a hash of the name chooses
// the shard of an object. It is a heap of those shards that have objects left, with the
// smallest name first. All are read from one snapshot.
type merge struct {
	rows         ranges
	class        string
	options      ListOptions
	portion      int    // how many rows of a shard are read at a time
	begins       int    // how many bytes of a key stand before the name
	lower, upper []byte // room for the bounds of a range, with all but the shard and the first name
	parts        []*part
}

// part is the list of one shard.
type part struct {
	shard int
	last  string   // the name read last
	ahead []Object // read and not yet taken, in order; never empty in a heap
	whole bool     // all of the list is read
}

// newMerge returns a merge that has read nothing.
//
// One iterator goes from shard to shard, because a store may have 4,096 of them. A seek to a shard
// costs as much as 20 rows that follow one another, and more if much is in the memory of the store.
// So a portion is half as large again as the share of a shard in the page, and few shards are read twice.
func newMerge(s *Store, class string, o ListOptions) *merge {
	m := &merge{rows: ranges{store: s}, class: class, options: o, portion: 1 + 3*o.Limit/(2*s.shards)}
	if o.Label != (Label{}) {
		m.lower = labelPrefix(nil, 0, class, o.Label)
	} else {
		m.lower = headerKey(nil, 0, ID{Class: class})
	}
	m.begins = len(m.lower)
	m.upper = after(append(slices.Clone(m.lower), o.Prefix...))
	return m
}

// begin reads the first portion of each shard.
func (m *merge) begin() error {
	parts := make([]part, m.rows.store.shards)
	for shard := range parts {
		p := &parts[shard]
		p.shard, p.last = shard, m.options.After
		if err := m.read(p); err != nil {
			return err
		}
		if len(p.ahead) > 0 {
			m.parts = append(m.parts, p)
		}
	}
	heap.Init(m)
	return nil
}

// take returns the first object of the list, and reads on in its shard if need be. With a
// label the object has neither number nor epoch, because the row of a label has none.
func (m *merge) take() (Object, error) {
	p := m.parts[0]
	o := p.ahead[0]
	if p.ahead = p.ahead[1:]; len(p.ahead) == 0 && !p.whole {
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
	first := max(m.options.Prefix, p.last+"\x00") // no name is empty, so this is right without a last one too
	m.lower = append(m.lower[:m.begins], first...)
	for _, bound := range [][]byte{m.lower, m.upper} {
		binary.BigEndian.PutUint16(bound, uint16(p.shard))
	}
	p.ahead = nil
	for ok := m.rows.first(m.lower, m.upper); ok; ok = m.rows.next() {
		o, err := m.object(p.shard)
		if err != nil {
			return m.rows.store.fail(err)
		}
		p.last, p.ahead = o.ID.Name, append(p.ahead, o)
		if len(p.ahead) == m.portion {
			break
		}
	}
	p.whole = len(p.ahead) < m.portion
	return m.rows.err
}

// object returns the object of the row that the walk stands on.
func (m *merge) object(shard int) (Object, error) {
	o := Object{ID: ID{m.class, string(m.rows.key()[m.begins:])}, Shard: shard, Label: m.options.Label}
	if o.Label != (Label{}) {
		return o, nil
	}
	value := m.rows.value()
	if m.rows.err != nil {
		return o, m.rows.err
	}
	h, err := decodeHeader(value)
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
