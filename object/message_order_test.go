package object_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
)

// Proves M3, A8. Case MS6: letters to one desk keep their order over three crashes in a row,
// which make suspects of those that were first in the queue, and over a fourth. Each process
// but the last is killed on purpose while letters are under way, and the harness kills the
// others anywhere.
func TestOrderOverManyCrashes(t *testing.T) {
	for _, onPurpose := range []int{1, 2, 3} {
		scenario := func(s *harness.Sim) {
			o := newOffice(s, true)
			s.Host(o.desks)
			o.post("0", "c", "b", "holds")
			for i := range 4 {
				o.post(fmt.Sprint(i+1), "a", "b", plain(3)...)
			}
			for i := range onPurpose {
				s.Advance(time.Second)
				s.Crash(harness.Kill)
				s.Restart()
				o.post(fmt.Sprint("late ", i), "a", "b", plain(2)...)
			}
			s.Advance(5 * time.Minute)
			o.arrived("a", "b", 12+2*onPurpose, 0)
			o.arrived("c", "b", 1, 0)
		}
		checks := []harness.Option{
			harness.NoLostAck, harness.NoTornBatch, harness.NoLostMessage, harness.Invariant("letters", accounted),
			harness.Ordered(letters), harness.AllowFaults(harness.Faults{LateMessage: 1}),
		}
		t.Run(fmt.Sprint(onPurpose, " on purpose"), func(t *testing.T) {
			t.Run("map", func(t *testing.T) {
				harness.Exhaust(t, scenario, append(checks, harness.Depth(2), crashes.Budget(storyPlans))...)
			})
			t.Run("random", func(t *testing.T) {
				harness.Check(t, func(s *harness.Sim, _ *rapid.T) { scenario(s) }, checks...)
			})
		})
	}
}
