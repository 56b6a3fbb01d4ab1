package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// filled is an open host with objects that have an open execution and an alarm at a time each.
func filled(t *testing.T, mem *memstore.Store, names []string, at time.Time) *object.Host {
	t.Helper()
	class, _ := scribes()
	open := object.Handle(class, "open", func(s *scribe, ctx context.Context, _ struct{}) (int, error) {
		return 0, errors.Join(s.st.Driver().OpenExecution(ctx, nil), s.st.SetAlarm(ctx, at))
	})
	h, err := object.Open(object.Options{Storage: storage.Options{Engine: mem, Shards: 4}}, class)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := open.Call(t.Context(), h, name, struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// left is the store of a program with objects that have an open execution and an alarm at a
// time each; it was killed, or closed in order.
func left(t *testing.T, names []string, at time.Time, inOrder bool) *storage.Store {
	t.Helper()
	mem := memstore.New()
	h := filled(t, mem, names, at)
	image := mem.Crash(0)
	shut(t, h)
	if inOrder {
		image = mem.Crash(0)
	}
	store, err := storage.OpenReadOnly(storage.Options{Engine: image, Shards: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// Proves S13, R1. A look ahead tells how the last program ended, which executions it left
// open, and which alarms are due at a time, to the nanosecond.
func TestLookAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Now().Add(time.Hour)
		for _, c := range []struct {
			names   []string
			now     time.Time
			inOrder bool
			due     int
			clean   bool
		}{
			{nil, at, true, 0, true},
			{nil, at, false, 0, false},
			{[]string{"b", "a", "c"}, at.Add(-1), false, 0, false},
			{[]string{"b", "a", "c"}, at, false, 3, false},
			{[]string{"a"}, at, true, 1, false}, // an execution is open
		} {
			p, err := recovery.LookAhead(t.Context(), left(t, c.names, at, c.inOrder), c.now)
			if err != nil {
				t.Fatal(err)
			}
			if p.Epoch != 2 || p.Previous.Clean != c.inOrder || p.Open != len(c.names) || p.Due != c.due || p.DueMore || p.Clean() != c.clean {
				t.Errorf("%+v: %+v", c, p)
			}
			for i, x := range p.Executions {
				if x.ID != (storage.ID{Class: "scribe", Name: string('a' + rune(i))}) || x.Epoch != 1 || !x.Since.Equal(time.Now()) {
					t.Errorf("execution %d: %+v", i, x)
				}
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		cancel(why)
		if _, err := recovery.LookAhead(ctx, left(t, []string{"a"}, at, false), at); !errors.Is(err, why) {
			t.Errorf("with a context that has ended: %v", err)
		}
	})
}

// Proves S14, R6: rows that cannot be decoded, and rows that contradict others, are findings that
// name them, and the look goes on behind each: it lists the other executions and counts the alarms.
func TestLookAheadGoesOnAfterDamage(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T, s *storage.Store, o storage.Object, b *storage.Batch)
		want   string
		listed int // of three open executions
	}{
		"alarm": {func(t *testing.T, s *storage.Store, o storage.Object, _ *storage.Batch) { spoil(t, s, o.ID) }, "scribe/b: the alarm row cannot be decoded: ", 3},
		"mark": {func(_ *testing.T, _ *storage.Store, o storage.Object, b *storage.Batch) {
			b.SetOpenMark(o, []byte{7})
		}, "open-execution mark 07 (R1)", 2},
		"row": {func(_ *testing.T, _ *storage.Store, o storage.Object, b *storage.Batch) {
			due := int64(7)
			b.MoveAlarm(o, nil, &due, []byte{1}, []byte{1})
		}, "scribe/b: a second alarm index entry of scribe/b (S14)", 3},
	} {
		t.Run(name, func(t *testing.T) {
			mem, at := memstore.New(), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
			shut(t, filled(t, mem, []string{"a", "b", "c"}, at))
			store, err := storage.Open(storage.Options{Engine: mem.Crash(0), Shards: 4})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
			o, err := store.Find(storage.ID{Class: "scribe", Name: "b"})
			if err != nil {
				t.Fatal(err)
			}
			var b storage.Batch
			c.damage(t, store, o, &b)
			if _, err := store.Commit(&b); err != nil {
				t.Fatal(err)
			}
			p, err := recovery.LookAhead(t.Context(), store, at)
			if err != nil || p.Clean() || len(p.Findings) != 1 || !strings.Contains(p.Findings[0].String(), c.want) {
				t.Errorf("found %v, %v", p.Findings, err)
			}
			if p.Objects != 3 || p.Open != 3 || len(p.Executions) != c.listed || p.Due < 3 {
				t.Errorf("the look has not gone on: %+v", p)
			}
		})
	}
}

// Case: more rows than a walk tells of are ErrManyFindings, with as many findings.
func TestManyFindings(t *testing.T) {
	for extra, want := range map[int]error{0: nil, 1: storage.ErrManyFindings} {
		store, err := storage.Open(storage.Options{Engine: memstore.New(), Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		var b storage.Batch
		for n := range storage.MaxFindings + extra {
			b.SetOpenMark(storage.Object{Number: storage.Number(n + 1)}, []byte{7})
		}
		if _, err := store.Commit(&b); err != nil {
			t.Fatal(err)
		}
		if seen, err := recovery.ScrubStore(store); !errors.Is(err, want) || len(seen.Findings) != storage.MaxFindings {
			t.Errorf("%d rows too many: %d findings, %v", extra, len(seen.Findings), err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// The list of open executions has a limit, and their count has none.
func TestManyExecutions(t *testing.T) {
	var names []string
	for i := range 5 {
		names = append(names, fmt.Sprint(i))
	}
	r := object.NewReader(left(t, names, time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), false))
	for limit, want := range map[int]int{0: 0, 4: 4, 5: 5, 6: 5} {
		if list, total, err := r.Executions(t.Context(), limit); err != nil || total != 5 || len(list) != want {
			t.Errorf("limit %d: %d of %d, %v", limit, len(list), total, err)
		}
	}
	if _, _, err := r.Executions(t.Context(), -1); err == nil {
		t.Error("a negative limit is taken")
	}
}
