// Package failing has an engine whose n-th operation fails, for tests that let each
// operation of a scenario fail in turn, until a run of it ends without a failure.
package failing

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/storage"
)

// ErrDisk is what the operation fails with.
var ErrDisk = errors.New("the disk fails on purpose")

// Disk counts the operations of its engines, all but Close, and lets one of them
// fail. Its methods may be called concurrently.
type Disk struct {
	at     int64 // the number of the operation that fails
	count  atomic.Int64
	failed atomic.Bool
	what   atomic.Pointer[string]
}

// At returns a disk whose n-th operation fails. The first is number 1; with 0 none
// fails.
func At(n int) *Disk { return &Disk{at: int64(n)} }

// Failed reports whether the operation has come.
func (d *Disk) Failed() bool { return d.failed.Load() }

// Count is how many operations there were.
func (d *Disk) Count() int64 { return d.count.Load() }

// String names the operation that fails, as far as it has come.
func (d *Disk) String() string {
	if what := d.what.Load(); what != nil {
		return fmt.Sprintf("operation %d (%s)", d.at, *what)
	}
	return fmt.Sprintf("operation %d", d.at)
}

// Engine returns an engine over e that the disk counts.
func (d *Disk) Engine(e storage.Engine) storage.Engine { return engine{e, d} }

// operation counts one, and returns ErrDisk if it is to fail.
func (d *Disk) operation(name string, key []byte) error {
	if d.count.Add(1) != d.at {
		return nil
	}
	what := fmt.Sprintf("%s %x", name, key)
	d.what.Store(&what)
	d.failed.Store(true)
	return ErrDisk
}

type engine struct {
	storage.Engine
	disk *Disk
}

func (e engine) Get(key []byte) ([]byte, io.Closer, error) {
	if err := e.disk.operation("Get", key); err != nil {
		return nil, nil, err
	}
	return e.Engine.Get(key)
}

func (e engine) NewIter(lower, upper []byte) (storage.Iterator, error) {
	if err := e.disk.operation("NewIter", lower); err != nil {
		return nil, err
	}
	it, err := e.Engine.NewIter(lower, upper)
	if err != nil {
		return nil, err
	}
	return &iterator{Iterator: it, disk: e.disk}, nil
}

func (e engine) Apply(repr []byte) error {
	if err := e.disk.operation("Apply", nil); err != nil {
		return err
	}
	return e.Engine.Apply(repr)
}

func (e engine) Sync() error {
	if err := e.disk.operation("Sync", nil); err != nil {
		return err
	}
	return e.Engine.Sync()
}

func (e engine) Usage(lower, upper []byte) (uint64, error) {
	if err := e.disk.operation("Usage", lower); err != nil {
		return 0, err
	}
	return e.Engine.Usage(lower, upper)
}

// iterator is one whose moves and values are operations. A move that fails stands on
// no key, and Error tells why.
type iterator struct {
	storage.Iterator
	disk *Disk
	err  error
}

func (it *iterator) move(to func() bool) bool {
	if it.err == nil {
		it.err = it.disk.operation("move of an iterator", nil)
	}
	return it.err == nil && to()
}

func (it *iterator) First() bool { return it.move(it.Iterator.First) }
func (it *iterator) Last() bool  { return it.move(it.Iterator.Last) }
func (it *iterator) Next() bool  { return it.move(it.Iterator.Next) }
func (it *iterator) Prev() bool  { return it.move(it.Iterator.Prev) }
func (it *iterator) Valid() bool { return it.err == nil && it.Iterator.Valid() }

func (it *iterator) SeekGE(key []byte) bool {
	return it.move(func() bool { return it.Iterator.SeekGE(key) })
}

func (it *iterator) SeekLT(key []byte) bool {
	return it.move(func() bool { return it.Iterator.SeekLT(key) })
}

func (it *iterator) ValueAndErr() ([]byte, error) {
	if it.err == nil {
		it.err = it.disk.operation("ValueAndErr", it.Key())
	}
	if it.err != nil {
		return nil, it.err
	}
	return it.Iterator.ValueAndErr()
}

func (it *iterator) Error() error {
	if it.err != nil {
		return it.err
	}
	return it.Iterator.Error()
}
