package harness

import (
	"testing"
)

// Exhaust runs the scenario without a crash, then once for each point that it
// passes, with a crash there, and with Depth(2) for each pair. It fails at the
// first promise that does not hold, with a line for Replay.
func Exhaust(t testing.TB, scenario Scenario, opts ...Option) {
	t.Helper()
	c := testConfig(t, opts)
	report, err := explore(scenario, c)
	c.record(t, report)
	if err != nil {
		t.Fatalf("crash test, after %d schedules: %v", report.Schedules, err)
	}
	t.Logf("harness: %s", report)
	if report.Covered < 1 {
		t.Logf("harness: the budget covers %.1f %% of all schedules", 100*report.Covered)
	}
}

// Run runs the scenario once, without a crash.
func Run(t testing.TB, scenario Scenario, opts ...Option) {
	t.Helper()
	c := newConfig(opts)
	runSchedule(t, &runner{cfg: c, scenario: scenario, random: newSeeded(c.seed)}, schedule{seed: c.seed})
}

// Replay runs the scenario once with the crashes of a schedule that a failure
// printed. Options must be those of the test that failed.
func Replay(t testing.TB, scenario Scenario, text string, opts ...Option) {
	t.Helper()
	p, err := parseSchedule(text)
	if err != nil {
		t.Fatalf("harness: %v", err)
	}
	runSchedule(t, &runner{cfg: newConfig(opts), scenario: scenario}, p)
}

func runSchedule(t testing.TB, r *runner, p schedule) {
	t.Helper()
	var out outcome
	if err := r.guard(func() { out = r.run(p) }); err != nil {
		t.Fatalf("%v", r.wrap(err))
	}
	if out.problem != nil {
		t.Fatalf("%v", out.problem)
	}
}
