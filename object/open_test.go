package object_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// readCounter counts the rows that are read of an engine.
type readCounter struct {
	engine.Engine
	rows atomic.Int64
}

func (e *readCounter) Get(key []byte) ([]byte, io.Closer, error) {
	e.rows.Add(1)
	return e.Engine.Get(key)
}

func (e *readCounter) NewIter(lower, upper []byte) (engine.Iterator, error) {
	it, err := e.Engine.NewIter(lower, upper)
	return countedIter{it, e}, err
}

// countedIter counts the moves that an opening makes.
type countedIter struct {
	engine.Iterator
	of *readCounter
}

func (it countedIter) First() bool {
	it.of.rows.Add(1)
	return it.Iterator.First()
}

func (it countedIter) SeekGE(key []byte) bool {
	it.of.rows.Add(1)
	return it.Iterator.SeekGE(key)
}

func (it countedIter) Next() bool {
	it.of.rows.Add(1)
	return it.Iterator.Next()
}

// An opening reads as many rows with few objects as with many, and the same for alarms
// that are not due, whether the process before it closed the store or died. Proves R1.
func TestOpenReadsNoMoreForMoreObjects(t *testing.T) {
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprint("crash ", crash), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				few, many := rowsReadAtOpen(t, 1000, crash), rowsReadAtOpen(t, 5000, crash)
				if few == 0 || many > few {
					t.Errorf("%d rows among 5,000 objects, %d among 1,000", many, few)
				}
			})
		})
	}
}

// rowsReadAtOpen opens a store of n objects with an alarm each, and lets all that
// follows by itself happen.
func rowsReadAtOpen(t *testing.T, n int, crash bool) int64 {
	f := newFixture(t)
	mem := memstore.New()
	open := func(e engine.Engine) *object.Host {
		h, err := object.Open(object.Options{
			Storage: storage.Options{Engine: e, Shards: 1}, Logger: slog.New(slog.DiscardHandler),
		}, f.class)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	h := open(mem)
	for i := range n {
		if _, err := f.do.Call(context.Background(), h, fmt.Sprint(i), setAlarm(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	died := mem.Crash(mem.Unsynced())
	if err := h.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	counter := &readCounter{Engine: mem.Crash(0)}
	if crash {
		counter.Engine = died
	}
	h = open(counter)
	synctest.Wait()
	rows := counter.rows.Load()
	if err := h.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	return rows
}
