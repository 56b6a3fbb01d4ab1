// Package history is the record of code that repeats: the entries that it has made, as
// rows, and the check that a repeat follows them.
//
// A history is divided into scopes. A scope is code in which one operation follows another:
// the function of a workflow, or one branch of it. Its entries are read in order, and each
// has a kind and a name that must agree with the operation that asks for it. So a repeat
// either sees the same values or learns the place where it differs.
package history

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/storage"
)

// Kind is the sort of operation that an entry records. The numbers are stored.
type Kind byte

const (
	Step     Kind = 1  // a step has returned a value, or has failed for the last time
	Try      Kind = 2  // an attempt at a step has failed, and another follows at Until
	Atomic   Kind = 3  // a step within the store
	Sleep    Kind = 4  // a sleep was begun; it ends at Until
	Deadline Kind = 5  // a wait was begun; it is given up at Until
	Signal   Kind = 6  // a signal was taken, or its wait was given up
	Child    Kind = 7  // a child was started
	Answer   Kind = 8  // a child has ended
	Patch    Kind = 9  // the run goes on with a change of the code
	NearFull Kind = 10 // the history was found nearly full
	Cancel   Kind = 11 // the scope has seen that the run is cancelled
	Each     Kind = 12 // branches were given up: their error
	Fail     Kind = 13 // the function has returned an error
	Undo     Kind = 14 // an undo was registered before any other entry of a branch: it has begun
	Go       Kind = 15 // a branch was begun
	Join     Kind = 16 // a branch was waited for: how it ended
	First    Kind = 17 // a branch has won, and the others were cancelled
)

var kindNames = [...]string{
	Step: "step", Try: "try", Atomic: "atomic", Sleep: "sleep", Deadline: "wait", Signal: "signal", Child: "child",
	Answer: "answer", Patch: "patch", NearFull: "nearfull", Cancel: "cancel", Each: "each", Fail: "fail", Undo: "undo",
	Go: "go", Join: "join", First: "first",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", byte(k))
}

// Entry is one record of a history.
type Entry struct {
	Seq     uint64 // its place in the history, from 0; part of the key
	Scope   string // path of its scope; empty: the function
	Kind    Kind
	Flags   Flags
	Name    string
	At      time.Time // when it was made
	Until   time.Time // of Try, Sleep and Deadline
	Attempt int       // attempts that have failed
	Err     string
	Value   []byte
}

// Flags tell how an operation ended.
type Flags uint64

const (
	Failed    Flags = 1 << 0 // with the error Err; of Cancel: it has cut off the sleep before it
	TimedOut  Flags = 1 << 1 // because its time was used up
	Panicked  Flags = 1 << 2 // in a panic
	Cancelled Flags = 1 << 3 // because the run, or the child, was cancelled
	Exists    Flags = 1 << 4 // a child was not started, because its id is in use
	TooLarge  Flags = 1 << 5 // its value was refused for its size

	known = Failed | TimedOut | Panicked | Cancelled | Exists | TooLarge
)

// The value of an entry, whose key has its sequence number:
//
//	version 1 | kind | uvarint flags | scope | name | varint at | varint until | uvarint attempt | error | value to the end
//
// A time is in nanoseconds since 1970, and 0 is the zero time.
const version = 1

// Append appends e, as it is stored, to b.
func (e *Entry) Append(b []byte) []byte {
	w := row.Writer(b).Byte(version).Byte(byte(e.Kind)).Uint(uint64(e.Flags)).Text(e.Scope).Text(e.Name)
	w = w.Int(nanos(e.At)).Int(nanos(e.Until)).Uint(uint64(e.Attempt)).Text(e.Err)
	return append(w, e.Value...)
}

// Decode reads a row that Append has made. Its error is a storage.ErrCorrupt. The Value of
// the entry is a part of b.
func Decode(seq uint64, b []byte) (Entry, error) {
	r := row.Read(b)
	v := r.Byte()
	e := Entry{Seq: seq, Kind: Kind(r.Byte()), Flags: Flags(r.Uint()), Scope: r.Text(), Name: r.Text(), At: timeOf(r.Int()), Until: timeOf(r.Int())}
	e.Attempt, e.Err = int(min(r.Uint(), 1<<31-1)), r.Text()
	r.Required()
	e.Value = r.Rest()
	if v != version || e.Kind < Step || e.Kind > First || e.Flags&^known != 0 || !r.OK() {
		return Entry{}, fmt.Errorf("%w: entry %d of a history: %x", storage.ErrCorrupt, seq, b)
	}
	return e, nil
}

// nanos is a time as it is stored.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(alarm.Nanos(t), 1)
}

// timeOf is the reverse of nanos.
func timeOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// Bytes is about how many bytes e takes in the store.
func (e *Entry) Bytes() int { return 30 + len(e.Scope) + len(e.Name) + len(e.Err) + len(e.Value) }

// Operation names an operation in texts, for example: step "charge".
func Operation(k Kind, name string) string {
	if k == Try {
		k = Step
	}
	if k == Deadline {
		k = Signal
	}
	if name == "" {
		return k.String()
	}
	return fmt.Sprintf("%s %q", k, name)
}

// ScopeName names a scope in texts: "the function", or for example: branch ship[3].
func ScopeName(path string) string {
	if path == "" {
		return "the function"
	}
	return "branch " + strings.TrimSuffix(path, "/")
}
