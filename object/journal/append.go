package journal

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/object"
)

// Append adds events to the journal: their rows to the batch of the turn, and their effect
// to the state. They are stored with the commit of the turn. All are added or none. If one
// is the event at which a snapshot is due, the snapshot is a row of the same batch, and
// the events that need not be kept are removed there.
//
// Append returns the error of Apply or of the codec, which names the event, or
// object.ErrValueTooLarge, object.ErrBatchTooLarge, object.ErrNoTurn or object.ErrReset,
// and has changed nothing then. No event is no change.
func (j *Journal[State, Event]) Append(ctx context.Context, events ...Event) error {
	if len(events) == 0 {
		return nil
	}
	if _, err := j.st.Driver().WrittenBytes(ctx); err != nil { // not in a turn: memory is another's
		return err
	}
	defer j.scratch.release()
	if err := j.encode(events); err != nil {
		return err
	}
	next, err := j.fold(j.scratch.decoded)
	if err == nil {
		err = j.write(ctx, &next, j.scratch.rows)
	}
	if err != nil {
		return j.mend(ctx, err)
	}
	j.memory = next
	return nil
}

// scratch is memory that one Append leaves to the next, because most append one small event.
// Between two it holds no event.
type scratch[Event any] struct {
	rows    []object.Item
	decoded []Event
	bytes   []byte // of the rows
}

// Scratch beyond these sizes is given up.
const (
	maxScratchEvents = 64
	maxScratchBytes  = 4096
)

// release empties the scratch for the next Append.
func (m *scratch[Event]) release() {
	if cap(m.rows) > maxScratchEvents || cap(m.bytes) > maxScratchBytes {
		*m = scratch[Event]{}
		return
	}
	clear(m.rows)
	clear(m.decoded)
	m.rows, m.decoded, m.bytes = m.rows[:0], m.decoded[:0], m.bytes[:0]
}

// encode puts the rows of the events into the scratch, and the events as the rows decode. It
// reads each row back because an activation will fold that and not the value in memory.
func (j *Journal[State, Event]) encode(events []Event) error {
	m, now, codec := &j.scratch, j.st.Now(), j.st.Driver().Codec()
	for i, e := range events {
		seq := j.seq + 1 + uint64(i)
		data, err := codec.Encode(e)
		if err != nil {
			return j.fail("event %d: encode: %w", seq, err)
		}
		var zero Event
		m.decoded = append(m.decoded, zero)
		if err := codec.Decode(data, &m.decoded[i]); err != nil {
			return j.fail("event %d does not decode as it is encoded: %w", seq, err)
		}
		begin := len(m.bytes)
		m.bytes = appendEvent(m.bytes, j.options.Version, now, data)
		m.rows = append(m.rows, object.Item{Key: eventKey(seq), Value: m.bytes[begin:]})
	}
	return nil
}

// fold returns memory after the events. The state of j may be of no use after an error,
// because Apply may have changed it in place.
func (j *Journal[State, Event]) fold(events []Event) (memory[State], error) {
	next := j.memory
	for _, e := range events {
		next.seq++
		var err error
		if next.state, err = j.apply(next.state, next.seq, e); err != nil {
			return next, err
		}
	}
	return next, nil
}

// write adds the rows to the batch of the turn, with a snapshot if one is due, or changes
// nothing. One row needs no Transaction, because PutBytes checks its size first.
func (j *Journal[State, Event]) write(ctx context.Context, next *memory[State], rows []object.Item) error {
	due := next.seq-j.snapshot >= uint64(j.options.SnapshotEvery)
	if !due && len(rows) == 1 {
		return j.refused("event", next.seq, j.st.Storage().PutBytes(ctx, rows[0].Key, rows[0].Value))
	}
	j.writing = true
	defer func() { j.writing = false }()
	err := j.writeAll(ctx, next, rows, due, due)
	if due && errors.Is(err, object.ErrBatchTooLarge) {
		// The turn has no room for the removals. The next snapshot makes up for them.
		err = j.writeAll(ctx, next, rows, due, false)
	}
	return err
}

// writeAll adds the rows, a snapshot if snap is set, and the removal of old rows if trim is
// set, in a Transaction, so that a row that is refused leaves nothing behind.
func (j *Journal[State, Event]) writeAll(ctx context.Context, next *memory[State], rows []object.Item, snap, trim bool) error {
	return j.st.Storage().Transaction(ctx, func(ctx context.Context, tx *object.Storage) error {
		for i, r := range rows {
			if err := tx.PutBytes(ctx, r.Key, r.Value); err != nil {
				return j.refused("event", j.seq+1+uint64(i), err)
			}
		}
		if !snap {
			return nil
		}
		data, err := j.shoot(next)
		if err != nil {
			return err
		}
		past, old := j.trimmed, []string(nil)
		if trim {
			if past, old, err = j.plan(ctx, next.seq); err != nil {
				return err
			}
		}
		if err := tx.PutBytes(ctx, snapshotKey(next.seq), appendSnapshot(nil, j.options.StateVersion, past, data)); err != nil {
			return j.refused("snapshot", next.seq, err)
		}
		next.snapshot, next.trimmed = next.seq, past
		return j.refused("snapshot", next.seq, tx.Remove(ctx, old...))
	})
}

// refused wraps the error of a write, if there is one, with the event or the snapshot that
// it was for.
func (j *Journal[State, Event]) refused(kind string, seq uint64, err error) error {
	if err == nil {
		return nil
	}
	return j.fail("%s %d: %w", kind, seq, err)
}

// shoot encodes the state, and puts the state in its place that these bytes decode to,
// because that is what the next activation will begin with.
func (j *Journal[State, Event]) shoot(next *memory[State]) (data []byte, err error) {
	codec := j.st.Driver().Codec()
	err = guard(func() (err error) {
		data, err = codec.Encode(next.state)
		return err
	})
	if err != nil {
		return nil, j.fail("snapshot %d: encode: %w", next.seq, err)
	}
	var state State
	if err := guard(func() error { return codec.Decode(data, &state) }); err != nil {
		return nil, j.fail("snapshot %d does not decode as it is encoded: %w", next.seq, err)
	}
	next.state = state
	return data, nil
}

// mend reads memory anew after an Append that failed with err, because Apply may have
// changed the state in place. If it cannot, the instance is reset.
func (j *Journal[State, Event]) mend(ctx context.Context, err error) error {
	if failed := j.load(ctx); failed != nil {
		_ = j.st.BlockConcurrencyWhile(ctx, func(context.Context) error { return failed })
		return errors.Join(err, failed)
	}
	return err
}
