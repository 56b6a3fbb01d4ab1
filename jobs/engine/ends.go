package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/object"
)

// The story of an execution's end:
//
//  1. The work returns, panics, or ends its goroutine (routine.run). If an error comes from a
//     shutdown or from the end of the instance, the execution stays open: the next
//     instance recovers it. One that a suspended host has cut off goes on here, and is repeated at step 5.
//  2. The end is appended to a queue (routine.finish). The first goroutine that finds the
//     queue unserved serves it; the others return at once.
//  3. The server takes as many ends as fit in one batch (endQueue.take). Ends are
//     merged because a commit costs more than a row: while one batch is applied others
//     gather, so that a pool which ends 512 tasks makes one commit and not 512. The size of
//     a batch is bounded because the turns of the object wait for it.
//  4. The batch is one turn of the object (Engine.store). If the token of an end is not
//     open any more, the end is stale: it is counted and dropped (J8).
//  5. Each other end is concluded: its result is stored, the outcome decided, the row of
//     the execution removed, and events and logs told (Engine.conclude). Then the job type
//     stores the consequences (Policy.Ended).
//  6. The turn begins the executions that are due now and sets open mark and alarm, all in
//     the same batch (Engine.Turn). So no crash can come between an end and its next alarm.
//  7. If the batch fails, all its ends are lost together, because none of them is stored:
//     their results are gone (Engine.notStored). Their executions are still open, and the
//     next wake-up recovers them as executions that are not alive (Engine.takeLost).
//
// An execution that a caller outside holds ends in the turn of the caller instead, by
// Engine.Finish, which is step 5.

// endQueue is the executions that have ended and wait for their end batch. Its mutex guards all
// of it, because routines end beside the turns of the object.
type endQueue struct {
	mu      sync.Mutex
	queue   []end
	batch   []end   // taken last; valid until the next take
	serving bool    // a goroutine takes ends from the queue
	lost    []Token // of ends in a batch that failed
}

// endBytes is about how many bytes any end writes, beside its result.
const endBytes = 512

// mergeBytes is the size from which no further end joins a batch.
func (e *Engine) mergeBytes() int { return min(1<<20, e.st.Driver().MaxBatchBytes()/4) }

// add puts an end in the queue and reports whether the caller must serve it.
func (q *endQueue) add(how end) (serve bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queue = append(q.queue, how)
	serve = !q.serving
	q.serving = true
	return serve
}

// take takes up to limit ends from the queue that write no more than limitBytes, but
// at least one, or ends the service of it. They are valid until the next take.
func (q *endQueue) take(limit, limitBytes int) []end {
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

// lose notes that the batch of these ends failed.
func (q *endQueue) lose(batch []end) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, how := range batch {
		q.lost = append(q.lost, how.token)
	}
}

// takeLost takes the tokens of the ends in batches that failed.
func (q *endQueue) takeLost() []Token {
	q.mu.Lock()
	defer q.mu.Unlock()
	lost := q.lost
	q.lost = nil
	return lost
}

// serveEnds stores ends until the queue is empty.
func (e *Engine) serveEnds() {
	ctx, release := e.st.Driver().Context()
	defer release()
	take := func() []end { return e.ends.take(e.o.MergeEnds, e.mergeBytes()) }
	for batch := take(); len(batch) > 0; batch = take() {
		if err := e.store(ctx, batch); err != nil {
			e.notStored(batch, err)
		}
	}
}

// store is the end batch of executions.
func (e *Engine) store(ctx context.Context, batch []end) error {
	return e.st.Do(ctx, func(ctx context.Context) error {
		return e.Turn(ctx, func(ctx context.Context) error {
			for _, how := range batch {
				x, ok := e.open[how.token]
				if !ok {
					e.st.Log().Debug("end of an execution is stale", "error", e.Stale(how.token))
					continue
				}
				if how.suspended {
					err := e.recoverSuspended(ctx, x)
					if err != nil {
						return err
					}
					continue
				}
				if err := e.conclude(ctx, x, how); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// notStored gives up the ends of a batch that failed. It is step 7 of their story.
func (e *Engine) notStored(batch []end, err error) {
	level := slog.LevelWarn
	if errors.Is(err, object.ErrReset) || errors.Is(err, object.ErrShutdown) {
		level = slog.LevelDebug // they were cut off
	}
	e.st.Log().Log(context.Background(), level, "end of executions not stored", "executions", len(batch), "error", err)
	e.ends.lose(batch)
}
