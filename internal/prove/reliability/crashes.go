package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// crashed are the packages with tests that crash stories. Such a test has Crash in its
// name, or draws its story and begins with TestRandom. Most stories have sub-tests
// "map", "pebble" and "random" (internal/testing/crashes).
var crashed = []string{
	"jobs/workerpool", "examples/ingest", "jobs/workflow", "examples/orders", "jobs/debounce", "jobs/continuous", "object", "object/timers", "jobs/engine", "recovery",
	"admin", "admin/why", "examples/documents", "examples/crashtest", "examples/approval", "examples/patterns", "jobs/breaker", "object/journal", "examples/agent",
}

const crashTests = "Crash|^TestRandom"

// stores are the kinds of stores that the stories run on.
var stores = []string{"map", "pebble"}

// every is more points than a story has.
const every = 1_000_000

// scenarios crashes every story at every point, on both stores.
func scenarios(ctx context.Context, s *suite) error {
	return each(crashed, func(dir string) error {
		lines, _, err := s.test(ctx, testRun{
			step: "scenarios", dir: dir, run: crashTests, skip: skipping("random"), crashtest: fmt.Sprintf("depth=1,budget=%d", every),
		})
		if err != nil {
			return err
		}
		for _, st := range stories(lines) {
			s.add("scenarios", 1)
			s.add("points", float64(st.points))
			s.add("points_pebble", float64(st.onPebble))
			s.add("points_covered", float64(st.covered()))
		}
		return nil
	})
}

// story is a scenario that was crashed on both stores, at so many of its points.
type story struct {
	test                    string
	points, onMap, onPebble int
}

// covered is how many points were crashed at, on both stores.
func (st story) covered() int { return min(st.onMap, st.onPebble) }

// stories are those of some test runs. The sub-tests of a test are runs of one story,
// of which the longest counts.
func stories(lines []line) []story {
	type run struct{ points, covered int }
	runs := map[string]map[string]run{} // by test, by store
	var names []string
	for _, l := range lines {
		if l.Kind != "exhaust" {
			continue
		}
		test := l.Test
		if i := strings.LastIndex(test, "/"); i >= 0 {
			test = test[:i]
		}
		if runs[test] == nil {
			runs[test] = map[string]run{}
			names = append(names, test)
		}
		if was := runs[test][l.Store]; l.Points > was.points {
			runs[test][l.Store] = run{l.Points, int(float64(l.Points) * l.Covered)}
		}
	}
	slices.Sort(names)
	var out []story
	for _, name := range names {
		m, onMap := runs[name]["map"]
		p, onPebble := runs[name]["pebble"]
		if onMap && onPebble {
			out = append(out, story{name, max(m.points, p.points), m.covered, p.covered})
		}
	}
	return out
}

// pairs crashes every story twice, at as many pairs of points as the floors need.
func pairs(ctx context.Context, s *suite) error {
	budgets := map[string]int{
		"map":    of(s.extent, 720, 1_000_000),
		"pebble": of(s.extent, 180, 10_000),
	}
	return each(stores, func(store string) error {
		other := map[string]string{"map": "pebble", "pebble": "map"}[store]
		return each(crashed, func(dir string) error {
			lines, _, err := s.test(ctx, testRun{
				step: "pairs", dir: dir, run: "Crash", skip: skipping("random", other),
				crashtest: fmt.Sprintf("depth=2,budget=%d", budgets[store]),
			})
			for _, l := range lines {
				if l.Store == store {
					s.add("pairs_"+store, float64(l.Pairs))
				}
			}
			return err
		})
	})
}

// takeOvers crashes every story at many points over a log, and under some random schedules: each crash is a take-over.
func takeOvers(ctx context.Context, s *suite) error {
	n, budget := of(s.extent, 8, 1000), of(s.extent, 120, 1_000_000)
	return each(crashed, func(dir string) error {
		lines, _, err := s.test(ctx, testRun{
			step: "take-overs", dir: dir, run: crashTests, skip: skipping("pebble"), crashtest: fmt.Sprintf("store=log,depth=1,budget=%d", budget),
			args: rapidFlags(n, s.seed),
		})
		for _, l := range lines {
			s.add("take_overs", float64(l.Crashes))
		}
		return err
	})
}

// skipping is the pattern of the sub-tests of these names, which stand at the
// second or the third level.
func skipping(names ...string) string {
	any := "^(" + strings.Join(names, "|") + ")$"
	return "./" + any + "|././" + any
}

// randomTests is the pattern of the tests of a package that draw their schedules.
// Without skipping they would be all crash tests; the example for users is written
// without internal/testing/crashes.
func randomTests(dir string) string {
	if dir == "examples/crashtest" {
		return "^TestRandom"
	}
	return crashTests
}

// checks is how many random schedules each test runs in a round: the floors take two rounds on the map and one on Pebble.
var checks = map[string]int{"map": 420, "pebble": 84}

// random runs stories under random schedules, in rounds with a seed of their own,
// until the floors are reached.
func random(ctx context.Context, s *suite) error {
	return each(stores, func(store string) error {
		for round := 0; s.value("random_"+store) < s.floor("random_"+store); round++ {
			if err := s.round(ctx, store, round); err != nil {
				return err
			}
		}
		return nil
	})
}

// fill runs more rounds for as long as the budget lasts: none that would take it over, as far as the
// round before it tells.
func fill(ctx context.Context, s *suite) error {
	const first = 1 << 20 // far from the rounds of random
	var took time.Duration
	for round := first; since(s.began)+took < s.budget; round++ {
		began := clock.Now()
		err := each(stores, func(store string) error { return s.round(ctx, store, round) })
		if err != nil {
			return err
		}
		took = since(began)
	}
	return nil
}

// round runs every story under some random schedules that the round chooses.
func (s *suite) round(ctx context.Context, store string, round int) error {
	n := checks[store]
	n = of(s.extent, n, 20*n)
	return each(crashed, func(dir string) error {
		lines, _, err := s.test(ctx, testRun{
			step: "random", dir: dir, run: randomTests(dir), skip: skipping("map", "pebble"), crashtest: "store=" + store,
			args: rapidFlags(n, s.seed+uint64(round)<<32),
		})
		for _, l := range lines {
			s.add("random_"+store, float64(l.Random))
		}
		return err
	})
}
