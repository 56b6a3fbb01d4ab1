package storage

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// A Batch collects the changes of one commit. It is for one goroutine. Its bytes
// are deterministic: the same calls give the same representation.
//
// The representation is the one of Pebble's batches: a header of 12 bytes
// (sequence number, count) and a record for each change.
type Batch struct {
	id      ID    // whose changes these are; for probe points
	removal int64 // of the first bucket of marks that it sets one of; 0: it sets none
	expires int64 // of the first entry of the expiry index that it sets; 0: it sets none
	data    []byte
	count   uint32

	// overlay answers reads of the batch's own changes, if these are more than
	// fewRecords or a range is read. It covers the records before overlayLen.
	overlay    map[string]change
	ranges     []span // deleted ranges in the part covered
	overlayLen int
	order      keyOrder // of the overlay's keys, from the first read of a range on
}

// change is the newest record of a key: its value's place in data, or a deletion.
type change struct {
	from, to int
	deleted  bool
}

type span struct{ lower, upper string }

const (
	batchHeaderLen = 12

	// fewRecords is how many records a read looks through one by one: that
	// costs less than an overlay, which copies each key.
	fewRecords = 16

	recordDelete      = 0
	recordSet         = 1
	recordRangeDelete = 15
)

func (b *Batch) begin() {
	if len(b.data) == 0 {
		b.data = append(b.data[:0], make([]byte, batchHeaderLen)...)
	}
}

// Set puts key with value, which are copied.
func (b *Batch) Set(key, value []byte) {
	b.record(recordSet, key)
	b.data = appendBytes(b.data, value)
}

// Delete removes key.
func (b *Batch) Delete(key []byte) { b.record(recordDelete, key) }

// DeleteRange removes every key in [lower, upper).
func (b *Batch) DeleteRange(lower, upper []byte) {
	b.record(recordRangeDelete, lower)
	b.data = appendBytes(b.data, upper)
}

func (b *Batch) record(kind byte, key []byte) {
	b.open(kind, len(key))
	b.data = append(b.data, key...)
}

// open begins a record whose key has n bytes. The caller appends them to data.
func (b *Batch) open(kind byte, n int) {
	b.begin()
	b.data = append(b.data, kind)
	b.data = binary.AppendUvarint(b.data, uint64(n))
	b.count++
}

func appendBytes(dst, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// Empty reports whether the batch changes nothing.
func (b *Batch) Empty() bool { return b.count == 0 }

// Len is the size of the representation in bytes.
func (b *Batch) Len() int { return len(b.data) }

// Repr returns the representation, which is valid until the next change.
func (b *Batch) Repr() []byte {
	b.begin()
	binary.LittleEndian.PutUint32(b.data[8:], b.count)
	return b.data
}

// Reset empties the batch and keeps its memory for reuse, unless it is large.
func (b *Batch) Reset() {
	const keepBytes = 64 << 10
	if cap(b.data) > keepBytes {
		b.data = nil
	}
	*b = Batch{data: b.data[:0]}
}

// A Savepoint is a place in a batch to which Rollback can return.
type Savepoint struct {
	len   int
	count uint32
}

// Savepoint returns the present place.
func (b *Batch) Savepoint() Savepoint { return Savepoint{len(b.data), b.count} }

// Rollback undoes every change made since sp was taken.
func (b *Batch) Rollback(sp Savepoint) {
	b.data, b.count = b.data[:sp.len], sp.count
	if b.overlayLen > sp.len {
		b.overlay, b.ranges, b.overlayLen, b.order = nil, nil, 0, keyOrder{}
	}
}

// lookup returns the batch's own answer for key: its value, or that it is
// deleted, or that the batch says nothing of it (known is false).
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

// scan is lookup by reading all records: the last that tells of key counts.
func (b *Batch) scan(key []byte) (value []byte, deleted, known bool) {
	for off := batchHeaderLen; off < len(b.data); {
		kind, k, from, to, next := parseRecord(b.data, off)
		switch {
		case kind == recordRangeDelete:
			if bytes.Compare(k, key) <= 0 && bytes.Compare(key, b.data[from:to]) < 0 {
				value, deleted, known = nil, true, true
			}
		case bytes.Equal(k, key):
			value, deleted, known = b.data[from:to], kind == recordDelete, true
		}
		off = next
	}
	return value, deleted, known
}

// sets reports whether the batch sets a key in [lower, upper) that it leaves. It
// looks at the last of those alone, so it may miss an earlier one.
func (b *Batch) sets(lower, upper []byte) bool {
	var last []byte
	for off := batchHeaderLen; off < len(b.data); {
		kind, key, from, to, next := parseRecord(b.data, off)
		switch kind {
		case recordSet:
			if bytes.Compare(lower, key) <= 0 && bytes.Compare(key, upper) < 0 {
				last = key
			}
		case recordDelete:
			if bytes.Equal(key, last) {
				last = nil
			}
		case recordRangeDelete:
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

// within returns the batch's own changes in [lower, upper) in the order of keys.
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
		if c, ok := b.overlay[k]; ok { // else a range delete took it
			out = append(out, overlaid{k, slices.Clone(b.data[c.from:c.to]), c.deleted})
		}
	}
	return out
}

// overlaid is a change as an iterator keeps it.
type overlaid struct {
	key     string
	value   []byte
	deleted bool
}

// index brings the overlay up to the end of the batch.
func (b *Batch) index() {
	if b.overlay == nil {
		b.overlay = make(map[string]change)
		b.overlayLen = batchHeaderLen
	}
	for b.overlayLen < len(b.data) {
		kind, key, from, to, next := parseRecord(b.data, b.overlayLen)
		switch kind {
		case recordSet, recordDelete:
			k := string(key)
			b.overlay[k] = change{from: from, to: to, deleted: kind == recordDelete}
			b.order.add(k)
		case recordRangeDelete:
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
	if kind == recordDelete {
		return kind, key, 0, 0, off
	}
	n, w = binary.Uvarint(data[off:])
	from = off + w
	to = from + int(n)
	return kind, key, from, to, to
}

// A Record is one change of a batch: a value set, a key deleted, or the keys in
// [Key, Upper) deleted.
type Record struct {
	Key, Value, Upper []byte
	Deleted           bool // Key is deleted, or the range if Upper is set
}

// ReadBatch calls f with each record of repr in order, and returns an error if
// repr is not a representation that Batch makes. Engines other than Pebble apply
// batches with it.
func ReadBatch(repr []byte, f func(Record)) error {
	if len(repr) < batchHeaderLen {
		return fmt.Errorf("storage: batch of %d bytes", len(repr))
	}
	rest := repr[batchHeaderLen:]
	for range binary.LittleEndian.Uint32(repr[8:]) {
		if len(rest) == 0 {
			return fmt.Errorf("storage: batch ends early")
		}
		kind := rest[0]
		key, tail, ok := takeBytes(rest[1:])
		var second []byte
		if ok && kind != recordDelete {
			second, tail, ok = takeBytes(tail)
		}
		if !ok {
			return fmt.Errorf("storage: batch record is cut off")
		}
		switch kind {
		case recordSet:
			f(Record{Key: key, Value: second})
		case recordDelete:
			f(Record{Key: key, Deleted: true})
		case recordRangeDelete:
			f(Record{Key: key, Upper: second, Deleted: true})
		default:
			return fmt.Errorf("storage: batch record of kind %d", kind)
		}
		rest = tail
	}
	if len(rest) != 0 {
		return fmt.Errorf("storage: %d bytes after the batch", len(rest))
	}
	return nil
}

func takeBytes(b []byte) (field, rest []byte, ok bool) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return nil, nil, false
	}
	return b[w : w+int(n)], b[w+int(n):], true
}
