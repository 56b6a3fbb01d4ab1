package object_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// lapsed is more than enough time for marks of an hour to expire and be removed.
const lapsed = time.Hour + time.Hour/4 + 5*time.Minute

func markFor(key string, ttl time.Duration) action {
	return func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Mark(ctx, key, nil, ttl) }
}

// exists reports whether the object is listed, which inspection must confirm.
func (f *fixture) exists(name string) bool {
	f.t.Helper()
	in, err := f.host.Inspect(context.Background(), f.id(name))
	all, err2 := f.host.Objects(context.Background(), "thing", object.ObjectsOptions{Limit: 10})
	if err := errors.Join(err, err2); err != nil || in.Exists != (len(all) == 1) {
		f.t.Errorf("inspected: %v, listed: %v, %v", in.Exists, all, err)
	}
	return in.Exists
}

// An object that has nothing but marks is gone when the last one has expired and is
// removed, and stays while it has anything else.
//
// Case ST18. Proves O1.
func TestObjectGoesWhenItsLastMarkExpires(t *testing.T) {
	put := func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Storage().Put(ctx, "k", 1) }
	unput := func(th *thing, ctx context.Context) (any, error) {
		_, err := th.st.Storage().Delete(ctx, "k")
		return nil, err
	}
	alarm := func(th *thing, ctx context.Context) (any, error) {
		return nil, th.st.SetAlarm(ctx, th.st.Now().Add(100*time.Hour))
	}
	open := func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().OpenExecution(ctx, nil) }
	for what, c := range map[string]struct {
		more []action
		want bool
	}{
		"only a mark":         {nil, false},
		"two marks":           {[]action{markFor("2", time.Minute)}, false},
		"a key that was":      {[]action{put, unput}, false},
		"a key":               {[]action{put}, true},
		"an alarm":            {[]action{alarm}, true},
		"an open execution":   {[]action{open}, true},
		"a mark for longer":   {[]action{markFor("2", 10*time.Hour)}, true},
		"the mark set longer": {[]action{markFor("1", 10*time.Hour)}, true},
	} {
		for where, idle := range map[string]time.Duration{"in memory": 100 * time.Hour, "evicted": time.Minute} {
			t.Run(what+" "+where, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					f := newFixture(t, object.ClassOptions{IdleAfter: idle}).open()
					defer f.close()
					for _, do := range append([]action{markFor("1", time.Hour)}, c.more...) {
						f.must("a", do)
					}
					pass(time.Hour - time.Second)
					if !f.exists("a") {
						t.Error("the object is gone before its mark has expired")
					}
					pass(lapsed - time.Hour)
					if got := f.exists("a"); got != c.want {
						t.Errorf("the object exists: %v, want %v", got, c.want)
					}
					f.check(t)
				})
			})
		}
	}
}

// A turn that is under way while the marks of its object are removed keeps the object
// if it sets a mark. If it writes nothing the object goes after it, however long the
// turn takes.
//
// Case ST18. Proves O1.
func TestObjectWhoseMarksExpireInATurn(t *testing.T) {
	for what, marks := range map[string]bool{"a turn that sets a mark": true, "a turn that writes nothing": false} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFixture(t).open()
				defer f.close()
				f.must("a", markFor("1", time.Hour))
				release, done := make(chan struct{}), make(chan error)
				go func() {
					_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
						<-release
						if marks {
							return nil, th.st.Mark(ctx, "2", nil, 10*time.Hour)
						}
						return nil, nil
					})
					done <- err
				}()
				pass(lapsed)
				if !f.exists("a") {
					t.Error("the object is gone while it has a turn")
				}
				close(release)
				if err := <-done; err != nil {
					t.Error(err)
				}
				pass(5 * time.Minute)
				if got := f.exists("a"); got != marks {
					t.Errorf("the object exists: %v, want %v", got, marks)
				}
				f.check(t)
			})
		})
	}
}

// An object of a class that is not registered goes with its last mark too.
//
// Case ST18. Proves O1.
func TestParkedObjectGoesWhenItsLastMarkExpires(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		f.must("a", markFor("1", time.Hour))
		f.must("b", markFor("1", time.Hour))
		f.must("b", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Storage().Put(ctx, "k", 1) })
		f.close()
		o := f.options
		o.Storage.Engine, o.Storage.Shards = f.mem, 2
		other := object.Define("other", func(context.Context, *object.State) (*struct{}, error) { return &struct{}{}, nil })
		h, err := object.Open(o, other)
		if err != nil {
			t.Fatal(err)
		}
		f.host = h
		defer f.close()
		pass(lapsed)
		for name, want := range map[string]bool{"a": false, "b": true} {
			if in, err := h.Inspect(context.Background(), f.id(name)); err != nil || in.Exists != want {
				t.Errorf("%s exists: %v, %v, want %v", name, in.Exists, err, want)
			}
		}
	})
}

// Wherever a crash comes, also between the removal of the marks and the end of the
// object, the object goes, and one that has a key stays.
//
// Case ST18. Proves O1.
func TestCrashObjectGoesWhenItsLastMarkExpires(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		class := object.Define("marked", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
		mark := object.Handle(class, "mark", func(st *object.State, ctx context.Context, key bool) (int, error) {
			if key {
				if err := st.Storage().Put(ctx, "k", 1); err != nil {
					return 0, err
				}
			}
			return 0, st.Mark(ctx, "m", nil, time.Minute)
		})
		s.Host(class)
		for _, name := range []string{"gone", "kept"} {
			s.OK(s.Retry(func() error {
				_, err := mark.Call(s.Context(), s, name, name == "kept")
				return err
			}))
		}
		s.Eventually(20*time.Minute, "O1: only the object with a key is left", func() bool {
			var names []string
			err := s.WithHost(func(ctx context.Context, h *object.Host) error {
				all, err := h.Objects(ctx, "marked", object.ObjectsOptions{Limit: 10})
				for _, o := range all {
					names = append(names, o.ID.Name)
				}
				return err
			})
			return err == nil && len(names) == 1 && names[0] == "kept"
		})
	})
}
