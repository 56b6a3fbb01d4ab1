package realtime

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/fulldisk"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
)

// busyPool is a pool with one partition on a disk that can be full. Its tasks take 100 s.
type busyPool struct {
	disk *fulldisk.FS
	host *object.Host
	pool *workerpool.Pool[int, int]

	began, cuts, ran atomic.Int32 // executions that began, that were cut off, and that came to their end
}

func newBusyPool(t *testing.T, tasks int) *busyPool {
	t.Helper()
	b := &busyPool{disk: fulldisk.New()}
	b.pool = workerpool.New(workerpool.Config[int, int]{
		Name: "busy", Concurrency: 10, Partitions: 1, Phases: []string{"wait"}, Retry: jobs.Retry{MaxAttempts: 1},
		Work: func(ctx context.Context, task *workerpool.Task[int]) (int, error) {
			b.began.Add(1)
			return workerpool.Phase(ctx, task, "wait", func(ctx context.Context) (int, error) {
				for range 10 {
					select {
					case <-time.After(10 * time.Second):
						if err := task.Progress(ctx, 50, ""); err != nil {
							return 0, err
						}
					case <-ctx.Done():
						b.cuts.Add(1)
						return 0, ctx.Err()
					}
				}
				b.ran.Add(1)
				return task.In, nil
			})
		},
	})
	h, err := openOn(b.disk, b.pool, spill)
	if err != nil {
		t.Fatal(err)
	}
	b.host = h
	t.Cleanup(func() { _ = h.Shutdown(ended()) }) // else a test that fails would hang
	for i := range tasks {
		if _, err := b.pool.Enqueue(t.Context(), h, i); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	return b
}

// spill writes to an object beside the pool.
var (
	spill   = object.Define("spill", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	spillIt = object.Handle(spill, "it", func(st *object.State, ctx context.Context, n int) (int, error) {
		return n, st.Storage().Put(ctx, "n", n)
	})
)

// enqueued expects that a task is refused for lack of space.
func (b *busyPool) enqueued(t *testing.T) {
	t.Helper()
	if _, err := b.pool.Enqueue(t.Context(), b.host, 0); !errors.Is(err, object.ErrNoSpace) || !object.Retryable(err) {
		t.Errorf("O17: Enqueue on a full disk: %v", err)
	}
}

// Proves O17, W2. Once a full disk is seen, the tasks of a busy pool run on: neither a
// refused Enqueue nor a lease or a progress that cannot be stored cuts them off. A phase that ends
// meanwhile waits for space. Each task has run once, at the cost of nothing.
func TestFullDiskCutsOffNoPool(t *testing.T) {
	for name, free := range map[string]time.Duration{"before the tasks end": 70 * time.Second, "after they end": 130 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := newBusyPool(t, 8)
			time.Sleep(time.Second)
			b.disk.SetFull(true)
			if _, err := spillIt.Call(t.Context(), b.host, "a", 1); !errors.Is(err, object.ErrNoSpace) {
				t.Fatalf("O17: %s: a full disk refuses nothing: %v", name, err)
			}
			b.enqueued(t)
			time.Sleep(free - time.Second) // several renewals of the leases are refused
			b.enqueued(t)
			b.disk.SetFull(false)
			time.Sleep(time.Hour)
			synctest.Wait()
			s, err := b.pool.Stats(t.Context(), b.host)
			if lines, n := b.host.Recoveries(); b.cuts.Load() != 0 || b.ran.Load() != 8 || s.Done != 8 || s.Dead != 0 || n != 0 || err != nil {
				t.Errorf("O17: %s: %d were cut off, %d ran, recovered %+v: %+v, %v", name, b.cuts.Load(), b.ran.Load(), lines, s, err)
			}
		})
	}
}

// Proves O17, R4. The turn that finds the disk full resets the pool and cuts its tasks off once.
// That is charged to none of them, however often the disk becomes full: none is given up.
func TestCutByAFullDiskIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBusyPool(t, 3)
		const rounds = 6 // more than the recoveries that a run has
		for round := 1; round <= rounds; round++ {
			for n := 0; int(b.began.Load()) < 3*round && n < 100; n++ { // the executions are stale after 30 s, and begin again
				time.Sleep(time.Second)
				synctest.Wait()
			}
			time.Sleep(1500 * time.Millisecond) // so long after a commit the next one looks at the free space
			b.disk.SetFull(true)
			b.enqueued(t)
			synctest.Wait()
			b.enqueued(t)
			time.Sleep(20 * time.Second)
			if int(b.cuts.Load()) != 3*round {
				t.Fatalf("O17: round %d: %d executions were cut off, want %d", round, b.cuts.Load(), 3*round)
			}
			b.disk.SetFull(false)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		s, err := b.pool.Stats(t.Context(), b.host)
		if s.Done != 3 || s.Dead != 0 || b.ran.Load() != 3 || err != nil {
			t.Errorf("O17: %d ran: %+v, %v", b.ran.Load(), s, err)
		}
		lines, n := b.host.Recoveries()
		if n != 3*rounds {
			t.Errorf("O17: %d recoveries, want %d", n, 3*rounds)
		}
		for _, l := range lines {
			if l.Attempt != 0 {
				t.Errorf("O17: a recovery is charged: %+v", l)
			}
		}
	})
}
