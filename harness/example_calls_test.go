package harness_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// guest is a guest of a party, on the list of its host and in its own storage.
type guest struct{ st *object.State }

var (
	guests = object.Define("guest", func(_ context.Context, st *object.State) (*guest, error) { return &guest{st}, nil })
	lists  = object.Define("list", func(_ context.Context, st *object.State) (*guest, error) { return &guest{st}, nil })
	add    = object.Handle(lists, "add", func(l *guest, ctx context.Context, name string) (int, error) {
		return 0, l.st.Storage().Put(ctx, name, true)
	})
	accept = object.Handle(guests, "accept", func(g *guest, ctx context.Context, to string) (int, error) {
		if _, err := add.Call(ctx, g.st, to, g.st.Name()); err != nil { // add.Send is right
			return 0, err
		}
		return 0, g.st.Storage().Put(ctx, "goes", to)
	})
)

// NoCallBeforeCommit finds a handler that changes another object before its own, in two
// commits. No crash has to come between them for that.
func ExampleNoCallBeforeCommit() {
	_, err := harness.Explore(func(s *harness.Sim) {
		s.Host(guests, lists)
		s.Must(accept.Call(s.Context(), s, "alice", "party"))
	}, harness.NoCallBeforeCommit)
	var f *harness.Failure
	if errors.As(err, &f) {
		fmt.Println(f.Problem)
	}
	// Output: NoCallBeforeCommit: the turn accept of guest/alice called add of list/party, which committed, and then committed itself: a crash between the two commits leaves half. Make the call a part of the turn's commit (Method.Send, or the verb of a job with State.Outbox), or say that a repeat of it does no harm (object.Idempotent, object.Repeatable)
}
