// Package crashes crashes the scenarios of this repository's own tests: at every
// point and at pairs of points over a map, at points over Pebble, and at random,
// each as a subtest of its own. An ordinary run tries a part of the pairs; the
// environment of scripts/prove asks for more, and internal/prove/reliability runs
// the same subtests with options of its own.
package crashes

import (
	"runtime/debug"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/prove"
)

// Plans of a scenario in an ordinary run of the tests, and in scripts/prove. A scenario
// on the map is crashed once at each of its points first, so only pairs are left out. A
// scenario with more points or pairs logs the share it tried.
const (
	plans, allPlans       = 100, 250
	onPebble, allOnPebble = 8, 12 // a plan costs three times as much there, and finds little that is new
)

// A simulated host lives for about a millisecond, so that collecting its garbage at every
// few megabytes costs more than keeping it. The limit bounds what is kept, because each
// collection spares the hosts whose pools were used since the one before, a fifth of all: of a
// heap that may grow to five times its size more and more would stay.
func init() {
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(512 << 20)
}

// Budget is harness.Budget, but an ordinary run has a third of the plans, and no more than usual.
func Budget(n int) harness.Option {
	if !prove.Long() {
		n = min(n/3, plans)
	}
	return harness.Budget(n)
}

// Try crashes a scenario in the subtests "map", "pebble" and "random". The options
// apply to all three. A Budget among them replaces the usual one on the map.
func Try(t *testing.T, scenario harness.Scenario, opts ...harness.Option) {
	t.Helper()
	onMap, pebble := plans, onPebble
	if prove.Long() {
		onMap, pebble = allPlans, allOnPebble
	}
	with := func(options ...harness.Option) []harness.Option { return slices.Concat(options, opts) }
	t.Run("map", func(t *testing.T) {
		harness.Exhaust(t, scenario, with(harness.Budget(onMap), harness.Depth(2))...)
	})
	t.Run("pebble", func(t *testing.T) {
		harness.Exhaust(t, scenario, append(with(harness.PebbleStore()), harness.Budget(pebble))...)
	})
	t.Run("random", func(t *testing.T) {
		harness.Check(t, func(s *harness.Sim, _ *rapid.T) { scenario(s) }, opts...)
	})
}
