package object_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/machine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// Proves O3, S9 and N2 over a log: 128 goroutines call four objects, so records hold many commits of one object. The log, read from its begin, leads to
// the rows that the host had.
func TestLogHasTheOrderOfTheTurns(t *testing.T) { synctest.Test(t, logHasTheOrder) }

// slowLog takes a millisecond for each append, in which callers gather for the next.
type slowLog struct{ shardlog.Log }

func (l slowLog) Append(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
	time.Sleep(time.Millisecond)
	return l.Log.Append(ctx, shard, before, r)
}

func logHasTheOrder(t *testing.T) {
	const callers, calls, objects = 128, 12, 4
	log, view := memlog.New(), memstore.New()
	e, err := shardlog.Open(shardlog.Options{Log: slowLog{log}}, view)
	if err != nil {
		t.Fatal(err)
	}
	h, err := object.Open(object.Options{Storage: storage.Options{Engine: e, Shards: 4}, Logger: slog.New(slog.DiscardHandler)}, journals)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for range calls {
				if _, err := note.Call(t.Context(), h, fmt.Sprint(i%objects), struct{}{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := h.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	replayed, batches, records := memstore.New(), 0, 0
	err = log.Read(t.Context(), 0, 1, func(r shardlog.Record) error {
		records++
		return shardlog.Batches(r.Payload, func(repr []byte) error { batches++; return replayed.Apply(repr) })
	})
	if err != nil {
		t.Fatal(err)
	}
	if batches < callers*calls || batches < 20*records {
		t.Errorf("the log has %d batches in %d records, want at least %d, and rounds of many", batches, records, callers*calls)
	}
	if got, want := machine.Rows(t, replayed), machine.Rows(t, view.Crash(1<<30)); !maps.Equal(got, want) || len(want) < callers*calls {
		t.Errorf("the log leads to %d rows, the host had %d, or they differ", len(got), len(want))
	}
}
