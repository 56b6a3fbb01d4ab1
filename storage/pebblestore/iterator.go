package pebblestore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// iterator is a Pebble iterator that turns panics and errors into those of the Store.
type iterator struct {
	*pebble.Iterator
	store *Store
	err   error // from a panic
}

func (it *iterator) First() bool            { return it.move((*pebble.Iterator).First) }
func (it *iterator) Last() bool             { return it.move((*pebble.Iterator).Last) }
func (it *iterator) Next() bool             { return it.move((*pebble.Iterator).Next) }
func (it *iterator) Prev() bool             { return it.move((*pebble.Iterator).Prev) }
func (it *iterator) SeekGE(key []byte) bool { return it.seek((*pebble.Iterator).SeekGE, key) }
func (it *iterator) SeekLT(key []byte) bool { return it.seek((*pebble.Iterator).SeekLT, key) }

func (it *iterator) SetBounds(lower, upper []byte) {
	defer it.store.log.recoverFatal(&it.err)
	it.Iterator.SetBounds(lower, upper)
}

func (it *iterator) move(move func(*pebble.Iterator) bool) (ok bool) {
	defer it.store.log.recoverFatal(&it.err)
	return move(it.Iterator)
}

func (it *iterator) seek(seek func(*pebble.Iterator, []byte) bool, key []byte) (ok bool) {
	defer it.store.log.recoverFatal(&it.err)
	return seek(it.Iterator, key)
}

func (it *iterator) Error() error {
	if it.err != nil {
		return it.err
	}
	return it.store.log.readError(it.Iterator.Error())
}

func (it *iterator) Close() (err error) {
	defer it.store.log.recoverFatal(&err)
	err = it.store.log.readError(it.Iterator.Close())
	if it.store.iterators.Add(-1) == closing {
		_ = it.store.closeDB() // Close of the store has returned already
	}
	return err
}

func (it *iterator) ValueAndErr() (value []byte, err error) {
	defer it.store.log.recoverFatal(&err)
	value, err = it.Iterator.ValueAndErr()
	return value, it.store.log.readError(err)
}

// wrap adds the operation to an error, and marks damage of the files, because the
// standard errors.Is does not find that in Pebble's errors.
func wrap(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, engine.ErrCorrupt):
		return fmt.Errorf("%s: %w", doing, err)
	case pebble.IsCorruptionError(err), strings.Contains(err.Error(), "object size mismatch"):
		return fmt.Errorf("%w: %s: %w", engine.ErrCorrupt, doing, joined{err})
	case strings.Contains(err.Error(), "\n"):
		return fmt.Errorf("%s: %w", doing, joined{err})
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}

// joined is several errors of Pebble, for example of two tables that are missing, as one line.
type joined struct{ error }

func (j joined) Error() string { return oneLine(j.error.Error()) }

func (j joined) Unwrap() error { return j.error }

// oneLine puts the lines of an error one after the other.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }
