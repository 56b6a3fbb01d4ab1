package harness_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// The mailer sends before it stores that it has sent. A crash between the two
// makes it send again, and the harness finds where.
func ExampleFailure() {
	type mailer struct{ st *object.State }
	scenario := func(s *harness.Sim) {
		mailers := object.Define("mailer", func(_ context.Context, st *object.State) (*mailer, error) { return &mailer{st}, nil })
		send := object.Handle(mailers, "send", func(m *mailer, ctx context.Context, to string) (int, error) {
			if sent, err := m.st.Storage().GetInto(ctx, "sent", new(bool)); sent || err != nil {
				return 0, err
			}
			s.World().Do("mail/"+to, nil)
			return 1, m.st.Storage().Put(ctx, "sent", true)
		})
		s.Host(mailers)
		s.OK(s.Retry(func() error {
			_, err := send.Call(s.Context(), s, "outbox", "alice")
			return err
		}))
	}
	_, err := harness.Explore(scenario, harness.NoDoubleEffect("mail/"))
	var f *harness.Failure
	if errors.As(err, &f) {
		fmt.Println(f.Problem)
		fmt.Println(f.Schedule)
	}
	// Output:
	// NoDoubleEffect: the effect "mail/alice" was done twice: at 0s by start 1, and at 0s by start 2
	// v1:seed=0:crash=effect/after/mail/alice#1,keep=0
}
