package harness_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// problemOf explores a scenario that must fail, and returns its problem.
func problemOf(t *testing.T, scenario harness.Scenario, opts ...harness.Option) string {
	t.Helper()
	_, err := harness.Explore(scenario, opts...)
	var f *harness.Failure
	if !errors.As(err, &f) {
		t.Fatalf("the scenario must fail, but: %v", err)
	}
	return f.Error()
}

func mustSay(t *testing.T, said string, want ...string) {
	t.Helper()
	unwrapped := strings.Join(strings.Fields(said), " ")
	for _, w := range want {
		if !strings.Contains(said, w) && !strings.Contains(unwrapped, w) {
			t.Errorf("%q is missing in:\n%s", w, said)
		}
	}
}

// The report distinguishes a call that waits for an event that never comes from a slow
// call.
func TestCallWithoutReply(t *testing.T) {
	class := object.Define("waiter", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	wait := object.Handle(class, "wait", func(st *object.State, ctx context.Context, d time.Duration) (int, error) {
		if d > 0 {
			return 0, st.Driver().Seams().Sleep(ctx, d)
		}
		return 0, st.Driver().Seams().Executor.Wait(ctx, nil)
	})
	scenario := func(d time.Duration) harness.Scenario {
		return func(s *harness.Sim) {
			s.Host(class)
			s.Must(wait.Call(s.Context(), s, "one", d))
		}
	}
	harness.Run(t, scenario(5*time.Minute))
	mustSay(t, problemOf(t, scenario(0)), "the call to waiter/one gets no reply", "waiter/one  handler/enter #1")
	for _, c := range []struct {
		crashes int
		limit   time.Duration
	}{{0, 10 * time.Minute}, {2, 10 * time.Minute}, {3, 3 * time.Hour}} {
		after := func(d time.Duration) harness.Scenario {
			return func(s *harness.Sim) {
				s.Host(class)
				for range c.crashes {
					s.Crash(harness.Kill)
					s.Restart()
				}
				s.Must(wait.Call(s.Context(), s, "one", d))
			}
		}
		harness.Run(t, after(c.limit-time.Second))
		mustSay(t, problemOf(t, after(c.limit+time.Second)), "the call to waiter/one gets no reply in "+c.limit.String())
	}
}

func TestHandlerMayFailTheRun(t *testing.T) {
	said := problemOf(t, func(s *harness.Sim) {
		class := object.Define("judge", func(context.Context, *object.State) (*struct{}, error) { return &struct{}{}, nil })
		judge := object.Handle(class, "judge", func(*struct{}, context.Context, int) (int, error) {
			s.Fatalf("guilty")
			return 0, nil
		})
		s.Host(class)
		s.Must(judge.Call(s.Context(), s, "one", 0))
		s.Fatalf("the run goes on")
	})
	mustSay(t, said, "guilty\n\nTIMELINE", "FAILED  guilty")
}

func TestPanicOfScenarioIsAFailure(t *testing.T) {
	mustSay(t, problemOf(t, func(*harness.Sim) { panic("boom") }), "the scenario panicked: boom", "explore_test.go")
}

func TestSometimesMustBeReached(t *testing.T) {
	said := problemOf(t, func(s *harness.Sim) {
		s.Host(carts)
		s.Sometimes("pigs fly", false)
		s.Sometimes("a crash", s.Crashes() > 0)
	})
	mustSay(t, said, "never reached in", "pigs fly")
	if strings.Contains(said, "a crash,") {
		t.Error("a property that was reached is reported too")
	}
}

// Beyond the budget each kind of point has its share, and the report says how
// much was covered.
func TestBudgetIsShared(t *testing.T) {
	full, err := harness.Explore(cartScenario, harness.Depth(2))
	if err != nil {
		t.Fatal(err)
	}
	if full.Covered != 1 || full.Pairs == 0 || full.InRecovery == 0 {
		t.Errorf("without a bound: %s", full)
	}
	some, err := harness.Explore(cartScenario, harness.Depth(2), harness.Budget(100))
	if err != nil {
		t.Fatal(err)
	}
	want := 100 / float64(full.Schedules)
	if some.Schedules != 100 || some.Covered < want*0.9 || some.Covered > want*1.1 {
		t.Errorf("with 100 of %d schedules: %s", full.Schedules, some)
	}
}

// The same scenario passes the same points on a map and on Pebble, also in the
// runs that crash.
func TestStoresAgree(t *testing.T) {
	for _, p := range []string{
		"v1:seed=0",
		"v1:seed=5",
		"v1:seed=0:crash=commit/after/cart/alice#2,keep=0:crash=sync/before/#3,keep=all",
		"v1:seed=0:crash=ack/after/cart/alice#3,keep=0",
		"v1:seed=0:crash=alarm/dispatch/cart/alice#1,keep=0",
	} {
		onMap := harness.Trace(cartScenario, p, harness.NoTornBatch)
		onPebble := harness.Trace(cartScenario, p, harness.NoTornBatch, harness.PebbleStore())
		if onMap != onPebble {
			t.Errorf("%s: on a map\n%s\non Pebble\n%s", p, onMap, onPebble)
		}
	}
}

func TestReplayOfAnUnknownPoint(t *testing.T) {
	f := harness.Failed(cartScenario, "v1:seed=0:crash=commit/after/cart/nobody#1,keep=0")
	if f == nil {
		t.Fatal("a schedule whose point is never passed must fail")
	}
	mustSay(t, f.Problem, "does not come to the crash of its schedule at commit/after/cart/nobody#1")
}

// A deployment may change the definitions; stored rows stay.
func TestRestartWithOtherCode(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		s.Host(carts)
		ok := s.Retry(func() error {
			_, err := cartAdd.Call(s.Context(), s, "alice", 5, object.Idempotent("1", 0))
			return err
		})
		s.OK(ok)
		s.Restart(harness.WithCode())
		if _, err := cartGet.Call(s.Context(), s, "alice", struct{}{}); !errors.Is(err, object.ErrUnknownClass) && !harness.Unknown(err) {
			s.Errorf("a class that is gone answers: %v", err)
		}
		s.Restart(harness.WithCode(carts))
		s.Advance(time.Hour)
		var closed bool
		if _, err := harness.Stored(s.Store(), carts.ID("alice"), "closed", &closed); err != nil || !closed {
			s.Errorf("the alarm of a class that came back did not fire: %v", err)
		}
	}, harness.OneAlarm)
}

func TestCrashByHand(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		s.Host(carts)
		s.Must(cartAdd.Call(s.Context(), s, "alice", 5))
		if _, err := cartAdd.Call(s.Context(), s, "bob", 1, object.Unconfirmed()); err != nil {
			s.Fatalf("%v", err)
		}
		s.Crash(harness.PowerLoss)
		if _, err := cartGet.Call(s.Context(), s, "alice", struct{}{}); !errors.Is(err, harness.ErrDown) {
			s.Errorf("a call to a process that is down: %v", err)
		}
		s.Advance(time.Hour)
		s.Restart()
		for name, want := range map[string]int{"alice": 5, "bob": 0} {
			if got, err := cartGet.Call(s.Context(), s, name, struct{}{}); got != want || err != nil {
				s.Errorf("%s has %d, %v, want %d", name, got, err, want)
			}
		}
	})
}

// Effects on the outside happen while a process lives, and stay.
func TestWorldSurvives(t *testing.T) {
	scenario := func(s *harness.Sim) {
		payer := object.Define("payer", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
		pay := object.Handle(payer, "pay", func(st *object.State, ctx context.Context, key string) (int, error) {
			if paid, err := st.Storage().GetInto(ctx, "paid", new(bool)); paid || err != nil {
				return 0, err
			}
			s.World().Do("pay/"+key, nil)
			return 1, st.Storage().Put(ctx, "paid", true)
		})
		s.Host(payer)
		_ = s.Retry(func() error { _, err := pay.Call(s.Context(), s, "one", "rent"); return err })
		if n := s.World().Count("pay/rent"); n < 1 || n > 1+s.Crashes() {
			s.Errorf("paid %d times with %d crashes", n, s.Crashes())
		}
	}
	harness.Exhaust(t, scenario, harness.Depth(2), harness.AtMostOncePerCrash("pay/"))
	mustSay(t, problemOf(t, scenario, harness.NoDoubleEffect("pay/")), `the effect "pay/rent" was done twice: at 0s by start 1, and at 0s by start 2`, "effect/after/pay/rent#1")
}

func TestInvariantSeesEachState(t *testing.T) {
	said := problemOf(t, cartScenario, harness.Invariant("alice never has ten", func(store *storage.Store) error {
		var total int
		if _, err := harness.Stored(store, carts.ID("alice"), "total", &total); err != nil || total == 10 {
			return fmt.Errorf("total is %d, %v", total, err)
		}
		return nil
	}))
	mustSay(t, said, "alice never has ten: total is 10", "cart/alice")
}

func TestEventually(t *testing.T) {
	closed := func(s *harness.Sim) func() bool {
		return func() bool {
			var closed bool
			_, err := harness.Stored(s.Store(), carts.ID("alice"), "closed", &closed)
			return err == nil && closed
		}
	}
	scenario := func(within time.Duration) harness.Scenario {
		return func(s *harness.Sim) {
			s.Host(carts)
			s.OK(s.Retry(func() error { _, err := cartAdd.Call(s.Context(), s, "alice", 1); return err }))
			s.Eventually(within, "alice's cart closes", closed(s))
		}
	}
	harness.Exhaust(t, scenario(31*time.Minute))
	mustSay(t, problemOf(t, scenario(29*time.Minute)), `"alice's cart closes" does not come true within 29m0s`)
}

// Random inputs and random crashes, together.
func TestCheck(t *testing.T) {
	harness.Check(t, randomCarts, harness.NoLostAck, harness.OneAlarm)
}

// Clients that come and go, over every schedule that a few seeds give.
func TestClientsUnderAnySchedule(t *testing.T) {
	seeds := rand.New(rand.NewPCG(1, 2))
	for range 5 {
		seed := seeds.Uint64N(1 << 20)
		harness.Exhaust(t, clients, harness.Seed(seed), harness.NoLostAck, harness.OneAlarm)
	}
}

func clients(s *harness.Sim) {
	s.Host(carts)
	for i := range 3 {
		s.Go("client", func() {
			for j := range 3 {
				s.OK(s.Retry(func() error {
					_, err := cartAdd.Call(s.Context(), s, fmt.Sprint("cart", j%2), 1, object.Idempotent(fmt.Sprint(i, j), 0))
					return err
				}))
			}
		})
	}
	s.Advance(time.Minute)
	s.Finally("each add counts once", func() error {
		for name, want := range map[string]int{"cart0": 6, "cart1": 3} {
			var total int
			if _, err := harness.Stored(s.Store(), carts.ID(name), "total", &total); err != nil || total != want {
				return fmt.Errorf("%s has %d, %v, want %d", name, total, err, want)
			}
		}
		return nil
	})
}

// A torn write is part of schedules on Pebble, replays the same, and can be made by
// hand.
func TestTornCrash(t *testing.T) {
	line := "v1:seed=0:crash=sync/before/#2,torn=5"
	first := harness.Trace(cartScenario, line, harness.NoTornBatch, harness.PebbleStore())
	mustSay(t, first, "dies at sync/before/#2", "of 1 unsynced survive")
	if again := harness.Trace(cartScenario, line, harness.NoTornBatch, harness.PebbleStore()); again != first {
		t.Errorf("first\n%s\nthen\n%s", first, again)
	}
	onMap, err := harness.Explore(cartScenario)
	onPebble, err2 := harness.Explore(cartScenario, harness.PebbleStore())
	if err != nil || err2 != nil || onPebble.Schedules <= onMap.Schedules {
		t.Errorf("%d schedules on a map, %d on Pebble: none of them is torn: %v, %v", onMap.Schedules, onPebble.Schedules, err, err2)
	}
	for _, store := range []harness.Option{harness.MapStore(), harness.PebbleStore()} {
		harness.Run(t, func(s *harness.Sim) {
			s.Host(carts)
			s.Must(cartAdd.Call(s.Context(), s, "alice", 5))
			for range 5 {
				_, _ = cartAdd.Call(s.Context(), s, "bob", 1, object.Unconfirmed())
			}
			s.Crash(harness.Torn)
			s.Restart()
			bob, err := cartGet.Call(s.Context(), s, "bob", struct{}{})
			s.Must(bob, err)
			s.Always("some of bob's survive", bob >= 0 && bob <= 5, bob)
			alice, err := cartGet.Call(s.Context(), s, "alice", struct{}{})
			s.Must(alice, err)
			s.Always("alice's survive", alice == 5, alice)
		}, store, harness.NoTornBatch)
	}
}
