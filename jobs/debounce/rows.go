package debounce

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/object"
)

// The rows of a debounce object, beside those of the job itself:
//
//	b                            the buffer: see buffer.appendTo
//	e/<generation>/<position>    one event; without Reduce
//	s/<generation>               the state that Reduce made
//
// Generation and position are hex digits of fixed width, so that events are in
// the order of their keys. The row of an event or a state tells of its generation
// too, as it was when the row was stored, so that an add need not store the buffer:
// the newest row counts where it has more events than the buffer.
const bufferKey = "b"

func eventPrefix(generation uint64) string {
	return string(append(appendHex([]byte("e/"), generation, 12), '/'))
}

func eventKey(generation uint64, position int) string {
	key := append(appendHex(append(make([]byte, 0, 24), "e/"...), generation, 12), '/')
	return string(appendHex(key, uint64(position), 8))
}

func stateKey(generation uint64) string { return string(appendHex([]byte("s/"), generation, 12)) }

// appendHex appends the last digits of n.
func appendHex(dst []byte, n uint64, digits int) []byte {
	for i := 4 * (digits - 1); i >= 0; i -= 4 {
		dst = append(dst, "0123456789abcdef"[n>>i&15])
	}
	return dst
}

const rowVersion = 1

// appendRow appends the row of an event or a state: the version, its generation
// with it, and then what the codec made of it.
func appendRow(row []byte, g generation, encoded []byte) []byte {
	return append(appendGeneration(append(row, rowVersion), g), encoded...)
}

// splitRow undoes appendRow.
func splitRow(row []byte) (g generation, encoded []byte, err error) {
	if len(row) == 0 || row[0] != rowVersion {
		return g, nil, fmt.Errorf("%w: a row of another version", errDamaged)
	}
	r := reader{rest: row[1:]}
	if g = r.generation(); r.bad || g.number == 0 || g.count < 1 {
		return g, nil, fmt.Errorf("%w: a row of no generation", errDamaged)
	}
	return g, r.rest, nil
}

// caughtUp returns the open generation g of the stored buffer with the events that
// were added since that was stored.
func caughtUp(ctx context.Context, store *object.Storage, g generation) (generation, error) {
	row, err := newestRow(ctx, store, g.number)
	if err != nil || row == nil {
		return g, err
	}
	newest, _, err := splitRow(row)
	switch {
	case err != nil:
		return g, err
	case newest.number != g.number:
		return g, fmt.Errorf("%w: a row of generation %d tells of %d", errDamaged, g.number, newest.number)
	case newest.count > g.count:
		newest.versions = g.versions
		return newest, nil
	}
	return g, nil
}

// newestRow returns the row that a generation stored last, or nil.
func newestRow(ctx context.Context, store *object.Storage, number uint64) ([]byte, error) {
	for item, err := range store.List(ctx, object.ListOptions{Prefix: eventPrefix(number), Reverse: true, Limit: 1}) {
		return item.Value, err
	}
	row, _, err := store.Get(ctx, stateKey(number))
	return row, err
}

// rows is what is stored of one generation, still encoded.
type rows struct {
	folded bool
	events [][]byte
	state  []byte // if folded
}

// errDamaged says that what is stored of a generation is not what it should be.
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

// readState reads the state of a generation that has events, still encoded.
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

// maxSingleDeletes is how many events are removed one by one. A range delete
// costs the same for any number, but it costs the readers of the store more.
const maxSingleDeletes = 256

// deleteRows removes the rows of a generation.
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

// read turns the rows of a generation into the events or the state of its flush. It may be
// called from any task.
func (in *instance[E, S]) read(g generation, r rows) (events []E, state S, err error) {
	if r.folded {
		err = in.readState(g, r.state, &state)
		return nil, state, err
	}
	events = make([]E, len(r.events))
	for i, row := range r.events {
		if bad := in.events.Read(in.st.Codec(), g.versions.At(uint64(i)), row, &events[i]); bad != nil {
			return nil, state, bad.Of(in.st.ID(), fmt.Sprintf("event %d of generation %d", i+1, g.number))
		}
	}
	return events, state, nil
}

// readState reads the state of a generation.
func (in *instance[E, S]) readState(g generation, encoded []byte, state *S) error {
	if bad := in.states.Read(in.st.Codec(), g.versions.At(0), encoded, state); bad != nil {
		return bad.Of(in.st.ID(), fmt.Sprintf("state of generation %d", g.number))
	}
	return nil
}
