package storage

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// A Batch collects the changes of one commit, in the order of the calls: the last
// change of a key counts. The zero Batch is empty and ready for use. A Batch is for one
// goroutine. Its bytes are deterministic: the same calls give the same representation,
// so that simulations can be repeated.
//
// The representation is the one of Pebble's batches, which package engine describes,
// because Pebble then takes it without a copy of each record.
type Batch struct {
	id      ID    // the object that the changes belong to; for probe points
	removal int64 // of the first bucket of marks that it sets one of; 0: it sets none
	expires int64 // of the first entry of the expiry index that it sets; 0: it sets none
	data    []byte
	count   uint32

	// messages has the place in data of each message's number, which Commit draws.
	messages []int
	// delayed has the places in data where the number of such a message stands again.
	delayed []delayedNumbers
	// feed has the place in data of each position of the feed, which Commit draws.
	feed        []int
	feedExpires int64 // of the first row of the feed that it sets; 0: it sets none

	// overlay answers reads of the batch's own changes, if these are more than
	// fewRecords or a range is read. It covers the records before overlayLen.
	overlay    map[string]change
	ranges     []span // deleted ranges in the part covered
	overlayLen int
	order      keyOrder // of the overlay's keys, from the first read of a range on
}

// change is the newest record of a key: the place of its value in data, or a deletion.
type change struct {
	from, to int
	deleted  bool
}

// span is the keys from lower on and before upper.
type span struct{ lower, upper string }

// fewRecords is how many records a read looks through one by one: that costs less
// than an overlay, which copies each key.
const fewRecords = 16

// begin makes room for the header, which Repr fills in.
func (b *Batch) begin() {
	if len(b.data) == 0 {
		b.data = append(b.data[:0], make([]byte, engine.HeaderBytes)...)
	}
}

// Set puts key with value, which are copied.
func (b *Batch) Set(key, value []byte) {
	b.record(engine.KindSet, key)
	b.data = appendBytes(b.data, value)
}

// Delete removes key.
func (b *Batch) Delete(key []byte) { b.record(engine.KindDelete, key) }

// DeleteRange removes every key in [lower, upper).
func (b *Batch) DeleteRange(lower, upper []byte) {
	b.record(engine.KindDeleteRange, lower)
	b.data = appendBytes(b.data, upper)
}

// record begins a record of a key. The caller appends the second field, if the kind
// has one.
func (b *Batch) record(kind byte, key []byte) {
	b.open(kind, len(key))
	b.data = append(b.data, key...)
}

// open begins a record with a key of n bytes. The caller appends them to data.
func (b *Batch) open(kind byte, n int) {
	b.begin()
	b.data = append(b.data, kind)
	b.data = binary.AppendUvarint(b.data, uint64(n))
	b.count++
}

// appendBytes appends a field with its length before it.
func appendBytes(dst, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// Empty reports whether the batch changes nothing.
func (b *Batch) Empty() bool { return b.count == 0 }

// Len is the size of the representation in bytes.
func (b *Batch) Len() int { return len(b.data) }

// Repr returns the representation, which is valid until the next change. It is not
// copied, so the caller must not change it.
func (b *Batch) Repr() []byte {
	b.begin()
	binary.LittleEndian.PutUint32(b.data[8:], b.count)
	return b.data
}

// Reset empties the batch and keeps its memory for reuse, unless it is larger than
// 64 KiB, because one large commit must not make a pool of batches large for ever.
func (b *Batch) Reset() {
	const keepBytes = 64 << 10
	if cap(b.data) > keepBytes {
		b.data, b.messages, b.delayed, b.feed = nil, nil, nil, nil
	}
	*b = Batch{data: b.data[:0], messages: b.messages[:0], delayed: b.delayed[:0], feed: b.feed[:0]}
}

// A Savepoint is a place in a batch to which Rollback can return. It is of no use after
// a Rollback to an earlier one, and after Reset.
type Savepoint struct {
	len      int
	count    uint32
	messages int
	delayed  int
	feed     int
}

// Savepoint returns the present place.
func (b *Batch) Savepoint() Savepoint {
	return Savepoint{len(b.data), b.count, len(b.messages), len(b.delayed), len(b.feed)}
}

// Rollback undoes every change made since sp was taken. It costs nothing by itself; the
// next read of the batch's own changes reads all its records again.
func (b *Batch) Rollback(sp Savepoint) {
	b.data, b.count, b.messages = b.data[:sp.len], sp.count, b.messages[:sp.messages]
	b.delayed = b.delayed[:sp.delayed]
	b.feed = b.feed[:sp.feed]
	if b.overlayLen > sp.len {
		b.overlay, b.ranges, b.overlayLen, b.order = nil, nil, 0, keyOrder{}
	}
}

// lookup returns the batch's own answer for key: its value, or that it is deleted, or
// that no record of the batch concerns it (known is false). The value shares memory
// with the batch.
func (b *Batch) lookup(key []byte) (value []byte, deleted, known bool) {
	switch {
	case b.count == 0:
		return nil, false, false
	case b.overlay == nil && b.count <= fewRecords:
		return b.scan(key)
	}
	b.index()
	if c, ok := b.overlay[string(key)]; ok {
		return b.data[c.from:c.to], c.deleted, true
	}
	return nil, true, b.covered(string(key))
}

// scan is lookup by reading all records: the last that concerns key counts.
func (b *Batch) scan(key []byte) (value []byte, deleted, known bool) {
	for off := engine.HeaderBytes; off < len(b.data); {
		kind, k, from, to, next := parseRecord(b.data, off)
		switch {
		case kind == engine.KindDeleteRange:
			if bytes.Compare(k, key) <= 0 && bytes.Compare(key, b.data[from:to]) < 0 {
				value, deleted, known = nil, true, true
			}
		case bytes.Equal(k, key):
			value, deleted, known = b.data[from:to], kind == engine.KindDelete, true
		}
		off = next
	}
	return value, deleted, known
}

// sets reports whether the batch sets a key in [lower, upper) that it leaves. It
// looks at the last of those alone, so it may miss an earlier one.
func (b *Batch) sets(lower, upper []byte) bool {
	var last []byte
	for off := engine.HeaderBytes; off < len(b.data); {
		kind, key, from, to, next := parseRecord(b.data, off)
		switch kind {
		case engine.KindSet:
			if bytes.Compare(lower, key) <= 0 && bytes.Compare(key, upper) < 0 {
				last = key
			}
		case engine.KindDelete:
			if bytes.Equal(key, last) {
				last = nil
			}
		case engine.KindDeleteRange:
			if bytes.Compare(key, last) <= 0 && bytes.Compare(last, b.data[from:to]) < 0 {
				last = nil
			}
		}
		off = next
	}
	return last != nil
}

// covered reports whether a range delete of the batch removes key.
func (b *Batch) covered(key string) bool {
	for _, r := range b.ranges {
		if r.lower <= key && key < r.upper {
			return true
		}
	}
	return false
}

// within returns copies of the batch's own changes in [lower, upper), in the order of
// keys. An empty upper is no bound.
func (b *Batch) within(lower, upper string) []overlaid {
	if b.count == 0 {
		return nil
	}
	b.index()
	if !b.order.kept {
		b.order.keep(b.overlay)
	}
	var out []overlaid
	for _, k := range b.order.from(lower) {
		if upper != "" && k >= upper {
			break
		}
		if c, ok := b.overlay[k]; ok { // else a later range delete removed it
			out = append(out, overlaid{k, slices.Clone(b.data[c.from:c.to]), c.deleted})
		}
	}
	return out
}

// overlaid is a change as an iterator keeps it: a copy, because the batch may grow
// while the iterator is open.
type overlaid struct {
	key     string
	value   []byte
	deleted bool
}

// index brings the overlay up to the end of the batch. It reads each record once, so
// that writes and reads that take turns cost no more than either alone.
func (b *Batch) index() {
	if b.overlay == nil {
		b.overlay = make(map[string]change)
		b.overlayLen = engine.HeaderBytes
	}
	for b.overlayLen < len(b.data) {
		kind, key, from, to, next := parseRecord(b.data, b.overlayLen)
		switch kind {
		case engine.KindSet, engine.KindDelete:
			k := string(key)
			b.overlay[k] = change{from: from, to: to, deleted: kind == engine.KindDelete}
			b.order.add(k)
		case engine.KindDeleteRange:
			r := span{string(key), string(b.data[from:to])}
			for k := range b.overlay {
				if r.lower <= k && k < r.upper {
					delete(b.overlay, k)
				}
			}
			b.ranges = append(b.ranges, r)
		}
		b.overlayLen = next
	}
}

// keyOrder is keys in their order, kept while reads of ranges and writes take
// turns. Keys that are gone may stay in it.
type keyOrder struct {
	kept   bool
	sorted []string
	news   []string // added since the last read, and perhaps in sorted too
}

// keep begins with the keys of m.
func (o *keyOrder) keep(m map[string]change) {
	o.kept, o.sorted = true, slices.Sorted(maps.Keys(m))
}

// add puts a key in its place, once the order is kept.
func (o *keyOrder) add(key string) {
	if o.kept {
		o.news = append(o.news, key)
	}
}

// from returns the keys from lower on.
func (o *keyOrder) from(lower string) []string {
	const few = 16 // up to which each is inserted by itself
	if len(o.news) > few {
		o.sorted = append(o.sorted, o.news...)
		slices.Sort(o.sorted)
		o.sorted = slices.Compact(o.sorted)
	} else {
		for _, key := range o.news {
			if i, found := slices.BinarySearch(o.sorted, key); !found {
				o.sorted = slices.Insert(o.sorted, i, key)
			}
		}
	}
	o.news = o.news[:0]
	i, _ := slices.BinarySearch(o.sorted, lower)
	return o.sorted[i:]
}

// parseRecord reads the record at off of a representation this package wrote.
// from and to bound its second field, if it has one.
func parseRecord(data []byte, off int) (kind byte, key []byte, from, to, next int) {
	kind = data[off]
	off++
	n, w := binary.Uvarint(data[off:])
	off += w
	key = data[off : off+int(n)]
	off += int(n)
	if kind == engine.KindDelete {
		return kind, key, 0, 0, off
	}
	n, w = binary.Uvarint(data[off:])
	from = off + w
	to = from + int(n)
	return kind, key, from, to, to
}
