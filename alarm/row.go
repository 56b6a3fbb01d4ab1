package alarm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"
)

// MaxErrorBytes is how much of an error text a Row keeps.
const MaxErrorBytes = 1024

// ErrCorrupt is wrapped by every error of a decoder.
var ErrCorrupt = errors.New("alarm: corrupt encoding")

// Row is the alarm of one object as it is stored. Times are kept in nanoseconds
// from 1970 to 2262 and come back in UTC; earlier and later ones are moved to
// the nearer end, and the zero Time stays zero.
type Row struct {
	Due       time.Time // when it fires next; the time of its index entry
	Gen       uint64    // tells this setting of the alarm from every other one of the object
	Scheduled time.Time // when it was meant to fire first; retries leave it alone
	Attempt   int       // attempts that failed
	Crashes   int       // attempts that the end of the process cut off
	LastError string    // of the last failed attempt, at most MaxErrorBytes
	Dead      bool      // a dead letter: retries are used up and no index entry exists
	CutEpoch  uint64    // the opening of the store whose end cut off the last attempt; 0 for none
}

// A row is, with uvarint for each number and for the length of a text:
//
//	version (1 byte) | due | gen | scheduled | attempt | crashes | flags | last error | cut epoch
//
// The cut epoch is left out if it is 0.
// Fields are only ever added at the end. A reader takes what it knows: fields
// that an older writer did not have are zero (scheduled: due), fields that a
// newer one added are passed over.
const (
	rowVersion  = 1
	rowFlagDead = 1 << 0
)

// AppendRow appends the encoding of r to dst and returns the longer slice.
// Negative counts are written as zero, and a long LastError is cut.
func AppendRow(dst []byte, r Row) []byte {
	var flags uint64
	if r.Dead {
		flags |= rowFlagDead
	}
	dst = append(dst, rowVersion)
	dst = binary.AppendUvarint(dst, uint64(Nanos(r.Due)))
	dst = binary.AppendUvarint(dst, r.Gen)
	dst = binary.AppendUvarint(dst, uint64(Nanos(r.Scheduled)))
	dst = binary.AppendUvarint(dst, uint64(max(r.Attempt, 0)))
	dst = binary.AppendUvarint(dst, uint64(max(r.Crashes, 0)))
	dst = binary.AppendUvarint(dst, flags)
	dst = appendText(dst, Cut(r.LastError, MaxErrorBytes))
	if r.CutEpoch != 0 {
		dst = binary.AppendUvarint(dst, r.CutEpoch)
	}
	return dst
}

// DecodeRow is the reverse of AppendRow. Its error wraps ErrCorrupt.
func DecodeRow(b []byte) (Row, error) {
	d := decoder{what: "row"}
	d.version(b)
	var r Row
	r.Due = d.time()
	r.Gen = d.uvarint()
	r.Scheduled = r.Due
	if d.more() {
		r.Scheduled = d.time()
	}
	if d.more() {
		r.Attempt = d.count()
	}
	if d.more() {
		r.Crashes = d.count()
	}
	if d.more() {
		r.Dead = d.uvarint()&rowFlagDead != 0
	}
	if d.more() {
		r.LastError = Cut(string(d.bytes()), MaxErrorBytes)
	}
	if d.more() {
		r.CutEpoch = d.uvarint()
	}
	if d.err != nil {
		return Row{}, d.err
	}
	return r, nil
}

// last is the last time that can be stored.
var last = timeOf(math.MaxInt64)

// Nanos is t as rows and the index keep it: nanoseconds since 1970, zero for a time
// before, the greatest number for one after 2262. It is the due time of an index key.
func Nanos(t time.Time) int64 {
	switch {
	case t.Unix() < 0:
		return 0
	case t.After(last):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// timeOf is the reverse of Nanos.
func timeOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// Cut shortens text to maxBytes without breaking a character.
func Cut(text string, maxBytes int) string {
	if len(text) <= maxBytes {
		return text
	}
	n := maxBytes
	for n > maxBytes-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// decoder reads fields from rest and keeps the first error, after which no field counts.
type decoder struct {
	what string
	rest []byte
	err  error
}

func (d *decoder) fail(field string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s: bad %s", ErrCorrupt, d.what, field)
	}
}

// more reports whether the writer had another field.
func (d *decoder) more() bool { return len(d.rest) > 0 }

func (d *decoder) version(b []byte) {
	if len(b) == 0 || b[0] == 0 {
		d.fail("version")
		return
	}
	d.rest = b[1:]
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.fail("number")
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) time() time.Time {
	v := d.uvarint()
	if v > math.MaxInt64 {
		d.fail("time")
		return time.Time{}
	}
	return timeOf(int64(v))
}

func (d *decoder) count() int {
	v := d.uvarint()
	if v > math.MaxInt32 {
		d.fail("count")
		return 0
	}
	return int(v)
}

// bytes reads a text; it shares memory with the input.
func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if n > uint64(len(d.rest)) {
		d.fail("length")
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}
