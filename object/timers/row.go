package timers

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	rows "github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// The keys of the timers in the object's own keyspace. They begin with a NUL, so that they
// meet no key that a user has thought of. FORMAT.md has the bytes.
const (
	prefix     = "\x00t/"
	duePrefix  = prefix + "d/" // then due time (8), name: the timer
	namePrefix = prefix + "n/" // then name: due time (8)
	deadPrefix = prefix + "x/" // then the number of a dead letter (8): name, timer
)

func dueKey(due int64, name string) string {
	b := make([]byte, 0, len(duePrefix)+8+len(name))
	b = binary.BigEndian.AppendUint64(append(b, duePrefix...), uint64(due))
	return string(append(b, name...))
}

func nameKey(name string) string { return namePrefix + name }

func deadKey(seq uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(deadPrefix), seq))
}

// row is a timer as it is stored. Times are nanoseconds since 1970; 0 is none.
type row struct {
	name string // in the key, and so is due
	due  int64  // when it fires, or is tried again

	gen       uint64 // of the last change, so that a handler's own change is seen
	taken     bool   // cursor has passed the occurrence that scheduled is, because an attempt at it has failed
	failures  int    // attempts at it that failed
	crashes   int    // crashes in a row that ended an attempt, as far as they are counted
	scheduled int64  // the time that At was given, or the occurrence; 0: it is yet to be taken
	first     int64  // when the first attempt that failed began
	lastError string
	text      string // of the schedule; empty: it fires once
	schedule  jobs.Schedule
	broken    error // not stored: this program cannot read text, for example for a lack of the zone
	cursor    jobs.Cursor
	payload   []byte
}

const (
	rowVersion = 1
	flagTaken  = 1
	// rowBytes is more than the bytes of a timer beside its texts and its payload.
	rowBytes = 80
)

// leastBytes is how long the value of a timer, or of a dead one, may become without the text
// of an error.
func (r *row) leastBytes() int { return rowBytes + len(r.name) + len(r.text) + len(r.payload) }

// encode returns the value of a timer. Only timers with a schedule have the fields of one.
func (r *row) encode() []byte {
	w := make(rows.Writer, 0, rowBytes+len(r.lastError)+len(r.text)+len(r.payload)).Byte(rowVersion)
	flags := uint64(0)
	if r.taken {
		flags = flagTaken
	}
	w = w.Uint(flags).Uint(r.gen).Uint(uint64(r.failures)).Uint(uint64(r.crashes))
	w = w.Int(r.scheduled).Int(r.first).Text(r.lastError).Text(r.text)
	if r.text != "" {
		w = w.Int(nanos(r.cursor.Anchor)).Int(nanos(r.cursor.Last))
	}
	return append(w, r.payload...)
}

// decode is the reverse of encode, for the key and the value of a timer.
func decode(st *object.State, key string, value []byte) (row, error) {
	r, err := decodeRow(key, value)
	if err != nil {
		return r, fmt.Errorf("%s: %w", st.ID(), err)
	}
	return r, nil
}

func decodeRow(key string, value []byte) (row, error) {
	rest, ok := strings.CutPrefix(key, duePrefix)
	if !ok || len(rest) <= 8 {
		return row{}, fmt.Errorf("%w: timers: key %q", storage.ErrCorrupt, key)
	}
	r := row{due: int64(binary.BigEndian.Uint64([]byte(rest[:8]))), name: rest[8:]}
	return r, r.read(value)
}

// read sets all fields that are not in the key from the value of a timer.
func (r *row) read(value []byte) error {
	in := rows.Read(value)
	version := in.Byte()
	flags := in.Uint()
	r.gen, r.failures, r.crashes = in.Uint(), int(in.Uint()), int(in.Uint())
	r.scheduled, r.first, r.lastError, r.text = in.Int(), in.Int(), in.Text(), in.Text()
	if r.taken = flags == flagTaken; flags > flagTaken {
		in.Fail()
	}
	if r.text != "" {
		r.cursor = jobs.Cursor{Anchor: timeOf(in.Int()), Last: timeOf(in.Int())}
	}
	in.Required()
	if !in.OK() || version != rowVersion {
		return fmt.Errorf("%w: timers: timer %q: %x", storage.ErrCorrupt, r.name, value)
	}
	r.payload = in.Rest()
	if r.text != "" {
		r.broken = r.schedule.UnmarshalText([]byte(r.text))
	}
	return nil
}

// nanos is t as it is stored.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// timeOf is the reverse of nanos.
func timeOf(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// Timer is one named wake-up, as it is stored.
type Timer struct {
	Name string `json:"name"`
	// Due is when it fires, or when it is tried again.
	Due time.Time `json:"due"`
	// Scheduled is the time that At was given, or the occurrence of the schedule. A retry
	// does not change it. In a list it is zero for a timer with a schedule, until an
	// attempt at its next occurrence has failed.
	Scheduled time.Time `json:"scheduled,omitzero"`
	// Schedule is the one that On was given; the zero Schedule for a timer of At.
	Schedule jobs.Schedule `json:"schedule,omitzero"`
	// Failures counts the attempts that have failed so far. A crash is no failure.
	Failures int `json:"failures"`
	// LastError is the text of the last of them, shortened to alarm.MaxErrorBytes.
	LastError string `json:"lastError,omitempty"`

	codec   object.Codec
	payload []byte
}

// Payload decodes the payload into the variable that v points to, with the host's codec. A
// timer that was set with nil leaves the variable alone.
func (t Timer) Payload(v any) error {
	if len(t.payload) == 0 {
		return nil
	}
	if err := t.codec.Decode(t.payload, v); err != nil {
		return fmt.Errorf("timers: decode the payload of timer %q: %w", t.Name, err)
	}
	return nil
}

// shown returns a row as users see it.
func (t *Timers) shown(r row) Timer {
	return Timer{
		Name: r.name, Due: timeOf(r.due), Scheduled: timeOf(r.scheduled), Schedule: r.schedule,
		Failures: r.failures, LastError: r.lastError,
		codec: t.st.Driver().Codec(), payload: r.payload,
	}
}

// dueOf returns the due time of the timer of that name; ok is false if there is none.
func (t *Timers) dueOf(ctx context.Context, name string) (due int64, ok bool, err error) {
	b, ok, err := t.st.Storage().Get(ctx, nameKey(name))
	switch {
	case err != nil || !ok:
		return 0, false, err
	case len(b) != 8:
		return 0, false, t.named(name, fmt.Errorf("%w: its time is %x", storage.ErrCorrupt, b))
	}
	return int64(binary.BigEndian.Uint64(b)), true, nil
}

// find reads the timer of that name.
func (t *Timers) find(ctx context.Context, name string) (row, bool, error) {
	due, ok, err := t.dueOf(ctx, name)
	if err != nil || !ok {
		return row{}, false, err
	}
	r, ok, err := t.read(ctx, dueKey(due, name))
	if err == nil && !ok {
		err = t.named(name, fmt.Errorf("%w: it has a time and no row", storage.ErrCorrupt))
	}
	return r, ok, err
}

// read reads the timer under a key of duePrefix.
func (t *Timers) read(ctx context.Context, key string) (row, bool, error) {
	value, ok, err := t.st.Storage().Get(ctx, key)
	if err != nil || !ok {
		return row{}, false, err
	}
	r, err := decode(t.st, key, value)
	return r, err == nil, err
}

// set stores a timer in place of the one of its name that is due at old (0: there is none),
// and moves the alarm. It checks all sizes before it writes anything.
func (t *Timers) set(ctx context.Context, old int64, r row) error {
	if n, most := r.leastBytes(), t.st.Driver().MaxValueBytes(); n > most {
		return t.named(r.name, fmt.Errorf("%w: about %d bytes with its payload of %d, the limit is %d", object.ErrValueTooLarge, n, len(r.payload), most))
	}
	if err := t.put(ctx, old, r); err != nil {
		return err
	}
	return t.moved(ctx, old, r.due)
}

// room returns ErrBatchTooLarge if so many bytes of keys and values, in so many records, do
// not fit in the turn's batch any more.
func (t *Timers) room(ctx context.Context, name string, records, size int) error {
	const overhead = 40 // a record has less beside its key and value
	written, err := t.st.Driver().WrittenBytes(ctx)
	if err != nil {
		return err
	}
	if most := t.st.Driver().MaxBatchBytes(); written+size+records*overhead > most {
		return t.named(name, fmt.Errorf("%w: more than %d bytes", object.ErrBatchTooLarge, most))
	}
	return nil
}

// put stores a timer in place of the one of its name that is due at old, and leaves the
// alarm alone.
func (t *Timers) put(ctx context.Context, old int64, r row) error {
	s := t.st.Storage()
	r.gen = t.st.Driver().NextSequence()
	key, value := dueKey(r.due, r.name), r.encode()
	if err := t.room(ctx, r.name, 3, 3*len(key)+len(value)); err != nil {
		return err
	}
	if old != 0 && old != r.due {
		if err := s.Remove(ctx, dueKey(old, r.name)); err != nil {
			return t.named(r.name, err)
		}
	}
	if err := s.PutBytes(ctx, key, value); err != nil {
		return t.named(r.name, err)
	}
	if old == r.due {
		return nil
	}
	var due [8]byte
	binary.BigEndian.PutUint64(due[:], uint64(r.due))
	if err := s.PutBytes(ctx, nameKey(r.name), due[:]); err != nil {
		return t.named(r.name, err)
	}
	return nil
}

// remove takes the rows of a timer away, and leaves the alarm alone.
func (t *Timers) remove(ctx context.Context, due int64, name string) error {
	key := dueKey(due, name)
	if err := t.room(ctx, name, 2, 2*len(key)); err != nil {
		return err
	}
	if err := t.st.Storage().Remove(ctx, key, nameKey(name)); err != nil {
		return t.named(name, err)
	}
	return nil
}

// moved brings the alarm up to date after a timer has moved from one time to another; 0 is
// none. It reads the rows only if the timer may have been the earliest. While the alarm is
// handled there is nothing to do, because Alarm sets it at its end.
func (t *Timers) moved(ctx context.Context, from, to int64) error {
	if t.firing {
		return nil
	}
	at, armed, err := t.st.Alarm(ctx)
	if err != nil {
		return err
	}
	switch failures, err := t.st.Driver().AlarmFailures(ctx); {
	case err != nil:
		return err
	case armed && failures > 0:
		return nil // it waits for another attempt, which counts what ended without a trace
	}
	now := at.UnixNano()
	switch {
	case !armed, from != 0 && from <= now:
		return t.arm(ctx)
	case to != 0 && to < now:
		return t.st.Driver().SetAlarm(ctx, timeOf(to))
	}
	return nil
}

// arm sets the alarm to the time of the earliest timer, or removes it if there is none.
func (t *Timers) arm(ctx context.Context) error {
	keys, err := t.keys(ctx, math.MaxInt64, 1)
	switch {
	case err != nil:
		return err
	case len(keys) == 0:
		return t.st.Driver().DeleteAlarm(ctx)
	}
	due := timeOf(int64(binary.BigEndian.Uint64([]byte(keys[0][len(duePrefix):]))))
	if at, armed, err := t.st.Alarm(ctx); err != nil || armed && at.Equal(due) {
		return err
	}
	return t.st.Driver().SetAlarm(ctx, due)
}

// keys returns the keys of the first timers that are due at now or before, up to limit.
func (t *Timers) keys(ctx context.Context, now int64, limit int) (keys []string, err error) {
	o := object.ListOptions{Prefix: duePrefix, Limit: limit}
	if now < math.MaxInt64 {
		o.End = dueKey(now+1, "")
	}
	for item, err := range t.st.Storage().List(ctx, o) {
		switch {
		case err != nil:
			return nil, err
		case len(item.Key) <= len(duePrefix)+8:
			return nil, fmt.Errorf("%s: %w: timers: key %q", t.st.ID(), storage.ErrCorrupt, item.Key)
		}
		keys = append(keys, item.Key)
	}
	return keys, nil
}

// dueKeyRest returns the begin of a dead timer's value: its name.
func dueKeyRest(r row) []byte { return rows.Writer(nil).Text(r.name) }

// letter reads the timer that a dead letter has kept.
func (t *Timers) letter(ctx context.Context, seq uint64) (row, error) {
	value, ok, err := t.st.Storage().Get(ctx, deadKey(seq))
	switch {
	case err != nil:
		return row{}, err
	case !ok:
		return row{}, fmt.Errorf("%s: timers: letter %d: %w", t.st.ID(), seq, object.ErrNoDeadLetter)
	}
	in := rows.Read(value)
	r := row{name: in.Text()}
	if !in.OK() || r.name == "" {
		return row{}, fmt.Errorf("%s: %w: timers: letter %d: %x", t.st.ID(), storage.ErrCorrupt, seq, value)
	}
	if err := r.read(in.Rest()); err != nil {
		return row{}, fmt.Errorf("%s: %w", t.st.ID(), err)
	}
	return r, nil
}
