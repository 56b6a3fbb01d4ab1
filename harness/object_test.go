package harness_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

func cartScenario(s *harness.Sim) {
	s.Host(carts)
	for i := range 3 {
		_ = s.Retry(func() error {
			_, err := cartAdd.Call(s.Context(), s, "alice", 5, object.Idempotent(fmt.Sprint(i), 0))
			return err
		})
	}
	_, err := cartAdd.Call(s.Context(), s, "bob", 7)
	s.OK(err)
	s.Advance(time.Hour)
	total, err := cartGet.Call(s.Context(), s, "alice", struct{}{})
	s.OK(err)
	s.Always("alice's total counts each add once", total == 15 || harness.Unknown(err), total)
}

// A reply that is not held until its commit is durable is found by the crash
// right after it, without a checker that knows of gates.
func TestReplyBeforeSyncIsFound(t *testing.T) {
	said := problemOf(t, func(s *harness.Sim) {
		s.Host(carts)
		acked, err := cartAdd.Call(s.Context(), s, "alice", 5, object.Unconfirmed())
		s.OK(err)
		total, err := cartGet.Call(s.Context(), s, "alice", struct{}{})
		s.OK(err)
		s.Always("what was acknowledged is there", harness.Unknown(err) || total >= acked, total)
	})
	mustSay(t, said, "what was acknowledged is there", "ack/after/cart/alice#1,keep=0")
}

func TestObjectSurvivesCrashes(t *testing.T) {
	for name, store := range map[string]harness.Option{"map": harness.MapStore(), "pebble": harness.PebbleStore()} {
		t.Run(name, func(t *testing.T) {
			harness.Exhaust(t, cartScenario, store, harness.NoLostAck, harness.OneAlarm)
		})
	}
}
