package journal

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/storage"
)

// The keys of a journal, in the keyspace of its object. FORMAT.md has the bytes. They begin
// with the byte 0, so that they do not meet keys that users choose.
const (
	prefix         = "\x00e"
	eventPrefix    = prefix + "/"
	snapshotPrefix = prefix + "!"
)

// Versions of the forms below; those of the user's values stand within.
const (
	eventForm    = 1
	snapshotForm = 1
)

// errStopped ends each when the caller of Since ranges no further.
var errStopped = errors.New("stopped")

// eventKey and snapshotKey are the keys of an event, and of the snapshot after it.
func eventKey(seq uint64) string    { return numbered(eventPrefix, seq) }
func snapshotKey(seq uint64) string { return numbered(snapshotPrefix, seq) }

// numbered is a prefix and a number that sorts by its value.
func numbered(prefix string, seq uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(prefix), seq))
}

// seqOf returns the number in a key. A key of another form is damage, or was written by
// the user.
func (j *Journal[State, Event]) seqOf(key, prefix string) (uint64, error) {
	number, ok := strings.CutPrefix(key, prefix)
	if !ok || len(number) != 8 {
		return 0, j.fail("%w: key %q has no sequence number; keys that begin with %q belong to the journal", storage.ErrCorrupt, key, prefix)
	}
	return binary.BigEndian.Uint64([]byte(number)), nil
}

// appendEvent appends the value of an event's row.
func appendEvent(dst []byte, version int, at time.Time, data []byte) []byte {
	w := row.Writer(dst).Byte(eventForm).Uint(uint64(version)).Int(at.UnixNano())
	return append(w, data...)
}

// decodeEvent is the reverse of appendEvent. data shares the memory of b.
func decodeEvent(b []byte) (version int, at time.Time, data []byte, ok bool) {
	r := row.Read(b)
	form := r.Byte()
	version, at = int(r.Uint()), time.Unix(0, r.Int()).UTC()
	r.Required()
	return version, at, r.Rest(), r.OK() && form == eventForm && version >= 0
}

// appendSnapshot appends the value of a snapshot's row.
func appendSnapshot(dst []byte, version int, past trimmed, data []byte) []byte {
	w := row.Writer(dst).Byte(snapshotForm).Uint(uint64(version)).Uint(past.base).Uint(past.first)
	return append(w, data...)
}

// decodeSnapshot is the reverse of appendSnapshot. data shares the memory of b.
func decodeSnapshot(b []byte) (version int, past trimmed, data []byte, ok bool) {
	r := row.Read(b)
	form := r.Byte()
	version, past = int(r.Uint()), trimmed{base: r.Uint(), first: r.Uint()}
	r.Required()
	return version, past, r.Rest(), r.OK() && form == snapshotForm && version >= 0
}

// head is the beginning of a damaged value, for an error.
func head(b []byte) []byte { return b[:min(len(b), 32)] }

// decode returns the value of a row in its form of today. what is the word for the row, and
// option the one that has its version.
func decode[State, Event, T any](j *Journal[State, Event], what, option string, seq uint64, version, today int, data []byte, upcast func(int, []byte) (T, error)) (v T, err error) {
	switch {
	case version > today:
		return v, j.fail("%s %d has version %d, and this code knows versions up to %d (Options.%s): newer code has written it, so deploy that again", what, seq, version, today, option)
	case version == today:
		err = guard(func() error { return j.st.Driver().Codec().Decode(data, &v) })
	case upcast == nil:
		return v, j.fail("%s %d has version %d, and nothing leads from there to version %d (Options.%s): set Options.Upcast%s", what, seq, version, today, option, strings.TrimSuffix(option, "Version"))
	default:
		err = guard(func() (err error) {
			v, err = upcast(version, data)
			return err
		})
	}
	if err != nil {
		return v, j.fail("%s %d of version %d: %w", what, seq, version, err)
	}
	return v, nil
}
