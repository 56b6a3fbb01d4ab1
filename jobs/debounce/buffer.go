package debounce

import (
	"encoding/binary"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// generation is the events of one flush.
type generation struct {
	number uint64 // from 1
	count  int    // events in it
	folded bool   // they are in a state made by Reduce, not in rows of their own
	// versions are those that the events, numbered from 0, were stored under; of a
	// state it is that of number 0. The buffer stores them, and no row of an event.
	versions jobs.Versions
	first    time.Time
	last     time.Time
	full     time.Time // when it had MaxEvents; zero: not yet
	manual   time.Time // when its flush was asked for; zero: it was not

	// Set when it closes, and the same in every attempt to flush it.
	due    time.Time
	reason Reason
}

// buffer is the row that tells what an object has collected. A turn makes a new
// buffer from the present one, stores it, and only then lets it take its place.
//
// Invariant: closed.number == 0, or closed.number + 1 == open.number.
type buffer struct {
	open    generation // collects
	closed  generation // is being flushed, or is about to be; number 0: there is none
	flushed int64      // events flushed in this life
	dropped int64      // events given up or cleared
	// idle is a time from which the object has been idle, at the earliest; that of the
	// metadata counts if it is later. Zero: that of the metadata counts.
	idle time.Time
}

// isClosed reports whether a generation waits for the end of its flush.
func (b *buffer) isClosed() bool { return b.closed.number != 0 }

// done is the number of the last generation that needs no flush any more.
func (b *buffer) done() uint64 {
	if b.isClosed() {
		return b.closed.number - 1
	}
	return b.open.number - 1
}

// close closes the open generation and opens the next, of the version of its first
// event to be.
func (b *buffer) close(due time.Time, why Reason, next jobs.Versions) {
	b.closed = b.open
	b.closed.due, b.closed.reason = due, why
	b.open = generation{number: b.closed.number + 1, versions: next}
}

// drop forgets the closed generation; its rows go in the same batch.
func (b *buffer) drop() { b.closed = generation{} }

const bufferVersion = 1

// appendTo appends the row: the version, then the fields in the order below, each a
// varint, but a reason, and the versions of a generation, each of which is a varint
// length and its bytes. Times are nanoseconds since 1970, 0 if zero. New fields go to
// the end. A row that ends early has zeros there: one without versions ends after idle,
// and before it if that is zero.
func (b *buffer) appendTo(row []byte) []byte {
	row = append(row, bufferVersion)
	row = appendGeneration(row, b.open)
	row = appendGeneration(row, b.closed)
	row = binary.AppendVarint(row, b.flushed)
	row = binary.AppendVarint(row, b.dropped)
	versions := b.open.versions != "" || b.closed.versions != ""
	if !versions && b.idle.IsZero() {
		return row
	}
	row = appendTime(row, b.idle)
	if !versions {
		return row
	}
	return appendVersions(appendVersions(row, b.open.versions), b.closed.versions)
}

func appendVersions(row []byte, v jobs.Versions) []byte {
	return append(binary.AppendUvarint(row, uint64(len(v))), v...)
}

func appendGeneration(row []byte, g generation) []byte {
	row = binary.AppendUvarint(row, g.number)
	if g.number == 0 {
		return row
	}
	row = binary.AppendVarint(row, int64(g.count))
	folded := int64(0)
	if g.folded {
		folded = 1
	}
	row = binary.AppendVarint(row, folded)
	for _, t := range [...]time.Time{g.first, g.last, g.full, g.manual, g.due} {
		row = appendTime(row, t)
	}
	row = binary.AppendUvarint(row, uint64(len(g.reason)))
	return append(row, g.reason...)
}

func appendTime(row []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(row, 0)
	}
	return binary.AppendVarint(row, t.UnixNano())
}

func decodeBuffer(row []byte) (b buffer, err error) {
	if len(row) == 0 || row[0] != bufferVersion {
		return b, jobs.Invalidf("debounce", "buffer row is of another version")
	}
	r := reader{rest: row[1:]}
	b.open = r.generation()
	b.closed = r.generation()
	b.flushed = r.varint()
	b.dropped = r.varint()
	b.idle = r.time()
	b.open.versions = r.versions()
	b.closed.versions = r.versions()
	return b, r.check(b)
}

// reader takes fields from the front of a row. After the end every field is zero.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.skip(n)
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	r.skip(n)
	return v
}

func (r *reader) skip(n int) {
	if n <= 0 && len(r.rest) > 0 {
		r.bad, r.rest = true, nil
		return
	}
	r.rest = r.rest[max(n, 0):]
}

func (r *reader) time() time.Time {
	v := r.varint()
	if v == 0 {
		return time.Time{}
	}
	return time.Unix(0, v).UTC()
}

func (r *reader) generation() (g generation) {
	g.number = r.uvarint()
	if g.number == 0 {
		return g
	}
	g.count = int(r.varint())
	g.folded = r.varint() == 1
	for _, t := range [...]*time.Time{&g.first, &g.last, &g.full, &g.manual, &g.due} {
		*t = r.time()
	}
	g.reason = Reason(r.text())
	return g
}

func (r *reader) versions() jobs.Versions {
	v, err := jobs.ParseVersions(r.text())
	if err != nil {
		r.bad, r.rest = true, nil
	}
	return v
}

// text is a length and as many bytes.
func (r *reader) text() []byte {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return nil
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return text
}

// check tells what is wrong with a row that was read.
func (r *reader) check(b buffer) error {
	switch {
	case r.bad, b.open.count < 0, b.closed.count < 0:
	case b.open.number == 0:
	case b.isClosed() && b.closed.number+1 != b.open.number:
	default:
		return nil
	}
	return jobs.Invalidf("debounce", "buffer row is damaged")
}
