package breaker_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// LookAt tells the state of a breaker that is open or half open, and false for one that is
// closed, for an object of a user with a row under the same key, and for one without.
func TestLookAt(t *testing.T) {
	type box struct{ st *object.State }
	class := object.Define("box", func(_ context.Context, st *object.State) (*box, error) { return &box{st}, nil })
	put := object.Handle(class, "put", func(x *box, ctx context.Context, text string) (int, error) {
		return 0, x.st.Storage().PutBytes(ctx, "breaker", []byte(text))
	})
	b := breaker.New(breaker.Config{Name: "bank", Failures: 1, OpenFor: time.Minute})
	harness.Run(t, func(s *harness.Sim) {
		s.Host(b, class)
		look := func(class, name string) (st breaker.Status, ok bool) {
			s.OK(s.WithHost(func(_ context.Context, h *object.Host) error {
				return h.Store().Objects(class, "", func(o storage.Object) bool {
					if o.ID.Name == name {
						var err error
						st, ok, err = breaker.LookAt(h.Store(), o)
						s.OK(err)
					}
					return true
				})
			}))
			return st, ok
		}
		fail(s, b, 1)
		st, ok := look("bank", "eu")
		s.Always("open", ok && st == stateOf(s, b) && st.State == breaker.Open, st, ok)
		s.Advance(time.Minute)
		st, ok = look("bank", "eu")
		s.Always("half open", ok && st.State == breaker.HalfOpen, st, ok)
		goes(s, b)
		st, ok = look("bank", "eu")
		s.Always("closed", !ok, st)
		for name, text := range map[string]string{"text": "no JSON", "other": `{"state":"closed"}`, "empty": `{}`} {
			_, err := put.Call(s.Context(), s, name, text)
			s.OK(err)
			st, ok = look("box", name)
			s.Always("the row of a user", !ok && st == breaker.Status{}, name, st)
		}
	})
}

// LookAt returns the error of a store that cannot be read.
func TestLookAtAClosedStore(t *testing.T) {
	run(t, breaker.Config{Failures: 1}, func(s *harness.Sim, b *breaker.Breaker) {
		fail(s, b, 1)
		var store *storage.Store
		var eu storage.Object
		s.OK(s.WithHost(func(_ context.Context, h *object.Host) (err error) {
			store = h.Store()
			eu, err = store.Find(b.ID("eu"))
			return err
		}))
		s.Restart()
		st, ok, err := breaker.LookAt(store, eu)
		s.Always("the error", err != nil && !ok && st == breaker.Status{}, st, ok, err)
	})
}
