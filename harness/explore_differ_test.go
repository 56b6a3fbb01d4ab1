package harness_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// A scenario that does not do the same each time is refused, with the point at
// which two runs part and the cause that fits.
func TestDifferentRunsAreRefused(t *testing.T) {
	call := func(s *harness.Sim, name string) { s.Must(cartAdd.Call(s.Context(), s, name, 1)) }
	runs := 0
	for name, c := range map[string]struct {
		scenario harness.Scenario
		want     string
	}{
		"order": {func(s *harness.Sim) {
			s.Host(carts)
			order := map[string]bool{}
			for i := range 50 {
				order[fmt.Sprint("cart", i)] = true
			}
			for name := range order {
				call(s, name)
			}
		}, "most likely the order of a map"},
		"time": {func(s *harness.Sim) {
			s.Host(carts)
			s.Advance(time.Duration(time.Now().UnixNano() % 1e9))
			call(s, "alice")
		}, "most likely time.Now"},
		"names": {func(s *harness.Sim) {
			s.Host(carts)
			call(s, fmt.Sprint("cart", rand.Uint64()))
		}, "most likely a name or a value that is made up anew in each run, by math/rand"},
		"state": {func(s *harness.Sim) {
			s.Host(carts)
			for range runs {
				call(s, "alice")
			}
			runs++
		}, "most likely state that outlives the scenario"},
	} {
		t.Run(name, func(t *testing.T) {
			mustSay(t, problemOf(t, c.scenario), "two runs without a crash do not do the same", "in the first", "in the second", c.want)
		})
	}
}

func TestSecondRunFails(t *testing.T) {
	ran := false
	said := problemOf(t, func(s *harness.Sim) {
		s.Host(carts)
		if ran {
			s.Fatalf("there is an alice already")
		}
		ran = true
	})
	mustSay(t, said, "there is an alice already", "The first run of the scenario did not fail", "state that outlives the scenario")
}

// A handler that waits where the simulation cannot see it is named, with the
// line and the remedy, instead of hanging the test.
func TestHiddenWaitIsNamed(t *testing.T) {
	raw, never := make(chan struct{}), sync.Mutex{}
	never.Lock()
	for _, c := range []struct {
		why           string
		hide, release func()
	}{
		{"chan receive", func() { <-raw }, func() { close(raw) }},
		{"sync.Mutex.Lock", func() { never.Lock() }, func() { never.Unlock() }},
	} {
		t.Run(c.why, func(t *testing.T) {
			left := make(chan struct{})
			class := object.Define("stuck", func(context.Context, *object.State) (*struct{}, error) { return &struct{}{}, nil })
			wait := object.Handle(class, "wait", func(*struct{}, context.Context, int) (int, error) {
				defer close(left)
				c.hide()
				return 0, nil
			})
			said := problemOf(t, func(s *harness.Sim) {
				s.Host(class)
				s.Must(wait.Call(s.Context(), s, "one", 0))
			}, harness.Watchdog(300*time.Millisecond))
			c.release()
			<-left
			mustSay(t, said, `task "crew"`, "Remedy: wait through seams", "differ_test.go:", "("+c.why)
		})
	}
}
