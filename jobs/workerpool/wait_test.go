package workerpool_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/workerpool"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// A caller that waits for a task that does not run gets ErrShutdown when the host shuts
// down, and does not hold that up. A caller that waits for a running task gets its
// output. Proves O14.
func TestWaitAndShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := workerpool.New(config{
			Name: "one", Concurrency: 1,
			Work: func(ctx context.Context, t *workerpool.Task[string]) (string, error) {
				if t.In == "fails" {
					return "", errors.New("no")
				}
				time.Sleep(time.Minute)
				return t.In + " is done", nil
			},
		})
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, p)
		if err != nil {
			t.Fatal(err)
		}
		retried := must(p.Enqueue(ctx, h, "fails")).ID
		synctest.Wait() // it has failed and waits for its next attempt
		runs := must(p.Enqueue(ctx, h, "runs")).ID
		pending := must(p.Enqueue(ctx, h, "pending")).ID
		var wg sync.WaitGroup
		wait := func(id workerpool.TaskID, want string, wantErr error) {
			wg.Go(func() {
				began := time.Now()
				got, err := p.Wait(ctx, h, id)
				if got != want || !errors.Is(err, wantErr) {
					t.Errorf("O14: Wait for %v: %q, %v; want %q, %v", id, got, err, want, wantErr)
				}
				if took := time.Since(began); wantErr != nil && took > 10*time.Second {
					t.Errorf("O14: Wait for %v took %v", id, took)
				}
			})
		}
		wait(runs, "runs is done", nil)
		wait(pending, "", object.ErrShutdown)
		wait(retried, "", object.ErrShutdown)
		wg.Go(func() {
			if err := p.Drain(ctx, h); !errors.Is(err, object.ErrShutdown) {
				t.Errorf("O14: Drain: %v", err)
			}
		})
		time.Sleep(time.Millisecond)
		if err := h.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		wg.Wait()
	})
}

// A task that an outside worker has claimed cannot end while the host shuts down, and
// holds up neither the shutdown nor a caller. Proves O14.
func TestWaitForAClaimedTaskAndShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := workerpool.New(config{Name: "claimed", Lease: time.Hour})
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, p)
		if err != nil {
			t.Fatal(err)
		}
		id := must(p.Enqueue(ctx, h, "a")).ID
		if got := must(p.Claim(ctx, h, 1, 0)); len(got) != 1 {
			t.Fatalf("claimed %v", got)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := p.Wait(ctx, h, id); !errors.Is(err, object.ErrShutdown) {
				t.Errorf("O14: Wait: %v", err)
			}
		})
		wg.Go(func() {
			if err := p.Drain(ctx, h); !errors.Is(err, object.ErrShutdown) {
				t.Errorf("O14: Drain: %v", err)
			}
		})
		synctest.Wait()
		began := time.Now()
		if err := h.Shutdown(ctx); err != nil || time.Since(began) > time.Second {
			t.Errorf("O14: Shutdown took %v: %v", time.Since(began), err)
		}
		wg.Wait()
	})
}
