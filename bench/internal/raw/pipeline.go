package raw

import (
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/storage"
)

// Pipeline applies batches without waiting and waits for their syncs behind, a
// bounded number under way. Apply is for one goroutine.
type Pipeline struct {
	db      *pebble.DB
	applied chan *pebble.Batch
	waiter  sync.WaitGroup
	err     error // of a sync; read after waiter
}

// NewPipeline makes a pipeline with up to window batches under way.
func NewPipeline(db *pebble.DB, window int) *Pipeline {
	p := &Pipeline{db: db, applied: make(chan *pebble.Batch, window)}
	p.waiter.Go(func() {
		for b := range p.applied {
			err := b.SyncWait()
			if err == nil {
				err = b.Close()
			}
			if p.err == nil {
				p.err = err
			}
		}
	})
	return p
}

// Apply applies the changes of b.
func (p *Pipeline) Apply(b *storage.Batch) error {
	repr := b.Repr()
	batch := p.db.NewBatchWithSize(len(repr))
	err := batch.SetRepr(append(batch.Repr()[:0], repr...))
	if err == nil {
		err = p.db.ApplyNoSyncWait(batch, pebble.Sync)
	}
	if err != nil {
		return err
	}
	p.applied <- batch
	return nil
}

// Wait returns when all that was applied is durable.
func (p *Pipeline) Wait() error {
	close(p.applied)
	p.waiter.Wait()
	return p.err
}

// Commit applies the changes of b and waits for the disk.
func Commit(db *pebble.DB, b *storage.Batch, w *pebble.WriteOptions) error {
	repr := b.Repr()
	batch := db.NewBatchWithSize(len(repr))
	err := batch.SetRepr(append(batch.Repr()[:0], repr...))
	if err == nil {
		err = batch.Commit(w)
	}
	if err == nil {
		err = batch.Close()
	}
	return err
}
