package workerpool_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves W6, J9: each call of OnDead that fails keeps its own waits, whatever other letters
// wait for, with windows of any size and in a process that was opened meanwhile. A task that
// is replayed asks for a call at once when it dies again, and one that is discarded for none.
func TestEachCallOfOnDeadKeepsItsWaits(t *testing.T) {
	for _, window := range []int{1, 2, 100} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			at := make(map[string][]int) // the seconds at which OnDead was called for each input
			p := workerpool.New(config{
				Name: "tasks", Retry: jobs.Retry{MaxAttempts: 1},
				Work: func(context.Context, *workerpool.Task[string]) (string, error) { return "", errors.New("bad") },
				OnDead: func(_ context.Context, d workerpool.DeadLetter[string]) error {
					at[d.In] = append(at[d.In], int(time.Since(began)/time.Second))
					return jobs.RetryAfter(time.Duration(len(at[d.In]))*time.Minute, errors.New("not now"))
				},
			})
			p.SetWindow(window)
			mem := memstore.New()
			h, _ := spied(t, mem, object.Options{}, p)
			until := func(second int) {
				time.Sleep(time.Until(began.Add(time.Duration(second) * time.Second)))
				synctest.Wait()
			}
			ids := make(map[string]workerpool.TaskID)
			for i, in := range []string{"a", "b", "c", "d"} {
				until(10 * i)
				ids[in] = must(p.Enqueue(ctx, h, in)).ID
			}
			until(100) // each has been called once or twice
			must(0, h.Shutdown(ctx))
			until(105)
			mem = mem.Crash(0)
			h, _ = spied(t, mem, object.Options{}, p)
			until(120)
			must(p.DiscardDead(ctx, h, ids["c"]))
			must(p.Replay(ctx, h, ids["d"]))
			until(600)
			for in, want := range map[string][]int{
				"a": {0, 60, 180, 360, 600}, "b": {10, 70, 190, 370}, "c": {20, 80}, "d": {30, 90, 120, 300, 540},
			} {
				if !slices.Equal(at[in], want) {
					t.Errorf("W6: window %d: OnDead was called for %s at %v s, want %v", window, in, at[in], want)
				}
			}
			healthy(t, h)
			must(0, h.Shutdown(ctx))
		})
	}
}

// Proves W6, J9: a task that was replayed dies again while the call of OnDead for its first death is under way. That
// call fails and changes no wait of the call for the second death, whether it ends before that or after it.
func TestCallOfOnDeadForAnEarlierDeath(t *testing.T) {
	for _, ends := range []int{20, 50} { // after the newer call has failed, or while it is under way too
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			var at []int // the seconds at which OnDead was called
			var mu sync.Mutex
			until := func(second int) {
				time.Sleep(time.Until(began.Add(time.Duration(second) * time.Second)))
				synctest.Wait()
			}
			p := workerpool.New(config{
				Name: "tasks", Retry: jobs.Retry{MaxAttempts: 1},
				Work: func(context.Context, *workerpool.Task[string]) (string, error) { return "", errors.New("bad") },
				OnDead: func(context.Context, workerpool.DeadLetter[string]) error {
					mu.Lock()
					at = append(at, int(time.Since(began)/time.Second))
					calls := len(at)
					mu.Unlock()
					switch calls {
					case 1:
						time.Sleep(time.Until(began.Add(time.Duration(ends) * time.Second)))
						return jobs.RetryAfter(time.Hour, errors.New("not now"))
					case 2:
						if ends == 50 {
							time.Sleep(50 * time.Second)
						}
						return jobs.RetryAfter(time.Minute, errors.New("not now"))
					}
					return nil
				},
			})
			h, _ := spied(t, memstore.New(), object.Options{}, p)
			id := must(p.Enqueue(ctx, h, "a")).ID
			until(10)
			must(p.Replay(ctx, h, id))
			until(2 * 3600)
			want := []int{0, 10, 70}
			if ends == 50 {
				want = []int{0, 10, 120}
			}
			if !slices.Equal(at, want) {
				t.Errorf("W6: OnDead was called at %v s, want %v", at, want)
			}
			healthy(t, h)
			must(0, h.Shutdown(ctx))
		})
	}
}

// Proves J4: Validate returns the mistake that object.Open returns, and a Config with zero fields
// has their defaults and no mistake.
func TestValidateOfAConfig(t *testing.T) {
	bad := config{Name: "tasks", Concurrency: 2, Partitions: 3}
	_, opened := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, workerpool.New(bad))
	if err := bad.Validate(); !errors.Is(err, jobs.ErrInvalid) || opened == nil || err.Error() != opened.Error() {
		t.Errorf("J4: Validate: %v; Open: %v", err, opened)
	}
	if err := (config{Name: "tasks"}).Validate(); err != nil {
		t.Errorf("J4: Validate of a Config with defaults: %v", err)
	}
}
