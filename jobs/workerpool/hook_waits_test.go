package workerpool_test

import (
	"context"
	"errors"
	"slices"
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
