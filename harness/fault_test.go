package harness_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
)

// allFaults is one of each.
var allFaults = harness.Plan{FailCommit: 1, Slow: 20 * time.Second, ClockJump: time.Hour, DropWake: 1, DupAlarm: 1, Zombie: 1}

// patient is cartScenario for runs whose wall clock jumps.
func patient(s *harness.Sim) {
	cartScenario(s)
	s.Advance(2 * time.Hour)
}

// Every kind of fault strikes at each of its places, and a host that keeps its
// promises lives with all of them, on both stores.
func TestObjectSurvivesFaults(t *testing.T) {
	for name, store := range map[string]harness.Option{"map": harness.MapStore(), "pebble": harness.PebbleStore()} {
		t.Run(name, func(t *testing.T) {
			report, err := harness.Explore(patient, store, harness.Faults(allFaults), harness.NoLostAck, harness.OneAlarm, harness.NoTornBatch)
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range []string{"failcommit", "slow", "clockjump", "dropwake", "dupalarm", "zombie"} {
				if report.Faults[kind] == 0 {
					t.Errorf("no %s in %s", kind, report)
				}
			}
			t.Log(report)
		})
	}
}
