package object_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// An object is gone when the turn commits that removes the last of its rows: a key or
// the open-execution mark.
//
// Case ST15. Proves O1.
func TestObjectGoesWithItsLastRow(t *testing.T) {
	remove := func(th *thing, ctx context.Context) (any, error) { return th.st.Storage().Delete(ctx, "k") }
	open := func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().OpenExecution(ctx, nil) }
	end := func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().CloseExecution(ctx) }
	for what, evicted := range map[string]bool{"in memory": false, "read again": true} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFixture(t).open()
				defer f.close()
				exists := func() bool {
					in, err := f.host.Inspect(context.Background(), f.id("a"))
					all, err2 := f.host.Objects(context.Background(), "thing", object.ObjectsOptions{Limit: 10})
					if err := errors.Join(err, err2); err != nil || in.Exists != (len(all) == 1) {
						t.Errorf("inspected: %v, listed: %v, %v", in.Exists, all, err)
					}
					return in.Exists
				}
				step := func(do action, want bool) {
					t.Helper()
					f.must("a", do)
					if evicted {
						pass(3 * time.Minute)
					}
					if got := exists(); got != want {
						t.Errorf("the object exists: %v, want %v", got, want)
					}
				}
				step(put("k", "1"), true)
				step(open, true)
				step(remove, true)
				step(end, false)
				step(put("k", "2"), true)
				step(remove, false)
				f.check(t)
			})
		})
	}
}

// The header of an object has the epoch of the opening of its last commit. The reason of
// an activation follows from it: the object was evicted if it has committed in this
// opening, and else it was restarted.
//
// Case ST16. Proves O5.
func TestReasonFollowsTheHeadersEpoch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t).open()
		reason := func(do action) object.Reason {
			var r object.Reason
			f.must("a", func(th *thing, ctx context.Context) (any, error) {
				r = th.st.Activation().Reason
				return do(th, ctx)
			})
			return r
		}
		want := func(do action, want object.Reason) {
			t.Helper()
			if got := reason(do); got != want {
				t.Errorf("the reason is %v, want %v", got, want)
			}
			pass(3 * time.Minute) // it leaves memory
		}
		want(put("k", "1"), object.Fresh)
		want(nothing, object.Evicted)
		for range 2 {
			f.close()
			f.open()
			want(nothing, object.Restarted)
			want(nothing, object.Restarted) // no turn of it has committed in this opening
			want(put("k", "2"), object.Restarted)
			want(nothing, object.Evicted)
			want(put("k", "3"), object.Evicted)
		}
		f.close()
	})
}
