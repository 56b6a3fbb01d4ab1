package object_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/storage/engine"
)

// batchCounter notes the most records that one batch removes, and all of them.
type batchCounter struct {
	engine.Engine
	most, sum atomic.Int64
}

func (e *batchCounter) Apply(repr []byte) error {
	n := int64(0)
	err := engine.ReadBatch(repr, func(r engine.Record) {
		if r.Deleted {
			n++
		}
	})
	if err != nil {
		return err
	}
	e.sum.Add(n)
	e.most.Store(max(e.most.Load(), n))
	return e.Engine.Apply(repr)
}

// However many events expire at a time, one commit removes no more than 256 rows,
// and the commits go on until all are gone.
//
// Case ST17. Proves J11.
func TestExpiryGoesInBatches(t *testing.T) {
	const batch = 256 // rows; an event has two, its own and that in the expiry index
	for _, events := range []int{1, batch/2 - 1, batch / 2, batch/2 + 1, 3 * batch} {
		bubble(t, func(t *testing.T) {
			f := newFixture(t)
			f.options.EventRetention = time.Hour
			e := &batchCounter{Engine: f.mem}
			f.options.Storage.Engine = e
			f.open()
			defer f.close()
			f.must("a", func(th *thing, ctx context.Context) (any, error) {
				for i := range events {
					if err := th.st.Emit(ctx, fmt.Sprint(i), nil); err != nil {
						return nil, err
					}
				}
				return nil, nil
			})
			e.sum.Store(0)
			e.most.Store(0)
			pass(2 * time.Hour)
			if sum, want := e.sum.Load(), int64(2*events); sum != want {
				t.Errorf("of %d events %d rows are removed, want %d", events, sum, want)
			}
			if most, want := e.most.Load(), int64(min(2*events, batch)); most != want {
				t.Errorf("of %d events one commit removes %d rows, want %d", events, most, want)
			}
		})
	}
}
