package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// scribe is a job type that does not mend its findings: it stores any metadata it is
// given.
type scribe struct{ st *object.State }

func (scribe) Alarm(context.Context, object.AlarmInfo) error { return nil }

// scribes is a class of scribes. If the metadata has a field "then", the constructor
// stores the value of that field as the new metadata.
func scribes() (*object.Class[scribe], *object.Method[map[string]any, int]) {
	class := object.Define("scribe", func(ctx context.Context, st *object.State) (*scribe, error) {
		var meta map[string]any
		if _, err := st.Storage().GetInto(ctx, "meta", &meta); err != nil {
			return nil, err
		}
		if then, ok := meta["then"]; ok {
			status, _ := then.(map[string]any)["status"].(string)
			return &scribe{st}, errors.Join(st.Storage().Put(ctx, "meta", named(st, then.(map[string]any))), st.Driver().SetLabel(ctx, jobs.Status(status).Label()))
		}
		return &scribe{st}, nil
	})
	return class, object.Handle(class, "write", func(s *scribe, ctx context.Context, meta map[string]any) (int, error) {
		return 0, s.st.Storage().Put(ctx, "meta", named(s.st, meta))
	})
}

// alive runs fn with a host on virtual time that has one object, with the metadata.
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

// Proves R6, Case JB9: a finding is reported as repaired only if a look after the wake-up
// finds no contradiction, neither the same nor another.
func TestRepairIsLookedAtAgain(t *testing.T) {
	executing := map[string]any{"status": "executing"}
	for name, c := range map[string]struct {
		then     any // the metadata after the wake-up; nil: as before
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

// Proves R6: a job that cannot be woken, because its constructor fails, is a finding that
// is not repaired, and the walk goes on. If the context ends meanwhile, the walk ends
// with it.
func TestRepairOfWhatCannotBeWoken(t *testing.T) {
	refused, enough := errors.New("refused"), errors.New("enough")
	for name, want := range map[string]error{"constructor": nil, "context": enough} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(context.Background())
				defer cancel(nil)
				class := object.Define("ticker", func(context.Context, *object.State) (*rawObject, error) {
					if want != nil {
						cancel(want)
					}
					return nil, refused
				})
				h, err := object.Open(object.Options{Storage: storage.Options{Engine: stored(t), Shards: 1}}, class)
				if err != nil {
					t.Fatal(err)
				}
				defer shut(t, h)
				seen, err := recovery.Scrub(ctx, h, recovery.ScrubOptions{Repair: true})
				if want != nil {
					if err == nil || context.Cause(ctx) != want || len(seen.Findings) != 0 {
						t.Errorf("found %s, %v", list(seen), err)
					}
					return
				}
				if err != nil || seen.Objects != len(objects) || len(seen.Findings) != 2 || seen.Findings[0].Repaired || seen.Findings[1].Repaired {
					t.Errorf("found %s, %v", list(seen), err)
				}
			})
		})
	}
}

// A name of any kind leaves the columns of the report straight.
func TestReportOfHostileNames(t *testing.T) {
	var b strings.Builder
	r := recovery.Report{Total: 2, Lines: []object.Recovery{
		{ID: storage.ID{Class: "c", Name: "<b>&amp;</b>"}, Cause: "crash", Action: "re-run"},
		{ID: storage.ID{Class: "c", Name: "a"}, Cause: "crash", Action: "re-run"},
	}}
	if err := r.Write(&b, 0); err != nil {
		t.Fatal(err)
	}
	column := -1
	for _, line := range strings.Split(b.String(), "\n")[1:3] {
		at := strings.Index(line, "crash")
		if column >= 0 && at != column {
			t.Errorf("a column is at %d and at %d:\n%s", column, at, b.String())
		}
		column = at
	}
}

// many runs fn with a host on virtual time that has n jobs, which contradict themselves
// if broken.
func many(t *testing.T, n int, o rows, fn func(h *object.Host)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New(), Shards: 1}}, plain)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(t, h)
		for i := range n {
			if _, err := putRows.Call(context.Background(), h, fmt.Sprintf("%03d", i), o); err != nil {
				t.Fatal(err)
			}
		}
		fn(h)
	})
}

// Proves R6: a walk sees all pages of 100 objects, pauses after each, and ends with its
// context. The objects seen until then are counted.
func TestScrubGoesPageByPage(t *testing.T) {
	for n, pauses := range map[int]time.Duration{100: 1, 101: 2, 201: 3} {
		many(t, n, rows{Keys: map[string]string{"meta": `{"status":"paused"}`}, Label: "paused"}, func(h *object.Host) {
			began := time.Now()
			seen, err := recovery.Scrub(context.Background(), h, recovery.ScrubOptions{Pause: time.Minute})
			if took := time.Since(began); err != nil || seen.Objects != n || took != pauses*time.Minute {
				t.Errorf("%d objects: %s in %v, %v", n, list(seen), took, err)
			}
			enough := errors.New("enough")
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(time.Second, func() { cancel(enough) })
			if seen, err = recovery.Scrub(ctx, h, recovery.ScrubOptions{Pause: time.Minute}); !errors.Is(err, enough) || seen.Objects != 100 {
				t.Errorf("%d objects, and the context ends: %s, %v", n, list(seen), err)
			}
		})
	}
}

// Proves R6: ScrubEvery reports each walk with findings, and no other.
func TestScrubEvery(t *testing.T) {
	for status, found := range map[string]int{"executing": 1, "paused": 0} {
		many(t, 1, rows{Keys: map[string]string{"meta": `{"status":"` + status + `"}`}, Label: jobs.Status(status).Label()}, func(h *object.Host) {
			enough := errors.New("enough")
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(150*time.Minute, func() { cancel(enough) })
			began, told := time.Now(), []time.Duration{}
			err := recovery.ScrubEvery(ctx, h, time.Hour, recovery.ScrubOptions{Pause: time.Second}, func(seen recovery.Scrubbed) {
				if len(seen.Findings) != 1 {
					t.Errorf("told of %s", list(seen))
				}
				told = append(told, time.Since(began).Truncate(time.Hour))
			})
			if !errors.Is(err, enough) || len(told) != 2*found || time.Since(began) != 150*time.Minute {
				t.Errorf("%s: told at %v, ended after %v with %v", status, told, time.Since(began), err)
			}
		})
	}
}

// Proves R6: a walk without Repair wakes nothing. A walk ends between two looks if its
// context ends there.
func TestScrubWithoutRepairWakesNothing(t *testing.T) {
	for _, repair := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			woken := 0
			class := object.Define("ticker", func(_ context.Context, st *object.State) (*rawObject, error) { woken++; return &rawObject{st}, nil })
			h, err := object.Open(object.Options{Storage: storage.Options{Engine: stored(t), Shards: 1}}, class)
			if err != nil {
				t.Fatal(err)
			}
			enough := errors.New("enough")
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(time.Second, func() { cancel(enough) })
			seen, err := recovery.Scrub(ctx, h, recovery.ScrubOptions{Repair: repair, Pause: time.Minute})
			if !errors.Is(err, enough) || seen.Objects != 1 || len(seen.Findings) != 0 { // the first is broken
				t.Errorf("cut off: %s, %v", list(seen), err)
			}
			if seen, err = recovery.Scrub(context.Background(), h, recovery.ScrubOptions{Repair: repair}); err != nil || len(seen.Findings) != 2 {
				t.Errorf("found %s, %v", list(seen), err)
			}
			if (woken > 0) != repair {
				t.Errorf("repair is %t, and %d objects were woken", repair, woken)
			}
			shut(t, h)
		})
	}
}
