package alarm

import (
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/internal/row"
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
	CutEpoch  uint64    // the opening of the store that ended during the last attempt; 0 for none
	// OwnersLost counts the attempts in a row that a take-over of the store by another node cut off.
	OwnersLost int
}

// A row is, with uvarint for each number and for the length of a text:
//
//	version (1 byte) | due | gen | scheduled | attempt | crashes | flags | last error | cut epoch | owners lost
//
// The owners lost are left out if they are 0, and then the cut epoch too if it is 0.
// Fields are only ever added at the end. A reader takes the fields it knows: those
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
	w := row.Writer(dst).Byte(rowVersion)
	w = w.Uint(uint64(Nanos(r.Due))).Uint(r.Gen).Uint(uint64(Nanos(r.Scheduled)))
	w = w.Uint(uint64(max(r.Attempt, 0))).Uint(uint64(max(r.Crashes, 0))).Uint(flags)
	w = w.Text(Cut(r.LastError, MaxErrorBytes))
	if r.CutEpoch != 0 || r.OwnersLost > 0 {
		w = w.Uint(r.CutEpoch)
	}
	if r.OwnersLost > 0 {
		w = w.Uint(uint64(r.OwnersLost))
	}
	return w
}

// DecodeRow reads a row that AppendRow has appended. Its error wraps ErrCorrupt.
func DecodeRow(b []byte) (Row, error) {
	d := row.Read(b)
	version := d.Byte()
	var r Row
	r.Due, r.Gen = timeIn(&d), d.Uint()
	d.Required()
	r.Scheduled = r.Due
	if d.Len() > 0 {
		r.Scheduled = timeIn(&d)
	}
	r.Attempt, r.Crashes = countIn(&d), countIn(&d)
	r.Dead = d.Uint()&rowFlagDead != 0
	r.LastError = Cut(d.Text(), MaxErrorBytes)
	r.CutEpoch, r.OwnersLost = d.Uint(), countIn(&d)
	if version == 0 || !d.OK() {
		return Row{}, fmt.Errorf("%w: row %x", ErrCorrupt, b)
	}
	return r, nil
}

// timeIn reads the time of a row.
func timeIn(d *row.Reader) time.Time {
	v := d.Uint()
	if v > math.MaxInt64 {
		d.Fail()
		return time.Time{}
	}
	return timeOf(int64(v))
}

// countIn reads a number of attempts.
func countIn(d *row.Reader) int {
	v := d.Uint()
	if v > math.MaxInt32 {
		d.Fail()
		return 0
	}
	return int(v)
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
