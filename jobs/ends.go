package jobs

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/object"
)

// ends is the works that have ended and wait for their end batch. Those that end
// while another end is being stored share the next batch.
type ends struct {
	mu      sync.Mutex
	queue   []ended
	batch   []ended // those that were taken last, for whoever serves the queue
	serving bool    // a task takes them from the queue
	lost    []Token // those whose end batch failed
}

// ended is a work that has returned.
type ended struct {
	token     Token
	result    Result
	err       error
	cancelled bool
	size      int // about what its end writes
}

// endBytes is about what any end writes, beside its result.
const endBytes = 512

// mergeBytes is how much is written of what could be several batches before another
// is begun.
func (e *Engine) mergeBytes() int { return min(1<<20, e.st.MaxBatchBytes()/4) }

// add puts an end in the queue and reports whether the caller must serve it.
func (q *ends) add(end ended) (serve bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, end)
	serve = !q.serving
	q.serving = true
	return serve
}

// take takes up to limit ends from the queue that write no more than limitBytes, but
// at least one, or ends the service of it. They are valid until the next take.
func (q *ends) take(limit, limitBytes int) []ended {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.queue) && n < limit {
		if bytes += endBytes + q.queue[n].size; n > 0 && bytes > limitBytes {
			break
		}
		n++
	}
	if q.serving = n > 0; !q.serving {
		q.queue, q.batch = nil, nil
		return nil
	}
	clear(q.batch)
	q.batch = append(q.batch[:0], q.queue[:n]...)
	q.queue = slices.Delete(q.queue, 0, n)
	return q.batch
}

// lose notes that an end batch failed.
func (q *ends) lose(batch []ended) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, end := range batch {
		q.lost = append(q.lost, end.token)
	}
}

// takeLost takes the tokens of those whose end batch failed.
func (q *ends) takeLost() []Token {
	q.mu.Lock()
	defer q.mu.Unlock()
	lost := q.lost
	q.lost = nil
	return lost
}

// serveEnds stores ends until there are none.
func (e *Engine) serveEnds() {
	ctx, release := e.st.Context()
	defer release()
	take := func() []ended { return e.ends.take(e.o.MergeEnds, e.mergeBytes()) }
	for batch := take(); len(batch) > 0; batch = take() {
		if err := e.store(ctx, batch); err != nil {
			e.notStored(batch, err)
		}
	}
}

// store is the end batch of works.
func (e *Engine) store(ctx context.Context, batch []ended) error {
	return e.st.Do(ctx, func(ctx context.Context) error {
		return e.Turn(ctx, func(ctx context.Context) error {
			for _, end := range batch {
				x, ok := e.open[end.token]
				if !ok {
					e.st.Log().Debug("end of an execution is stale", "error", e.stale(end.token))
					continue
				}
				if err := e.conclude(ctx, x, ending{result: end.result, err: end.err, cancelled: end.cancelled}); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// notStored gives up ends whose batch failed: see takeLost.
func (e *Engine) notStored(batch []ended, err error) {
	level := slog.LevelWarn
	if errors.Is(err, object.ErrReset) || errors.Is(err, object.ErrShutdown) {
		level = slog.LevelDebug // they were cut off
	}
	e.st.Log().Log(context.Background(), level, "end of executions not stored", "executions", len(batch), "error", err)
	e.ends.lose(batch)
}
