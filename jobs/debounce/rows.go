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
//	e/<generation>/<position>    one event, encoded; without Reduce
//	s/<generation>               the state that Reduce made, encoded
//
// Generation and position are hex digits of fixed width, so that events are in
// the order of their keys.
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
		var ok bool
		r.folded = true
		r.state, ok, err = store.Get(ctx, stateKey(g.number))
		if err == nil && !ok && g.count > 0 {
			err = fmt.Errorf("%w: state of generation %d is missing", errDamaged, g.number)
		}
		return r, err
	}
	r.events = make([][]byte, 0, g.count)
	for item, err := range store.List(ctx, object.ListOptions{Prefix: eventPrefix(g.number)}) {
		if err != nil {
			return rows{}, err
		}
		r.events = append(r.events, item.Value)
	}
	if len(r.events) != g.count {
		return rows{}, fmt.Errorf("%w: generation %d has %d events stored, not %d", errDamaged, g.number, len(r.events), g.count)
	}
	return r, nil
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

// decode turns the rows into what a flush is given.
func decode[E, S any](codec object.Codec, r rows) (events []E, state S, err error) {
	if r.folded {
		if err := codec.Decode(r.state, &state); err != nil {
			return nil, state, fmt.Errorf("debounce: decode state: %w", err)
		}
		return nil, state, nil
	}
	events = make([]E, len(r.events))
	for i, row := range r.events {
		if err := codec.Decode(row, &events[i]); err != nil {
			return nil, state, fmt.Errorf("debounce: decode event %d: %w", i+1, err)
		}
	}
	return events, state, nil
}
