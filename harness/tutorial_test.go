package harness_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// docs/TESTING.md shows the messages of the harness about code that breaks its rules,
// as far as it is the same each time.
func TestTutorialShowsTheErrors(t *testing.T) {
	document, err := os.ReadFile("../docs/TESTING.md")
	if err != nil {
		t.Fatal(err)
	}
	raw, runs := make(chan struct{}), 0
	defer close(raw)
	stuck := object.Define("mail", func(context.Context, *object.State) (*struct{}, error) { return &struct{}{}, nil })
	send := object.Handle(stuck, "send", func(*struct{}, context.Context, int) (int, error) { <-raw; return 0, nil })
	for name, scenario := range map[string]harness.Scenario{
		"two runs that differ": func(s *harness.Sim) {
			runs++
			s.Host(carts)
			s.Must(cartAdd.Call(s.Context(), s, fmt.Sprint("cart", runs), 1))
		},
		"a hidden wait": func(s *harness.Sim) {
			s.Host(stuck)
			s.Must(send.Call(s.Context(), s, "one", 0))
		},
		"Advance in a client": func(s *harness.Sim) {
			s.Go("client", func() { s.Advance(time.Hour) })
			s.RunUntilIdle()
		},
	} {
		said := problemOf(t, scenario, harness.Watchdog(time.Second))
		said, _, _ = strings.Cut(said, "\n\n")
		said, _, _ = strings.Cut(said, "\ngoroutine ")
		said = strings.ReplaceAll(strings.TrimSpace(said), "1s", "10s")
		if !strings.Contains(string(document), "\n```\n"+said+"\n```\n") {
			t.Errorf("docs/TESTING.md does not show what is said of %s; paste it there:\n%s", name, said)
		}
	}
}
