package breaker_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/object"
)

// FORMAT.md has the key and the values of the row that the code writes, and the message of a Reset.
func TestLayout(t *testing.T) {
	format, err := os.ReadFile("../../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	b := breaker.New(breaker.Config{Name: "bank"})
	type desk struct{ st *object.State }
	class := object.Define("desk", func(_ context.Context, st *object.State) (*desk, error) { return &desk{st}, nil })
	reset := object.Handle(class, "reset", func(d *desk, ctx context.Context, reason string) (int, error) {
		return 0, b.Reset(ctx, d.st.Outbox(object.After(time.Hour)), "eu", reason)
	})
	harness.Run(t, func(s *harness.Sim) {
		s.Host(b, class)
		look := func() (in object.Inspection) {
			s.OK(s.WithHost(func(ctx context.Context, h *object.Host) (err error) {
				if in, err = h.Inspect(ctx, b.ID("eu")); err != nil {
					return err
				}
				page, err := h.Keys(ctx, b.ID("eu"), object.KeysOptions{Values: true})
				in.Keys = page.Keys
				return err
			}))
			return in
		}
		s.Always("the time of the rows", s.Now().Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), s.Now())
		fail(s, b, 5)
		for _, state := range []string{"open", "half open"} {
			in := look()
			s.Always("one row", len(in.Keys) == 1 && in.Keys[0].Key == "breaker", in)
			row := fmt.Sprintf("| %s | `%s` |", state, in.Keys[0].Value)
			s.Always("FORMAT.md has the row", strings.Contains(string(format), row), row)
			s.Advance(30 * time.Second)
		}
		_, err := reset.Call(s.Context(), s, "d", "the bank is back")
		s.OK(err)
		in := look()
		s.Always("one message", len(in.Messages) == 1, in)
		text := fmt.Sprintf("the method `%s` and the reason as its argument, for example `%q`", in.Messages[0].Method, "the bank is back")
		s.Always("FORMAT.md has the message", strings.Contains(string(format), text), text)
		s.Advance(2 * time.Hour)
		s.Always("a closed breaker has no row", !look().Exists, look())
	})
}
