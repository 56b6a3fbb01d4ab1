package storage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleIter translates the errors of an iterator, and Pebble's panics too.
type pebbleIter struct {
	*pebble.Iterator
	engine *pebbleEngine
	err    error // from a panic
}

func (it *pebbleIter) First() bool            { return it.move((*pebble.Iterator).First) }
func (it *pebbleIter) Last() bool             { return it.move((*pebble.Iterator).Last) }
func (it *pebbleIter) Next() bool             { return it.move((*pebble.Iterator).Next) }
func (it *pebbleIter) Prev() bool             { return it.move((*pebble.Iterator).Prev) }
func (it *pebbleIter) SeekGE(key []byte) bool { return it.seek((*pebble.Iterator).SeekGE, key) }
func (it *pebbleIter) SeekLT(key []byte) bool { return it.seek((*pebble.Iterator).SeekLT, key) }

func (it *pebbleIter) move(move func(*pebble.Iterator) bool) (ok bool) {
	defer it.engine.log.recoverFatal(&it.err)
	return move(it.Iterator)
}

func (it *pebbleIter) seek(seek func(*pebble.Iterator, []byte) bool, key []byte) (ok bool) {
	defer it.engine.log.recoverFatal(&it.err)
	return seek(it.Iterator, key)
}

func (it *pebbleIter) Error() error {
	if it.err != nil {
		return it.err
	}
	return it.engine.log.readError(it.Iterator.Error())
}

func (it *pebbleIter) Close() (err error) {
	defer it.engine.log.recoverFatal(&err)
	err = it.engine.log.readError(it.Iterator.Close())
	if it.engine.iterators.Add(-1) == closing {
		_ = it.engine.closeDB() // whoever closed the engine has been answered
	}
	return err
}

func (it *pebbleIter) ValueAndErr() (value []byte, err error) {
	defer it.engine.log.recoverFatal(&err)
	value, err = it.Iterator.ValueAndErr()
	return value, it.engine.log.readError(err)
}

// wrapPebble names what was done, and marks damage of the files, which the
// standard errors.Is does not find in Pebble's errors.
func wrapPebble(doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrCorrupt):
		return fmt.Errorf("%s: %w", doing, err)
	case pebble.IsCorruptionError(err), strings.Contains(err.Error(), "object size mismatch"):
		return fmt.Errorf("%w: %s: %w", ErrCorrupt, doing, err)
	default:
		return fmt.Errorf("%s: %w", doing, err)
	}
}
