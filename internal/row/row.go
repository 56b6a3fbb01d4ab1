// Package row is the one codec of the values that Holdfast stores: a version, and
// fields in a fixed order behind it.
//
// A Writer appends fields, and a Reader takes them off the front. They do not say
// which field is which, so the two functions of a row stand side by side:
//
//	func appendPoint(dst []byte, p point) []byte {
//		w := row.Writer(dst).Byte(pointVersion).Uint(p.number).Text(p.name)
//		return w.Int(p.since) // from the second release on
//	}
//
//	func decodePoint(b []byte) (p point, err error) {
//		r := row.Read(b)
//		version := r.Byte()
//		p.number, p.name = r.Uint(), r.Text()
//		r.Required()
//		p.since = r.Int()
//		if !r.OK() || version != pointVersion {
//			return point{}, fmt.Errorf("%w: point %x", storage.ErrCorrupt, b)
//		}
//		return p, nil
//	}
//
// # One rule for old, new and damaged rows
//
//   - New fields go to the end. A writer may leave out the last ones if they are zero.
//   - A field behind the end of the row is zero, because the writer was older or left
//     it out. Fields before a call of Required are in each row ever written: a row
//     without them is damaged.
//   - A field that the row ends within is damage, and so is each row for which a
//     decoder calls Fail. Fields that are read after it are zero.
//   - Bytes behind the last field belong to a newer writer and are passed over, unless
//     the decoder calls End.
//
// # Forms of fields
//
// Byte is one byte. Uint and Int are a uvarint and a varint of encoding/binary. Bytes
// and Text are a uvarint length and so many bytes. There is no form for a time,
// because rows differ in how they store the zero time.
//
// Neither type allocates, beside the slice that the Writer appends to and the strings
// of Text. They are for one goroutine.
package row

import "encoding/binary"

// Writer is a row that fields are appended to. Conversion from a slice begins one,
// also behind bytes that are there, and conversion to a slice ends it. Each method
// returns the longer row, as append does. They do not take a pointer, because the
// memory of the row would then escape to the heap, and rows are often made on the stack.
type Writer []byte

// Byte appends one byte.
func (w Writer) Byte(v byte) Writer { return append(w, v) }

// Uint appends a number that is not negative.
func (w Writer) Uint(v uint64) Writer { return binary.AppendUvarint(w, v) }

// Int appends a number.
func (w Writer) Int(v int64) Writer { return binary.AppendVarint(w, v) }

// Bytes appends bytes, with their length before them.
func (w Writer) Bytes(v []byte) Writer { return append(binary.AppendUvarint(w, uint64(len(v))), v...) }

// Text appends a string, with its length before it.
func (w Writer) Text(v string) Writer { return append(binary.AppendUvarint(w, uint64(len(v))), v...) }

// Reader takes fields off the front of a row. The zero Reader reads an empty row.
type Reader struct {
	rest    []byte
	missing bool // a field was asked for behind the end
	bad     bool // the row is damaged
}

// Read returns a Reader of b, which it does not change and whose memory it shares.
func Read(b []byte) Reader { return Reader{rest: b} }

// Byte takes one byte.
func (r *Reader) Byte() byte {
	if len(r.rest) == 0 {
		r.missing = true
		return 0
	}
	v := r.rest[0]
	r.rest = r.rest[1:]
	return v
}

// Uint takes a number that Writer.Uint wrote.
func (r *Reader) Uint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.none()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// Int takes a number that Writer.Int wrote.
func (r *Reader) Int() int64 {
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.none()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// Bytes takes bytes that Writer.Bytes or Text wrote. They share the memory of the row,
// and an append to them copies.
func (r *Reader) Bytes() []byte {
	n := r.Uint()
	if n > uint64(len(r.rest)) {
		r.Fail()
		return nil
	}
	v := r.rest[:n:n]
	r.rest = r.rest[n:]
	return v
}

// Text takes a string that Writer.Text or Bytes wrote.
func (r *Reader) Text() string { return string(r.Bytes()) }

// Len is how many bytes are left; 0 for a damaged row.
func (r *Reader) Len() int { return len(r.rest) }

// Rest takes all that is left. It shares the memory of the row.
func (r *Reader) Rest() []byte {
	v := r.rest
	r.rest = nil
	return v
}

// Required says that each field that was read so far is in every row: a row that is
// too short for them is damaged.
func (r *Reader) Required() {
	if r.missing {
		r.Fail()
	}
}

// End says that no writer appends anything here: a row that has more is damaged.
func (r *Reader) End() {
	if len(r.rest) > 0 {
		r.Fail()
	}
}

// Fail says that the row is damaged, for a decoder that has read an impossible value.
// Fields that are read afterwards are zero.
func (r *Reader) Fail() { r.bad, r.rest = true, nil }

// OK reports whether the row is whole so far.
func (r *Reader) OK() bool { return !r.bad }

// none is a number that is not there: behind the end of the row, or within.
func (r *Reader) none() {
	if len(r.rest) > 0 {
		r.Fail()
		return
	}
	r.missing = true
}
