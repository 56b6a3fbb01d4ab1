package recovery_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// scribe is an object whose constructor writes the metadata of a kind, and which
// writes what it is told: a job type that does not mend what it finds.
type scribe struct{ st *object.State }

func (scribe) Alarm(context.Context, object.AlarmInfo) error { return nil }

// scribes is a class of scribes. Woken, one whose metadata has a "then" writes that
// in their place.
func scribes() (*object.Class[scribe], *object.Method[map[string]any, int]) {
	class := object.Define("scribe", func(ctx context.Context, st *object.State) (*scribe, error) {
		var meta map[string]any
		if _, err := st.Storage().GetInto(ctx, "meta", &meta); err != nil {
			return nil, err
		}
		if then, ok := meta["then"]; ok {
			return &scribe{st}, st.Storage().Put(ctx, "meta", then)
		}
		return &scribe{st}, nil
	})
	return class, object.Handle(class, "write", func(s *scribe, ctx context.Context, meta map[string]any) (int, error) {
		return 0, s.st.Storage().Put(ctx, "meta", meta)
	})
}

// alive runs fn with a host on virtual time whose one object has the metadata.
func alive(t *testing.T, meta map[string]any, fn func(h *object.Host, write func(map[string]any))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		class, method := scribes()
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New(), Shards: 1}}, class)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, h)
		write := func(meta map[string]any) {
			if _, err := method.Call(context.Background(), h, "a", meta); err != nil {
				t.Error(err)
			}
		}
		write(meta)
		fn(h, write)
	})
}

// Proves R6, Case JB9: a finding is told as repaired only if a look after the
// wake-up finds nothing any more, neither the same nor another contradiction.
func TestRepairIsLookedAtAgain(t *testing.T) {
	executing := map[string]any{"status": "executing"}
	for name, c := range map[string]struct {
		then     any // what the wake-up makes of it; nil: nothing
		repaired bool
	}{
		"stays":   {nil, false},
		"mended":  {map[string]any{"status": "paused"}, true},
		"another": {map[string]any{"status": "paused", "executingAt": "2026-01-01T00:00:00Z"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			meta := executing
			if c.then != nil {
				meta = map[string]any{"status": "executing", "then": c.then}
			}
			alive(t, meta, func(h *object.Host, _ func(map[string]any)) {
				seen, err := recovery.Scrub(context.Background(), h, recovery.ScrubOptions{Repair: true})
				if err != nil || len(seen.Findings) != 1 || seen.Findings[0].Promise != "J5" || seen.Findings[0].Repaired != c.repaired {
					t.Errorf("found %+v, %v", seen, err)
				}
			})
		})
	}
}

// Proves R6, Case JB9: on a live store a contradiction counts only if a second look,
// after a pause, finds it as it was.
func TestSecondLookOnALiveStore(t *testing.T) {
	for name, motion := range map[string]bool{"in motion": true, "at rest": false} {
		t.Run(name, func(t *testing.T) {
			alive(t, map[string]any{"status": "executing"}, func(h *object.Host, write func(map[string]any)) {
				if motion {
					time.AfterFunc(time.Minute/2, func() { write(map[string]any{"status": "executing", "runCount": 1}) })
				}
				began := time.Now()
				seen, err := recovery.Scrub(context.Background(), h, recovery.ScrubOptions{Pause: time.Minute})
				if err != nil || (len(seen.Findings) == 0) != motion {
					t.Errorf("found %+v, %v", seen, err)
				}
				if took := time.Since(began); took != 2*time.Minute { // after the first look, and after the page
					t.Errorf("the walk took %v", took)
				}
			})
		})
	}
}
