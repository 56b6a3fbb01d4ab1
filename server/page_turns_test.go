package server

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// desk is an object whose turns wait for a test.
type desk struct{ st *object.State }

// Proves V13: the page of an object tells of the turns under way, with the object that has called and those that are
// waited for, and of the calls that wait. A principal with a prefix sees no name of another object.
func TestPageOfAnObjectWithTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, release := make(chan struct{}, 4), make(chan struct{})
		desks := object.Define("desk", func(_ context.Context, st *object.State) (*desk, error) { return &desk{st}, nil })
		hold := object.Handle(desks, "hold", func(d *desk, _ context.Context, _ int) (int, error) {
			began <- struct{}{}
			<-release
			return 0, nil
		})
		ask := object.Handle(desks, "ask", func(d *desk, ctx context.Context, name string) (int, error) {
			return hold.Call(ctx, d.st, name, 0)
		})
		lend := object.Handle(desks, "lend", func(d *desk, ctx context.Context, _ int) (int, error) {
			return 0, d.st.Release(ctx, func(context.Context) error {
				began <- struct{}{}
				<-release
				return nil
			})
		})
		f := start(t, nil, desks)
		var calls sync.WaitGroup
		call := func(f func() (int, error)) {
			calls.Go(func() {
				if _, err := f(); err != nil {
					t.Error(err)
				}
			})
		}
		ctx := t.Context()
		call(func() (int, error) { return ask.Call(ctx, f.host, "boss", "acme/a") })
		call(func() (int, error) { return lend.Call(ctx, f.host, "acme/b", 0) })
		<-began
		<-began
		call(func() (int, error) { return hold.Call(ctx, f.host, "acme/a", 0) })
		explained := func(holds func(object.Explanation) bool) func() bool {
			return func() bool {
				e, err := f.host.Explain(ctx, storage.ID{Class: "desk", Name: "acme/a"})
				return err == nil && holds(e)
			}
		}
		settled(t, "the call does not wait", explained(func(e object.Explanation) bool { return e.Mailbox.Calls == 1 }))
		const held, lent, boss = "/ui/object?class=desk&name=acme/a", "/ui/object?class=desk&name=acme/b", "/ui/object?class=desk&name=boss"
		f.sees("viewer", held, []string{"hold holds the object", "desk/boss", "Calls that wait 1, the first since"}, []string{"lent out", "is refused"})
		f.sees("acme", held, []string{"hold holds the object", another}, []string{"boss"})
		f.sees("viewer", lent, []string{"lend lent out", "Calls that wait 0"}, []string{"holds the object"})
		f.sees("viewer", boss, []string{"ask holds the object", "desk/acme/a"}, nil)
		close(release)
		calls.Wait()
		// A caller has its answer a moment before the turn ends.
		settled(t, "the turn does not end", explained(func(e object.Explanation) bool { return e.Turn == nil }))
		f.sees("viewer", held, []string{"Calls that wait 0"}, []string{"Turns under way", "boss"})
	})
}
