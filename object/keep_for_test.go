package object_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// kinds are the kinds of the stored events of an object.
func kinds(ctx context.Context, h *object.Host, class, name string) (all []string, err error) {
	events, err := h.Events(ctx, storage.ID{Class: class, Name: name}, 0, 100)
	for _, e := range events {
		all = append(all, e.Kind)
	}
	return all, err
}

// Proves O23: an event with KeepFor is there up to its time and gone a minute later, whether that is shorter or longer
// than EventRetention; one without has EventRetention.
func TestKeepFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t)
		f.options.EventRetention = 2 * time.Hour
		f.open()
		defer f.close()
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			for kind, opts := range map[string][]object.EmitOption{
				"short": {object.KeepFor(time.Hour)}, "usual": nil, "zero": {{}}, "long": {object.KeepFor(3 * time.Hour)},
			} {
				if err := th.st.Emit(ctx, kind, nil, opts...); err != nil {
					return nil, err
				}
			}
			return nil, th.st.Storage().DeleteAll(ctx)
		})
		at := time.Duration(0)
		for _, c := range []struct {
			at   time.Duration
			want []string
		}{
			{time.Hour - time.Second, []string{"long", "short", "usual", "zero"}},
			{time.Hour + 2*time.Minute, []string{"long", "usual", "zero"}},
			{2*time.Hour - time.Second, []string{"long", "usual", "zero"}},
			{2*time.Hour + 2*time.Minute, []string{"long"}},
			{3*time.Hour - time.Second, []string{"long"}},
			{3*time.Hour + 2*time.Minute, nil},
		} {
			pass(c.at - at)
			at = c.at
			got, err := kinds(t.Context(), f.host, "thing", "a")
			if slices.Sort(got); err != nil || !slices.Equal(got, c.want) {
				t.Errorf("O23: after %v: %v, %v; want %v", at, got, err, c.want)
			}
		}
	})
}

// Proves O23: the bounds of KeepFor, on both sides; an event that is refused is not stored.
func TestKeepForBounds(t *testing.T) {
	const most = 36525 * 24 * time.Hour
	f := newFixture(t).open()
	defer f.close()
	for _, c := range []struct {
		d  time.Duration
		ok bool
	}{{-1, false}, {0, false}, {1, true}, {most, true}, {most + 1, false}} {
		before, err := kinds(t.Context(), f.host, "thing", "a")
		if err != nil {
			t.Fatal(err)
		}
		var refused error
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			refused = th.st.Emit(ctx, "kept", nil, object.KeepFor(c.d))
			return nil, nil
		})
		after, err := kinds(t.Context(), f.host, "thing", "a")
		if (refused == nil) != c.ok || err != nil || (len(after) > len(before)) != c.ok {
			t.Errorf("O23: KeepFor(%v): %v; %d events, then %d, %v", c.d, refused, len(before), len(after), err)
		}
	}
}

// annals is an object that keeps its events longer than others.
type annals struct{ st *object.State }

// Proves O23 through crashes: an event has the time of KeepFor, and not that of the opening that finds it.
func TestCrashKeepFor(t *testing.T) {
	class := object.Define("annals", func(_ context.Context, st *object.State) (*annals, error) { return &annals{st}, nil })
	write := object.Handle(class, "write", func(d *annals, ctx context.Context, kind string) (bool, error) {
		if kind == "long" {
			return true, d.st.Emit(ctx, kind, nil, object.KeepFor(90*24*time.Hour))
		}
		return true, d.st.Emit(ctx, kind, nil)
	})
	crashes.Try(t, func(s *harness.Sim) {
		s.Host(class)
		for _, kind := range []string{"long", "usual"} {
			s.OK(s.Retry(func() error {
				_, err := write.Call(s.Context(), s, "a", kind, object.Idempotent(kind, 200*24*time.Hour))
				return err
			}))
		}
		look := func() (got []string) {
			s.OK(s.Retry(func() error {
				return s.WithHost(func(ctx context.Context, h *object.Host) (err error) {
					got, err = kinds(ctx, h, "annals", "a")
					return err
				})
			}))
			return got
		}
		got := look()
		s.Always("O23: both are there", slices.Equal(got, []string{"long", "usual"}), got)
		s.Advance(89 * 24 * time.Hour)
		got = look()
		s.Always("O23: one is there a day before its end", slices.Contains(got, "long"), got)
		s.Advance(2 * 24 * time.Hour)
		for len(got) > 0 { // a crash takes back a removal that was not durable, and a later sweep removes them again
			s.Advance(2 * time.Minute)
			got = look()
		}
	}, harness.NoLostAck)
}
