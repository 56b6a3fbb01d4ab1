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
		d := newDisk(t)
		h := d.open(object.Options{}, plain, folded)
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
		d.shut(h)
	})
}

// Proves D3: events that cannot be decoded are not taken for flushed: the job fails, and
// keeps them for a definition that can.
func TestEventsThatCannotBeDecoded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, d := context.Background(), newDisk(t)
		var flushed []string
		texts := debounce.New(debounce.Config[string, struct{}]{
			Name: "job", Quiet: time.Minute,
			Flush: func(_ context.Context, f *debounce.Flush[string, struct{}]) error {
				flushed = append(flushed, f.Events...)
				return nil
			},
		})
		numbers := debounce.New(debounce.Config[int, struct{}]{
			Name: "job", Quiet: time.Minute,
			Flush: func(context.Context, *debounce.Flush[int, struct{}]) error {
				t.Error("texts are flushed as numbers")
				return nil
			},
		})
		h := d.open(object.Options{}, texts)
		if _, err := texts.Add(ctx, h, "a", "text"); err != nil {
			t.Fatal(err)
		}
		d.shut(h)
		h = d.open(object.Options{}, numbers)
		time.Sleep(time.Hour)
		st, err := numbers.Status(ctx, h, "a")
		if err != nil || st.Meta.Status != jobs.Failed || st.EventsFlushed != 0 || st.Flushing != 1 {
			t.Errorf("D3: %+v, %v", st, err)
		}
		d.shut(h)
		h = d.open(object.Options{}, texts)
		if err := texts.Resume(ctx, h, "a"); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(flushed) != 1 || flushed[0] != "text" {
			t.Errorf("D3: flushed are %q", flushed)
		}
		d.shut(h)
	})
}
