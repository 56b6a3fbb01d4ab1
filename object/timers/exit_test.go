package timers_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/timers"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves T2: a handler that ends its goroutine is an attempt that failed, as a panic is. A
// simulation reports such a handler, so this host has a clock of package synctest.
func TestHandlerThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs, others atomic.Int32 // of the handler's goroutines
		class := object.Define("box", func(ctx context.Context, st *object.State) (*alarmed[*object.State], error) {
			a := &alarmed[*object.State]{v: st}
			var err error
			a.timers, err = timers.Attach(ctx, st, thrice, func(_ context.Context, t timers.Timer) error {
				if t.Name == "b" {
					runs.Add(1)
					runtime.Goexit()
				}
				others.Add(1)
				return nil
			})
			return a, err
		}, timers.ClassOptions(object.ClassOptions{}))
		set := object.Handle(class, "set", func(a *alarmed[*object.State], ctx context.Context, name string) (int, error) {
			return 0, a.timers.At(ctx, name, a.v.Now().Add(time.Minute), nil)
		})
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, class)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", "c"} {
			if _, err := set.Call(t.Context(), h, "x", name); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute + time.Second)
		if runs.Load() != 1 || others.Load() != 2 {
			t.Errorf("a second after their time: %d runs of the one that ends its goroutine, %d of the others", runs.Load(), others.Load())
		}
		time.Sleep(time.Hour)
		letters, err := lettersOf(h.DeadLetters(t.Context(), object.DeadLettersOptions{Limit: object.MaxPage}))
		if err != nil || runs.Load() != 3 || others.Load() != 2 || len(letters) != 1 || letters[0].Attempts != 3 || letters[0].Stack == "" {
			t.Errorf("%d runs, %d others, letters %+v, %v", runs.Load(), others.Load(), letters, err)
		}
		if err := h.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
