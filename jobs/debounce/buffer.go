package debounce

import (
	"time"

	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/jobs/engine"
)

// generation is the events of one flush: their count and their times. The
// events themselves are rows of their own.
type generation struct {
	number uint64 // counts from 1
	count  int    // number of events
	folded bool   // Reduce folded the events into one state
	// versions tells under which Version each event was stored; events count
	// from 0, and a state is event 0. Only the buffer row has it.
	versions engine.Versions
	first    time.Time // when the first event came
	last     time.Time // when the newest event came
	full     time.Time // when MaxEvents were reached; zero: not yet
	manual   time.Time // when FlushNow was called; zero: it was not

	// Set when the generation closes. Each attempt to flush it has the same
	// values.
	due    time.Time
	reason Reason
}

// buffer is the row with the two generations of an object. Code that changes it
// makes a changed copy, stores that, and only then assigns it to
// instance.buffer, so that a failed write leaves memory and storage equal.
//
// Invariant: closed.number == 0, or closed.number + 1 == open.number.
type buffer struct {
	open    generation // collects events
	closed  generation // is being flushed, or waits for its next attempt; number 0: none
	flushed int64      // events flushed since the job was made
	dropped int64      // events dropped or cleared since the job was made
	// idle is a time from which the object counts as idle, for changes that do
	// not rewrite the metadata. If the metadata is newer, its time counts.
	// Zero: its time counts too.
	idle time.Time
}

// isClosed reports whether there is a closed generation.
func (b *buffer) isClosed() bool { return b.closed.number != 0 }

// done is the number of the last generation that needs no flush any more.
func (b *buffer) done() uint64 {
	if b.isClosed() {
		return b.closed.number - 1
	}
	return b.open.number - 1
}

// close closes the open generation and opens an empty one. next holds the
// Version that its events will have.
func (b *buffer) close(due time.Time, why Reason, next engine.Versions) {
	b.closed = b.open
	b.closed.due, b.closed.reason = due, why
	b.open = generation{number: b.closed.number + 1, versions: next}
}

// forgetClosed forgets the closed generation. The caller deletes its rows in the same
// batch.
func (b *buffer) forgetClosed() { b.closed = generation{} }

const bufferVersion = 1

// appendTo appends the row: a version byte and then the fields in the order
// below. A field is a varint, except that a reason and the versions of a
// generation are bytes preceded by their length. Times are nanoseconds since
// 1970, 0 for the zero time.
//
// New fields go to the end, and a decoder takes missing ones as zero. So a row
// without versions ends after idle, and before idle if that is zero too.
func (b *buffer) appendTo(dst []byte) []byte {
	w := row.Writer(dst)
	w = w.Byte(bufferVersion)
	w = appendGeneration(w, b.open)
	w = appendGeneration(w, b.closed)
	w = w.Int(b.flushed)
	w = w.Int(b.dropped)
	versions := b.open.versions != "" || b.closed.versions != ""
	if !versions && b.idle.IsZero() {
		return w
	}
	w = w.Int(nanos(b.idle))
	if !versions {
		return w
	}
	w = w.Text(string(b.open.versions))
	w = w.Text(string(b.closed.versions))
	return w
}

// appendGeneration appends the fields of g, or a single 0 if there is none.
func appendGeneration(w row.Writer, g generation) row.Writer {
	w = w.Uint(g.number)
	if g.number == 0 {
		return w
	}
	w = w.Int(int64(g.count))
	folded := int64(0)
	if g.folded {
		folded = 1
	}
	w = w.Int(folded)
	for _, t := range [...]time.Time{g.first, g.last, g.full, g.manual, g.due} {
		w = w.Int(nanos(t))
	}
	return w.Text(string(g.reason))
}

// nanos is a time as it is stored.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// decodeBuffer is the inverse of appendTo.
func decodeBuffer(stored []byte) (b buffer, err error) {
	r := row.Read(stored)
	if r.Byte() != bufferVersion {
		return b, engine.Invalidf("debounce", "buffer row is of another version")
	}
	b.open = generationIn(&r)
	b.closed = generationIn(&r)
	b.flushed, b.dropped, b.idle = r.Int(), r.Int(), timeIn(&r)
	b.open.versions = versionsIn(&r)
	b.closed.versions = versionsIn(&r)
	if !r.OK() || !b.valid() {
		return b, engine.Invalidf("debounce", "buffer row is damaged")
	}
	return b, nil
}

func timeIn(r *row.Reader) time.Time {
	v := r.Int()
	if v == 0 {
		return time.Time{}
	}
	return time.Unix(0, v).UTC()
}

// generationIn reads the fields that appendGeneration appends.
func generationIn(r *row.Reader) (g generation) {
	g.number = r.Uint()
	if g.number == 0 {
		return g
	}
	g.count = int(r.Int())
	g.folded = r.Int() == 1
	for _, t := range [...]*time.Time{&g.first, &g.last, &g.full, &g.manual, &g.due} {
		*t = timeIn(r)
	}
	g.reason = Reason(r.Text())
	return g
}

func versionsIn(r *row.Reader) engine.Versions {
	v, err := engine.ParseVersions(r.Bytes())
	if err != nil {
		r.Fail()
	}
	return v
}

// valid reports whether b keeps the invariant of buffer.
func (b *buffer) valid() bool {
	return b.open.count >= 0 && b.closed.count >= 0 && b.open.number != 0 &&
		(!b.isClosed() || b.closed.number+1 == b.open.number)
}
