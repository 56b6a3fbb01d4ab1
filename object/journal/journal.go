package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// Options say how the events of a journal are folded and how long they are kept. Only
// Apply must be set.
type Options[State, Event any] struct {
	// Apply returns the state after an event. The state before the first event is the
	// zero value. Apply must be a function of its arguments alone. It may change the
	// state that it gets and return it. An error or a panic refuses the event.
	Apply func(s State, e Event) (State, error)
	// SnapshotEvery is the number of events after which a snapshot of the state is
	// stored. Zero means 100; it must not be negative.
	SnapshotEvery int
	// Keep is the number of events before the newest snapshot that are kept for At and
	// Since. Zero means none, a negative number means all; snapshots between them are
	// kept too. A lower Keep than before removes the older ones little by little.
	Keep int

	// Version is the version of the events that are appended. It must not be negative,
	// and must not go down while newer events are stored.
	Version int
	// Upcast returns the event of today for the bytes of an event of an older version, as
	// the host's codec has encoded it. Nil means that no older version is known.
	Upcast func(version int, data []byte) (Event, error)
	// StateVersion is the version of the snapshots, as Version is that of the events.
	StateVersion int
	// UpcastState is Upcast for snapshots. If it is nil, a journal with all its events
	// folds them from the first one, in place of a snapshot of an older version.
	UpcastState func(version int, data []byte) (State, error)
}

// Entry is an event with its place in the journal.
type Entry[Event any] struct {
	Seq   uint64    `json:"seq"`   // 1 for the first event of the object
	At    time.Time `json:"at"`    // when it was appended, by the host's clock
	Event Event     `json:"event"` // in its form of today
}

// ErrTrimmed is the error of At and Since for a place whose events are not kept any more;
// Options.Keep says how many are.
var ErrTrimmed = errors.New("journal: events are not kept any more")

// Journal is the journal of one object, in the memory of one instance. Its methods belong
// to the turns of the object; no other goroutine may call them.
type Journal[State, Event any] struct {
	st      *object.State
	options Options[State, Event]
	memory[State]
	scratch scratch[Event]
	writing bool // write is under way, and mends memory by itself
}

// memory is the part of a journal that its rows decide.
type memory[State any] struct {
	state    State
	seq      uint64 // of the newest event; 0: none
	snapshot uint64 // sequence of the newest snapshot that this code can read; 0: none
	trimmed
}

// trimmed tells how far the past has been removed. It is stored with each snapshot, so
// an activation need not look for the oldest rows.
//
//	first ≤ base + 1: each event after base is stored, and perhaps some before it
type trimmed struct {
	base  uint64 // sequence of the oldest snapshot that is kept; 0: all events are kept
	first uint64 // the oldest event that is stored, or is yet to come
}

// Attach reads the journal of an object. The constructor calls it once, and it writes
// nothing. It fails if a row cannot be read by this code, with an error that names the
// event or the snapshot; the object then does not start.
func Attach[State, Event any](ctx context.Context, st *object.State, o Options[State, Event]) (*Journal[State, Event], error) {
	if o.SnapshotEvery == 0 {
		o.SnapshotEvery = 100
	}
	j := &Journal[State, Event]{st: st, options: o}
	switch {
	case o.Apply == nil:
		return nil, j.fail("Options.Apply is not set: it says how an event changes the state")
	case o.SnapshotEvery < 0:
		return nil, j.fail("Options.SnapshotEvery is %d: it must not be negative, and zero means 100", o.SnapshotEvery)
	case o.Version < 0 || o.StateVersion < 0:
		return nil, j.fail("Options.Version is %d and StateVersion is %d: they must not be negative", o.Version, o.StateVersion)
	}
	if err := st.Driver().CacheRows(ctx, prefix, j.reload); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if err := j.load(ctx); err != nil {
		return nil, err
	}
	return j, nil
}

// State returns the state after the newest event, with those that this turn has appended.
// The caller must not change it or keep it beyond the turn, because Apply may change it.
func (j *Journal[State, Event]) State() State { return j.state }

// Seq returns the sequence number of the newest event, 0 if there is none. The first event
// has 1, and each has one more than the event before it.
func (j *Journal[State, Event]) Seq() uint64 { return j.seq }

// fail returns an error with the name of the object.
func (j *Journal[State, Event]) fail(format string, args ...any) error {
	return fmt.Errorf("%s: journal: %w", j.st.ID(), fmt.Errorf(format, args...))
}

// reload brings memory up to date after rows have changed behind the journal. The runtime
// calls it, see object.Driver.CacheRows.
func (j *Journal[State, Event]) reload(ctx context.Context) error {
	if j.writing {
		return nil
	}
	return j.load(ctx)
}

// load reads the newest snapshot and the events after it. If it fails, memory stays as it
// was.
func (j *Journal[State, Event]) load(ctx context.Context) error {
	m, err := j.newest(ctx)
	if err != nil {
		return err
	}
	err = j.each(ctx, m.seq, 0, func(e Entry[Event]) (err error) {
		m.state, err = j.apply(m.state, e.Seq, e.Event)
		m.seq = e.Seq
		return err
	})
	if err != nil {
		return err
	}
	j.memory = m
	return nil
}

// apply folds one event. Its error names the event.
func (j *Journal[State, Event]) apply(s State, seq uint64, e Event) (next State, err error) {
	err = guard(func() (err error) {
		next, err = j.options.Apply(s, e)
		return err
	})
	if err != nil {
		return next, j.fail("event %d: Apply: %w", seq, err)
	}
	return next, nil
}

// guard runs a function of the user and returns a panic of it as an error.
func guard(code func() error) error {
	return seam.Guard(code, func(p *seam.PanicError) error { return p })
}
