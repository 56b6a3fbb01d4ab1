package journal

import (
	"context"
	"iter"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// At returns the state as it was after the event with the given sequence number; 0 is the
// state before the first. It folds the rows anew, from the newest snapshot before, so the
// caller may keep and change the result. It returns ErrTrimmed if the events are not kept
// any more, and an error for a number that no event has yet.
func (j *Journal[State, Event]) At(ctx context.Context, seq uint64) (State, error) {
	var none State
	switch {
	case seq > j.seq:
		return none, j.fail("there is no event %d yet: the last one is %d", seq, j.seq)
	case seq < j.base:
		return none, j.fail("state as of event %d: %w: the first one left is as of event %d", seq, ErrTrimmed, j.base)
	}
	m, err := j.before(ctx, seq)
	if err != nil || m.seq == seq {
		return m.state, err
	}
	err = j.each(ctx, m.seq, seq, func(e Entry[Event]) (err error) {
		m.state, err = j.apply(m.state, e.Seq, e.Event)
		m.seq = e.Seq
		return err
	})
	if err == nil && m.seq != seq {
		err = j.missing(m.seq + 1)
	}
	if err != nil {
		return none, err
	}
	return m.state, nil
}

// Since yields the events after the given sequence number, in order, with those that this
// turn has appended; 0 yields all. An error ends the sequence and is its last element:
// ErrTrimmed, with no event before it, if one of the events is not kept any more. A number
// that no event has yet yields nothing. The turn must last for as long as the sequence.
func (j *Journal[State, Event]) Since(ctx context.Context, seq uint64) iter.Seq2[Entry[Event], error] {
	return func(yield func(Entry[Event], error) bool) {
		if seq >= j.seq {
			return
		}
		if seq < j.base {
			yield(Entry[Event]{}, j.fail("events after %d: %w: the first one left is %d", seq, ErrTrimmed, j.base+1))
			return
		}
		err := j.each(ctx, seq, 0, func(e Entry[Event]) error {
			if !yield(e, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && err != errStopped {
			yield(Entry[Event]{}, err)
		}
	}
}

// newest returns memory as of the newest snapshot.
func (j *Journal[State, Event]) newest(ctx context.Context) (memory[State], error) {
	return j.snapshotIn(ctx, object.ListOptions{Prefix: snapshotPrefix, Reverse: true, Limit: 1})
}

// before returns memory as of the newest snapshot up to a sequence number.
func (j *Journal[State, Event]) before(ctx context.Context, seq uint64) (memory[State], error) {
	return j.snapshotIn(ctx, object.ListOptions{Prefix: snapshotPrefix, End: snapshotKey(seq + 1), Reverse: true, Limit: 1})
}

// snapshotIn decodes the one snapshot that a list yields. Without one, or with one of an
// older version that has no way up while all events are kept, memory is as before the
// first event.
func (j *Journal[State, Event]) snapshotIn(ctx context.Context, o object.ListOptions) (memory[State], error) {
	empty := memory[State]{trimmed: trimmed{first: 1}}
	for item, err := range j.st.Storage().List(ctx, o) {
		if err != nil {
			return empty, err
		}
		seq, err := j.seqOf(item.Key, snapshotPrefix)
		if err != nil {
			return empty, err
		}
		version, past, data, ok := decodeSnapshot(item.Value)
		if !ok {
			return empty, j.fail("snapshot %d: %w: %x", seq, storage.ErrCorrupt, head(item.Value))
		}
		if j.unreadable(version) && past.base == 0 {
			return empty, nil
		}
		state, err := decode(j, "snapshot", "StateVersion", seq, version, j.options.StateVersion, data, j.options.UpcastState)
		return memory[State]{state: state, seq: seq, snapshot: seq, trimmed: past}, err
	}
	return empty, nil
}

// unreadable reports whether a snapshot of this version is too old for the present code.
func (j *Journal[State, Event]) unreadable(version int) bool {
	return version < j.options.StateVersion && j.options.UpcastState == nil
}

// each calls f with the events after one sequence number, up to another; 0 is no bound. It
// fails if one is missing or cannot be read.
func (j *Journal[State, Event]) each(ctx context.Context, after, last uint64, f func(Entry[Event]) error) error {
	o := object.ListOptions{Prefix: eventPrefix, Start: eventKey(after + 1)}
	if last > 0 {
		o.End = eventKey(last + 1)
	}
	for item, err := range j.st.Storage().List(ctx, o) {
		if err != nil {
			return err
		}
		e, err := j.entry(item)
		if err != nil {
			return err
		}
		after++
		if e.Seq != after {
			return j.missing(after)
		}
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}

// missing is the error for an event that should be stored and is not.
func (j *Journal[State, Event]) missing(seq uint64) error {
	return j.fail("%w: event %d is missing", storage.ErrCorrupt, seq)
}

// entry decodes the row of an event.
func (j *Journal[State, Event]) entry(item object.Item) (e Entry[Event], err error) {
	if e.Seq, err = j.seqOf(item.Key, eventPrefix); err != nil {
		return e, err
	}
	version, at, data, ok := decodeEvent(item.Value)
	if !ok {
		return e, j.fail("event %d: %w: %x", e.Seq, storage.ErrCorrupt, head(item.Value))
	}
	e.At = at
	e.Event, err = decode(j, "event", "Version", e.Seq, version, j.options.Version, data, j.options.Upcast)
	return e, err
}
