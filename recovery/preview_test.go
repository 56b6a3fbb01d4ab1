package recovery_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// left is the store of a program with objects that have an open execution and an alarm at a
// time each; it was killed, or closed in order.
func left(t *testing.T, names []string, at time.Time, inOrder bool) *storage.Store {
	t.Helper()
	mem := memstore.New()
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
	at := time.Now().Add(time.Hour).Round(0)
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
			if x.ID != (storage.ID{Class: "scribe", Name: string('a' + rune(i))}) || x.Epoch != 1 || time.Since(x.Since) > time.Minute {
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
}

// The list of open executions has a limit, and their count has none.
func TestManyExecutions(t *testing.T) {
	var names []string
	for i := range 5 {
		names = append(names, fmt.Sprint(i))
	}
	r := object.NewReader(left(t, names, time.Now().Add(time.Hour), false))
	for limit, want := range map[int]int{0: 0, 4: 4, 5: 5, 6: 5} {
		if list, total, err := r.Executions(t.Context(), limit); err != nil || total != 5 || len(list) != want {
			t.Errorf("limit %d: %d of %d, %v", limit, len(list), total, err)
		}
	}
	if _, _, err := r.Executions(t.Context(), -1); err == nil {
		t.Error("a negative limit is taken")
	}
}
