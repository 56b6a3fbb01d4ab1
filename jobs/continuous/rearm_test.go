package continuous_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// sleepers is a store with objects of class counter that have an alarm in an hour.
func sleepers(t *testing.T, names ...string) *memstore.Store {
	t.Helper()
	mem := memstore.New()
	class := object.Define("counter", func(_ context.Context, st *object.State) (*raw, error) { return &raw{st: st}, nil })
	arm := object.Handle(class, "arm", func(r *raw, ctx context.Context, d time.Duration) (bool, error) {
		return true, r.st.SetAlarm(ctx, r.st.Now().Add(d))
	})
	h, err := object.Open(object.Options{Storage: storage.Options{Engine: mem}}, class)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := arm.Call(t.Context(), h, name, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return mem.Crash(0)
}

var errEnough = errors.New("enough")

// Proves C5, O13: Rearm ends with its context, or with the host, also while it wakes
// jobs. It says so, and does not count the jobs of that page.
func TestRearmIsCutOff(t *testing.T) {
	for name, want := range map[string]error{"context": errEnough, "context of a slow wake-up": errEnough, "storage": object.ErrStorage, "shutdown": object.ErrShutdown} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { cutOff(t, name, want) }) })
	}
}

// cutOff wakes some jobs. The first of them ends the context, the store or the host.
func cutOff(t *testing.T, name string, want error) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var fails atomic.Bool
	var host *object.Host
	var ended chan error
	class := object.Define("counter", func(ctx context.Context, st *object.State) (*raw, error) {
		switch name {
		case "context":
			cancel(errEnough)
		case "context of a slow wake-up":
			cancel(errEnough)
			time.Sleep(time.Second) // so that the wake-up ends with the context
		case "storage":
			fails.Store(true)
			return &raw{st: st}, st.SetAlarm(ctx, st.Now().Add(time.Minute))
		case "shutdown":
			ended = make(chan error, 1)
			go func() { ended <- host.Shutdown(context.Background()) }()
			for !st.Closing() {
				time.Sleep(time.Millisecond)
			}
			return nil, object.ErrShutdown
		}
		return &raw{st: st}, nil
	})
	var err error
	host, err = object.Open(object.Options{Storage: storage.Options{Engine: broken{sleepers(t, "a", "b"), &fails}}}, class)
	if err != nil {
		t.Fatal(err)
	}
	done, err := engine.Rearm(ctx, host, "counter", jobs.RearmOptions{AtOnce: 1})
	if !errors.Is(err, want) || done != (jobs.Rearmed{}) {
		t.Errorf("Rearm: %+v, %v, want %v", done, err, want)
	}
	if ended == nil {
		err = host.Shutdown(t.Context())
	} else {
		err = <-ended
	}
	if err != nil && name != "storage" {
		t.Error(err)
	}
}
