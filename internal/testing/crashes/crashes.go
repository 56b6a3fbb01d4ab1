// Package crashes is how the scenarios of this repository are crashed in its own
// tests: at every point and at pairs of points over a map, at points over
// Pebble, and at random, each as a sub-test of its own. internal/prove/reliability runs the
// same sub-tests with wider options.
package crashes

import (
	"runtime/debug"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
)

// Budgets of an ordinary run of the tests, in plans. A story with more points or pairs logs
// which share of them it tried; internal/prove/reliability tries more. On the map a story is
// crashed at each of its points first, so that only pairs are left out.
const (
	pairs    = 250
	short    = 150 // with -short, where each plan costs ten times as much
	onPebble = 12  // because a plan costs there three times as much, and tells little that is new
)

// A simulated host lives for about a millisecond, so that collecting its garbage at every
// few megabytes costs more than keeping it. The limit bounds what is kept, because each
// collection spares the hosts whose pools were used since the one before, a fifth of all: of a
// heap that may grow to five times its size more and more would stay.
func init() {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(512 << 20)
}

// Try crashes a scenario in the sub-tests "map", "pebble" and "random". Options
// are those of all three; a Budget among them takes the place of the usual one on the map.
func Try(t *testing.T, scenario harness.Scenario, opts ...harness.Option) {
	t.Helper()
	budget := pairs
	if testing.Short() {
		budget = short
	}
	with := func(options ...harness.Option) []harness.Option { return slices.Concat(options, opts) }
	t.Run("map", func(t *testing.T) {
		harness.Exhaust(t, scenario, with(harness.Budget(budget), harness.Depth(2))...)
	})
	t.Run("pebble", func(t *testing.T) {
		harness.Exhaust(t, scenario, append(with(harness.PebbleStore()), harness.Budget(onPebble))...)
	})
	t.Run("random", func(t *testing.T) {
		harness.Check(t, func(s *harness.Sim, _ *rapid.T) { scenario(s) }, opts...)
	})
}
