package main

import (
	"context"
	"fmt"
)

// steps are all steps, the long ones first, so that the cores are busy to the end.
var steps = []step{
	{"mutants", "puts bugs into the library and sees the tests find them", mutants},
	{"kill", "kills a real program with -9 on the real disk", kill},
	{"histories", "checks concurrent calls with crashes for linearizability", histories},
	{"files", "cuts the power, fails operations and flips bits under the store", files},
	{"scenarios", "crashes every story at every point, on both stores", scenarios},
	{"pairs", "crashes every story twice", pairs},
	{"take-overs", "crashes every story over a log, where the next process is another machine", takeOvers},
	{"cluster", "lets the nodes of a cluster fail, and compares what they have acknowledged", cluster},
	{"properties", "runs every property test with a seed of this commit", properties},
	{"programs", "runs random workflows, crashes them, and compares them with a model", programs},
	{"race", "runs random schedules and real goroutines under the race detector", race},
	{"synctest", "runs the real executor on virtual time, for years", synctest},
	{"random", "crashes stories at random, as long as the budget lasts", random},
}

// raced are the packages with random schedules that run under the race detector.
var raced = []string{"object", "jobs/continuous", "jobs/debounce", "jobs/workerpool"}

// race runs the hosts on virtual time, and random schedules until the floor is
// reached, under the race detector.
func race(ctx context.Context, s *suite) error {
	if _, _, err := s.test(ctx, testRun{step: "race", dir: "internal/prove/realtime", run: ".", race: true,
		args: []string{fmt.Sprintf("-rounds=%d", of(s.extent, 12, 120))}}); err != nil {
		return err
	}
	n := of(s.extent, 56, 1120)
	for round := 0; s.value("race_schedules") < s.floor("race_schedules"); round++ {
		err := each(raced, func(dir string) error {
			lines, _, err := s.test(ctx, testRun{
				step: "race", dir: dir, run: crashTests, skip: skipping("map", "pebble"), race: true,
				args: rapidFlags(n, s.seed+uint64(round)<<32),
			})
			for _, l := range lines {
				s.add("race_schedules", float64(l.Random))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rapidFlags are the flags of a run of so many random schedules.
func rapidFlags(checks int, seed uint64) []string {
	return []string{fmt.Sprintf("-rapid.checks=%d", checks), fmt.Sprintf("-rapid.seed=%d", seed), "-rapid.nofailfile"}
}
