// Package failing has an engine with an n-th operation that fails. Tests let each
// operation of a scenario fail in turn, until a run of it ends without a failure.
package failing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// ErrDisk is the error of the failing operation.
var ErrDisk = errors.New("the disk fails on purpose")

// Disk counts the operations of its engines, all but Close, and lets one of them
// fail. Its methods may be called concurrently.
type Disk struct {
	at     int64 // the number of the operation that fails
	count  atomic.Int64
	failed atomic.Bool
	aside  atomic.Bool
	by     atomic.Pointer[string] // the goroutine of the operation
	what   atomic.Pointer[string]
}

// At returns a disk that fails at its n-th operation. The first is number 1; with 0
// none fails.
func At(n int) *Disk { return &Disk{at: int64(n)} }

// Failed reports whether the operation has come.
func (d *Disk) Failed() bool { return d.failed.Load() }

// Aside reports whether the operation that failed was not made for a call, but beside the
// calls: by the turn of an alarm, by a work, or by a goroutine of the host such as the
// scheduler of alarms. Such an operation may fail at the very time at which a call that
// does not need it is acknowledged.
func (d *Disk) Aside() bool { return d.aside.Load() }

// Mine reports whether the calling goroutine made the operation that failed. Another one
// may still read or store something at the very time of the failure.
func (d *Disk) Mine() bool {
	by := d.by.Load()
	return by != nil && *by == goroutine()
}

// goroutine is the name of the calling goroutine in its stack, such as "goroutine 7".
func goroutine() string {
	name, _, _ := strings.Cut(string(debug.Stack()), " [")
	return name
}

// Count is how many operations there were.
func (d *Disk) Count() int64 { return d.count.Load() }

// String names the operation that fails, as far as it has come.
func (d *Disk) String() string {
	if what := d.what.Load(); what != nil {
		return fmt.Sprintf("operation %d (%s)", d.at, *what)
	}
	return fmt.Sprintf("operation %d", d.at)
}

// ForCall reports whether the calling goroutine runs for a call: the test waits for it.
func ForCall() bool {
	stack := debug.Stack()
	in := func(part string) bool { return bytes.Contains(stack, []byte(part)) }
	switch {
	case in("object.(*activation).performAlarm("), in("object.(*startedRoutine).Run("):
		return false
	default:
		return in("object.(*activation).performCall(") || in("_test.go:")
	}
}

// Engine returns an engine over e whose operations the disk counts.
func (d *Disk) Engine(e engine.Engine) engine.Engine { return failingEngine{e, d} }

// operation counts one, and returns ErrDisk if it is to fail.
func (d *Disk) operation(name string, key []byte) error {
	if d.count.Add(1) != d.at {
		return nil
	}
	what, by := fmt.Sprintf("%s %x", name, key), goroutine()
	d.what.Store(&what)
	d.by.Store(&by)
	d.aside.Store(!ForCall())
	d.failed.Store(true)
	return ErrDisk
}

type failingEngine struct {
	engine.Engine
	disk *Disk
}

func (e failingEngine) Get(key []byte) ([]byte, io.Closer, error) {
	if err := e.disk.operation("Get", key); err != nil {
		return nil, nil, err
	}
	return e.Engine.Get(key)
}

func (e failingEngine) NewIter(lower, upper []byte) (engine.Iterator, error) {
	if err := e.disk.operation("NewIter", lower); err != nil {
		return nil, err
	}
	it, err := e.Engine.NewIter(lower, upper)
	if err != nil {
		return nil, err
	}
	return &iterator{Iterator: it, disk: e.disk}, nil
}

func (e failingEngine) Apply(repr []byte) error {
	if err := e.disk.operation("Apply", nil); err != nil {
		return err
	}
	return e.Engine.Apply(repr)
}

func (e failingEngine) Sync() error {
	if err := e.disk.operation("Sync", nil); err != nil {
		return err
	}
	return e.Engine.Sync()
}

func (e failingEngine) Usage(lower, upper []byte) (uint64, error) {
	if err := e.disk.operation("Usage", lower); err != nil {
		return 0, err
	}
	return e.Engine.Usage(lower, upper)
}

// iterator counts its moves and values as operations. A move that fails stands on no
// key, and Error tells why.
type iterator struct {
	engine.Iterator
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
