package object_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// setLabel gives the object a label.
func setLabel(label string) action {
	return func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().SetLabel(ctx, label) }
}

// both does one action after the other.
func both(a, b action) action {
	return func(th *thing, ctx context.Context) (any, error) {
		if _, err := a(th, ctx); err != nil {
			return nil, err
		}
		return b(th, ctx)
	}
}

// labelled fails the test unless these objects have the label, in any order, and the host
// counts as many.
func (f *fixture) labelled(label string, want ...string) {
	f.t.Helper()
	synctest.Wait() // for the count
	infos, err := f.host.Objects(context.Background(), "thing", object.ObjectsOptions{Label: label, Limit: 1000})
	got := make(map[string]bool)
	for _, in := range infos {
		got[in.ID.Name] = true
		if in.Label != label {
			f.t.Errorf("S11: %s is listed under %q with the label %q", in.ID, label, in.Label)
		}
	}
	names := make(map[string]bool)
	for _, name := range want {
		names[name] = true
	}
	if err != nil || len(infos) != len(want) || !maps.Equal(got, names) {
		f.t.Errorf("S11: %q has %v, %v, want %v", label, infos, err, want)
	}
}

// counted fails the test unless so many objects are counted under the label.
func (f *fixture) counted(label string, want int) {
	f.t.Helper()
	synctest.Wait() // a host counts the stored ones on a goroutine of its own
	if counts, complete := f.host.Labels("thing"); !complete || counts[label] != want {
		f.t.Errorf("S11: %q is counted %d times (complete: %v), want %d", label, counts[label], complete, want)
	}
}

// Proves S11: a label changes with the commit of its turn, and the list and the count follow
// through each change, an eviction, a restart and the end of the object.
func TestLabelFollowsTheObject(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{IdleAfter: time.Second}).open()
		for i := range 3 {
			f.must(fmt.Sprint(i), both(put("k", "v"), setLabel("failed")))
		}
		f.labelled("failed", "0", "1", "2")
		f.counted("failed", 3)
		f.must("1", setLabel("stuck"))
		f.labelled("failed", "0", "2")
		f.counted("failed", 2)
		f.labelled("stuck", "1")
		f.counted("stuck", 1)
		pass(time.Minute) // all are evicted
		f.must("2", put("k", "w"))
		f.labelled("failed", "0", "2")
		f.counted("failed", 2)
		f.close()
		f.open()
		f.labelled("failed", "0", "2")
		f.counted("failed", 2)
		f.must("0", put("k", "of the next opening"))
		f.must("2", both(setLabel("stuck"), setLabel("failed"))) // as it is stored
		f.labelled("failed", "0", "2")
		f.counted("failed", 2)
		f.must("0", setLabel(""))
		f.labelled("failed", "2")
		f.counted("failed", 1)
		f.must("1", func(th *thing, ctx context.Context) (any, error) { return th.st.Storage().Delete(ctx, "k") })
		f.labelled("stuck")
		f.counted("stuck", 0)
		f.must("2", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().Purge(ctx) })
		f.labelled("failed")
		f.counted("failed", 0)
		for name, end := range map[string]action{
			"delete": func(th *thing, ctx context.Context) (any, error) { return th.st.Storage().Delete(ctx, "k") },
			"purge":  func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().Purge(ctx) },
		} {
			f.must(name, both(put("k", "v"), setLabel("failed")))
			f.labelled("failed", name)
			f.counted("failed", 1)
			f.must(name, both(setLabel("stuck"), end)) // the row of before goes, and no other comes
			f.labelled("failed")
			f.counted("failed", 0)
			f.labelled("stuck")
			f.counted("stuck", 0)
		}
		f.must("2", put("k", "of a new life"))
		f.labelled("failed")
		f.counted("failed", 0)
		f.must("2", setLabel("failed"))
		if err := f.host.Delete(context.Background(), f.id("2")); err != nil {
			t.Fatal(err)
		}
		f.labelled("failed")
		f.counted("failed", 0)
		f.close()
	})
}

// Proves S11, O6: what a turn drops leaves the label as it was: an error, a transaction that
// fails, a label that is not allowed; and the turn reads the label as it will be.
func TestLabelOfADroppedTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		f.must("a", both(put("k", "v"), setLabel("paused")))
		boom := errors.New("boom")
		if _, err := f.call("a", both(setLabel("failed"), func(*thing, context.Context) (any, error) { return nil, boom })); err != boom {
			t.Error(err)
		}
		f.labelled("paused", "a")
		f.counted("paused", 1)
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			d := th.st.Driver()
			reads := func(want string) {
				if got, err := d.Label(ctx); got != want || err != nil {
					t.Errorf("S11: the turn reads %q, %v, want %q", got, err, want)
				}
			}
			reads("paused")
			err := th.st.Storage().Transaction(ctx, func(ctx context.Context, _ *object.Storage) error {
				if err := d.SetLabel(ctx, "failed"); err != nil {
					return err
				}
				reads("failed")
				return boom
			})
			if err != boom {
				t.Error(err)
			}
			reads("paused")
			for _, bad := range []string{"a\x00b", "\xff", strings.Repeat("x", 65)} {
				if err := d.SetLabel(ctx, bad); err == nil || !strings.Contains(err.Error(), "thing/a: object: SetLabel: label") {
					t.Errorf("S11: the label %q: %v", bad, err)
				}
			}
			reads("paused")
			return nil, nil
		})
		f.labelled("paused", "a")
		f.counted("paused", 1)
		if _, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, errors.Join(th.st.Driver().SetLabel(ctx, "failed"), th.st.BlockConcurrencyWhile(ctx, func(context.Context) error { return boom }))
		}); !errors.Is(err, boom) {
			t.Error(err)
		}
		f.labelled("paused", "a")
		f.counted("paused", 1)
		f.must("a", func(th *thing, ctx context.Context) (any, error) {
			d := th.st.Driver()
			return nil, errors.Join(d.SetLabel(ctx, "failed"), th.st.Sync(ctx), d.SetLabel(ctx, "stuck"), d.SetLabel(ctx, "paused"))
		})
		f.labelled("failed")
		f.counted("failed", 0)
		f.labelled("paused", "a")
		f.counted("paused", 1)
		f.must("empty", setLabel("failed"))
		f.labelled("failed")
		f.counted("failed", 0)
		if in, err := f.host.Inspect(context.Background(), f.id("empty")); err != nil || in.Exists {
			t.Errorf("S11: a label alone makes an object: %+v, %v", in, err)
		}
		before := f.host.Store().Applied()
		f.must("a", setLabel("paused"))
		if after := f.host.Store().Applied(); after != before {
			t.Errorf("S11: the label that the object has makes a commit: %v, %v", before, after)
		}
		if _, err := f.do.Call(context.Background(), f.host, "a", func(th *thing, _ context.Context) (any, error) {
			return nil, th.st.Driver().SetLabel(context.Background(), "x")
		}); !errors.Is(err, object.ErrNoTurn) {
			t.Errorf("S11: outside of a turn: %v", err)
		}
	})
}

// Proves S11: the list says what is wrong with its arguments, comes in portions, and has the
// objects of a class that is not registered.
func TestLabelledInPortions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		for i := range 10 {
			f.must(fmt.Sprint(i), both(put("k", "v"), setLabel("failed")))
		}
		seen := make(map[string]bool)
		for after, n := "", 0; ; n++ {
			infos, err := f.host.Objects(context.Background(), "thing", object.ObjectsOptions{Label: "failed", After: after, Limit: 3})
			if err != nil {
				t.Fatal(err)
			}
			if len(infos) == 0 {
				if n != 4 || len(seen) != 10 {
					t.Errorf("S11: %d portions with %d objects", n, len(seen))
				}
				break
			}
			for _, in := range infos {
				seen[in.ID.Name] = true
				after = in.ID.Name
			}
		}
		ctx := context.Background()
		for _, c := range []struct {
			class, label string
			limit        int
			says         string
		}{
			{"thing", strings.Repeat("x", 65), 1, "the limit is 64"},
			{"thing", "failed", -1, "Limit must not be negative: -1"},
			{"", "failed", 1, "class name is empty"},
		} {
			if _, err := f.host.Objects(ctx, c.class, object.ObjectsOptions{Label: c.label, Limit: c.limit}); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("S11: %+v: %v", c, err)
			}
		}
		if infos, err := f.host.Objects(ctx, "thing", object.ObjectsOptions{Label: "failed"}); err != nil || len(infos) != 10 {
			t.Errorf("S11: without a limit: %v, %v", infos, err)
		}
		f.close()
		o := f.options
		o.Storage.Engine, o.Storage.Shards = f.mem, 2
		h, err := object.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		f.host = h
		defer f.close()
		f.labelled("failed", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
		if err := h.Delete(ctx, f.id("3")); err != nil {
			t.Fatal(err)
		}
		f.labelled("failed", "0", "1", "2", "4", "5", "6", "7", "8", "9")
		if counts, complete := h.Labels("thing"); complete || len(counts) != 0 {
			t.Errorf("S11: the labels of a class that is not registered: %v, %v", counts, complete)
		}
	})
}

// Proves S11: the metric of a class has its labels.
func TestLabelsAreMetrics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		defer f.close()
		for i, label := range []string{"failed", "stuck", "failed"} {
			f.must(fmt.Sprint(i), both(put("k", "v"), setLabel(label)))
		}
		synctest.Wait() // until all are counted
		wantValues(t, f, map[string]float64{"holdfast_objects_labelled failed": 2, "holdfast_objects_labelled stuck": 1})
	})
}
