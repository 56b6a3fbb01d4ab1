package harness_test

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/storage"
)

func TestWorkIsRecovered(t *testing.T) {
	done := harness.StateMatches(func(s *harness.Sim) error {
		var done bool
		_, err := harness.Stored(s.Store(), storage.ID{Class: "worker", Name: "one"}, "done", &done)
		if err == nil && (!done || s.World().Count("work/one") > 1+s.Crashes()) {
			s.Errorf("done is %v after %d runs of the work and %d crashes", done, s.World().Count("work/one"), s.Crashes())
		}
		return err
	})
	for _, how := range [][]harness.Option{
		{harness.Depth(2), harness.Workers(2)},
		{harness.Seed(1)},
		{harness.Seed(2), harness.NoTornBatch, harness.PebbleStore()},
	} {
		harness.Exhaust(t, workScenario(""), append(how, done, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned,
			harness.RecoversWithin(35*time.Second), harness.AtMostOncePerCrash("work/"))...)
	}
	mustSay(t, problemOf(t, workScenario("no alarm"), harness.NeverOrphaned), "worker/one: an execution is open and no alarm is set", "J5")
	mustSay(t, problemOf(t, workScenario("no recovery"), harness.RecoversWithin(35*time.Second)), "the open execution", "R7")
}
