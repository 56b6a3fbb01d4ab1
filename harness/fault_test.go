package harness_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// allFaults is one of each.
var allFaults = harness.Faults{FailCommit: 1, Slow: 20 * time.Second, ClockJump: time.Hour, DropWake: 1, DupAlarm: 1, Zombie: 1}

// patient is cartScenario for runs with a wall clock that jumps.
func patient(s *harness.Sim) {
	cartScenario(s)
	s.Advance(2 * time.Hour)
}

// Every kind of fault strikes at each of its places, and a host that keeps its
// promises lives with all of them, on both stores.
func TestObjectSurvivesFaults(t *testing.T) {
	for name, store := range map[string]harness.Option{"map": harness.MapStore(), "pebble": harness.PebbleStore()} {
		t.Run(name, func(t *testing.T) {
			report, err := harness.Explore(patient, store, harness.AllowFaults(allFaults), harness.NoLostAck, harness.OneAlarm, harness.NoTornBatch)
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

// A zombie may send an effect that it has begun, but its commit is refused, because the
// store has changed hands.
func TestZombieCannotCommit(t *testing.T) {
	for _, store := range []harness.Option{harness.MapStore(), harness.PebbleStore()} {
		harness.Run(t, func(s *harness.Sim) {
			var stores []*storage.Store
			s.Boot(func(_ context.Context, p *harness.Process) error {
				opened, err := storage.Open(p.Store)
				stores = append(stores, opened)
				return err
			})
			s.Crash(harness.Kill)
			s.Restart()
			commit := func() (died any) {
				defer func() { died = recover() }()
				var b storage.Batch
				b.SetMeta("zombie", []byte("was here"))
				_, _ = stores[0].Commit(&b)
				return nil
			}
			if died := commit(); died != any(seam.Killed{}) {
				s.Errorf("the commit of a dead process ends with %v", died)
			}
			s.OK(s.Store().Metas("zombie", func(string, []byte) error { return errors.New("the commit of a dead process is stored") }))
		}, store)
	}
}
