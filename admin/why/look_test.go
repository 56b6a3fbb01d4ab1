package why_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/admin/why"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// An object of a user with metadata under the key of a job's is no job, unless the metadata has
// its name.
func TestMetadataOfAnotherObject(t *testing.T) {
	carts := object.Define("cart", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	put := object.Handle(carts, "put", func(st *object.State, ctx context.Context, m jobs.Meta) (int, error) {
		return 0, st.Storage().Put(ctx, jobs.MetaKey, m)
	})
	for _, c := range []struct {
		name, id string
		paused   bool
	}{{"cart", "alice", true}, {"cart", "bob", false}, {"basket", "alice", false}, {"", "", false}} {
		harness.Run(t, func(s *harness.Sim) {
			s.Host(carts)
			meta := jobs.Meta{Type: "continuous", Name: c.name, ID: c.id, Status: jobs.Paused}
			s.Must(put.Call(s.Context(), s, "alice", meta))
			s.Advance(time.Second)
			store := s.Store()
			defer store.Close()
			a, err := why.Object(s.Context(), why.Cold(store, s.Now()), carts.ID("alice"))
			s.OK(err)
			if told := slices.Contains(a.Holds(), why.Paused); told != c.paused {
				s.Errorf("with metadata of %s/%s the cart is told as %v", c.name, c.id, a.Holds())
			}
		})
	}
}
