package debounce_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves J4: an event, or a state, that cannot be encoded is refused, and leaves nothing
// behind.
func TestEventThatCannotBeEncoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		plain := debounce.New(debounce.Config[float64, struct{}]{
			Name: "plain", Quiet: time.Minute,
			Flush: func(context.Context, *debounce.Flush[float64, struct{}]) error { return nil },
		})
		folded := debounce.New(debounce.Config[int, float64]{
			Name: "folded", Quiet: time.Minute,
			Reduce: func(state float64, _ bool, ev int) (float64, error) {
				if ev == 0 {
					return math.NaN(), nil
				}
				return state + float64(ev), nil
			},
			Flush: func(context.Context, *debounce.Flush[int, float64]) error { return nil },
		})
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New(), Shards: 1}}, plain, folded)
		if err != nil {
			t.Fatal(err)
		}
		for _, before := range []int{0, 1} {
			if _, err := plain.Add(ctx, h, "a", math.NaN()); err == nil {
				t.Error("an event that cannot be encoded is taken")
			}
			if _, err := folded.Add(ctx, h, "a", 0); err == nil {
				t.Error("a state that cannot be encoded is taken")
			}
			if st, err := plain.Status(ctx, h, "a"); st.Events != before || before == 0 && !errors.Is(err, jobs.ErrNotFound) {
				t.Errorf("%d events are stored, want %d: %v", st.Events, before, err)
			}
			if st, err := folded.Status(ctx, h, "a"); st.Events != before || before == 0 && !errors.Is(err, jobs.ErrNotFound) {
				t.Errorf("%d events are folded, want %d: %v", st.Events, before, err)
			}
			_, err := plain.Add(ctx, h, "a", 1)
			_, err2 := folded.Add(ctx, h, "a", 7)
			if err := errors.Join(err, err2); err != nil {
				t.Fatal(err)
			}
		}
		p, err := folded.Pending(ctx, h, "a")
		if err != nil || p.State != 14 {
			t.Errorf("the state is %v, %v", p.State, err)
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}
