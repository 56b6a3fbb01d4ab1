package debounce

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// The rows of a debounce object, besides those of the job itself:
//
//	b                            the buffer: see buffer.appendTo
//	e/<generation>/<position>    one event; without Reduce
//	s/<generation>               the state that Reduce made
//
// Generation and position are hex digits of fixed width, so that events sort in
// the order of their Adds. The row of an event or a state begins with the
// fields of its generation at that moment. So an Add writes one row and not the
// buffer too; load takes the newer of the two, which is the one with more
// events.
const bufferKey = "b"

// eventPrefix is the prefix of the events of a generation.
func eventPrefix(generation uint64) string {
	return string(append(appendHex([]byte("e/"), generation, 12), '/'))
}

// eventKey is the key of one event. It is built in one allocation, because each
// Add needs one.
func eventKey(generation uint64, position int) string {
	key := append(appendHex(append(make([]byte, 0, 24), "e/"...), generation, 12), '/')
	return string(appendHex(key, uint64(position), 8))
}

// stateKey is the key of the state of a generation.
func stateKey(generation uint64) string { return string(appendHex([]byte("s/"), generation, 12)) }

// appendHex appends n as that many hex digits.
func appendHex(dst []byte, n uint64, digits int) []byte {
	for i := 4 * (digits - 1); i >= 0; i -= 4 {
		dst = append(dst, "0123456789abcdef"[n>>i&15])
	}
	return dst
}

const rowVersion = 1

// appendRow appends the row of an event or a state: a version byte, the fields
// of its generation, and the bytes of the codec.
func appendRow(dst []byte, g generation, encoded []byte) []byte {
	return append(appendGeneration(append(dst, rowVersion), g), encoded...)
}

// splitRow is the inverse of appendRow.
func splitRow(stored []byte) (g generation, encoded []byte, err error) {
	r := row.Read(stored)
	if r.Byte() != rowVersion {
		return g, nil, fmt.Errorf("%w: unknown row version", errDamaged)
	}
	if g = generationIn(&r); !r.OK() || g.number == 0 || g.count < 1 {
		return g, nil, fmt.Errorf("%w: a row without a generation", errDamaged)
	}
	return g, r.Rest(), nil
}

// caughtUp returns the open generation g of the stored buffer, brought up to
// date with the newest row of an event or a state.
func caughtUp(g generation, row []byte) (generation, error) {
	if row == nil {
		return g, nil
	}
	newest, _, err := splitRow(row)
	switch {
	case err != nil:
		return g, err
	case newest.number != g.number:
		return g, fmt.Errorf("%w: a row of generation %d names generation %d", errDamaged, g.number, newest.number)
	case newest.count > g.count:
		newest.versions = g.versions
		return newest, nil
	}
	return g, nil
}

// newestRow returns the newest row of a generation, or nil if it has none.
func newestRow(ctx context.Context, store *object.Storage, number uint64) ([]byte, error) {
	for item, err := range store.List(ctx, object.ListOptions{Prefix: eventPrefix(number), Reverse: true, Limit: 1}) {
		return item.Value, err
	}
	row, _, err := store.Get(ctx, stateKey(number))
	return row, err
}

// rows is the stored events or state of one generation, still encoded.
type rows struct {
	folded bool
	events [][]byte
	state  []byte // only if folded
}

// errDamaged means that the rows of a generation do not fit its buffer row.
var errDamaged = errors.New("debounce: stored events are damaged")

// readRows reads the events or the state of a generation.
func readRows(ctx context.Context, store *object.Storage, g generation) (r rows, err error) {
	if g.folded {
		r.folded = true
		r.state, err = readState(ctx, store, g)
		return r, err
	}
	r.events = make([][]byte, 0, g.count)
	for item, err := range store.List(ctx, object.ListOptions{Prefix: eventPrefix(g.number)}) {
		if err != nil {
			return rows{}, err
		}
		_, encoded, err := splitRow(item.Value)
		if err != nil {
			return rows{}, err
		}
		r.events = append(r.events, encoded)
	}
	if len(r.events) != g.count {
		return rows{}, fmt.Errorf("%w: generation %d has %d events stored, not %d", errDamaged, g.number, len(r.events), g.count)
	}
	return r, nil
}

// readState reads the state of a generation, still encoded.
func readState(ctx context.Context, store *object.Storage, g generation) ([]byte, error) {
	row, ok, err := store.Get(ctx, stateKey(g.number))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: state of generation %d is missing", errDamaged, g.number)
	}
	_, encoded, err := splitRow(row)
	return encoded, err
}

// maxSingleDeletes is the most events that are deleted one by one. A range
// delete costs the same for any number, but slows later reads of the store.
const maxSingleDeletes = 256

// deleteRows deletes the rows of a generation.
func deleteRows(ctx context.Context, store *object.Storage, g generation) error {
	switch {
	case g.folded:
		return store.Remove(ctx, stateKey(g.number))
	case g.count > maxSingleDeletes:
		return store.DeletePrefix(ctx, eventPrefix(g.number))
	}
	keys := make([]string, g.count)
	for i := range keys {
		keys[i] = eventKey(g.number, i)
	}
	return store.Remove(ctx, keys...)
}

// read decodes the rows of a generation for its flush. It is safe for
// concurrent use with turns.
func (j *Job[E, S]) read(in *instance, g generation, r rows) (events []E, state S, err error) {
	codec := in.st.Driver().Codec()
	if r.folded {
		err = in.damagedState(g, j.states.Read(codec, g.versions.At(0), r.state, &state))
		return nil, state, err
	}
	events = make([]E, len(r.events))
	for i, row := range r.events {
		if bad := j.events.Read(codec, g.versions.At(uint64(i)), row, &events[i]); bad != nil {
			return nil, state, in.damagedEvent(g, i, bad)
		}
	}
	return events, state, nil
}

// damagedEvent and damagedState are the errors of an event and of a state that cannot be read; nil: the state can.
func (in *instance) damagedEvent(g generation, i int, bad *jobs.DecodeError) error {
	return bad.Of(in.st.ID(), fmt.Sprintf("event %d of generation %d", i+1, g.number))
}

func (in *instance) damagedState(g generation, bad *jobs.DecodeError) error {
	if bad == nil {
		return nil
	}
	return bad.Of(in.st.ID(), fmt.Sprintf("state of generation %d", g.number))
}
