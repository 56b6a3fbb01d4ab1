package harness_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// faultBug is a scenario with code that cannot live with one kind of fault.
type faultBug struct {
	name     string
	schedule harness.Faults
	scenario harness.Scenario
	want     string // in the failure
	where    string // in its schedule
}

var faultBugs = []faultBug{
	{"goes on after a failed commit", harness.Faults{FailCommit: 1}, deafProgram,
		"acknowledged after the store had failed", "failcommit=disk/"},
	{"takes silence for death", harness.Faults{Slow: time.Minute}, impatientLease,
		"two holders", "slow="},
	{"measures with the wall clock", harness.Faults{ClockJump: time.Hour}, wallTimer,
		"too early", "clockjump="},
	{"counts deliveries", harness.Faults{DupAlarm: 1}, countsRings,
		`"rings once" does not hold`, "dupalarm=alarm/twice/"},
	{"trusts that the dead are silent", harness.Faults{Zombie: 1}, lastWriterWins,
		"an old effect overwrote a new one", "zombie=effect/late/"},
	{"takes an error for a refusal", harness.Faults{LostAnswer: 1}, refusesOnError,
		"refused, and yet charged", "lostanswer=effect/answer/charge/rent#1"},
}

// Each kind of fault finds the bug that it is for, under Exhaust and under Check,
// where nothing else is wrong without it; and the line of the failure shows it
// again.
func TestFaultsFindBugs(t *testing.T) {
	for _, b := range faultBugs {
		t.Run(strings.ReplaceAll(b.name, " ", "_"), func(t *testing.T) {
			if _, err := harness.Explore(b.scenario); err != nil {
				t.Fatalf("without faults: %v", err)
			}
			_, err := harness.Explore(b.scenario, harness.AllowFaults(b.schedule))
			var f *harness.Failure
			if !errors.As(err, &f) || !strings.Contains(f.Problem, b.want) || !strings.Contains(f.Schedule, b.where) {
				t.Fatalf("with %+v: %v", b.schedule, err)
			}
			again := harness.Failed(b.scenario, f.Schedule, harness.AllowFaults(b.schedule))
			if again == nil || again.Error() != f.Error() {
				t.Errorf("the replay of %s says %v, the first run said %v", f.Schedule, again, f)
			}
			mustSay(t, f.Error(), "FAULT")
			said := checkFails(t, func(s *harness.Sim, _ *rapid.T) { b.scenario(s) }, harness.AllowFaults(b.schedule))
			mustSay(t, said, b.want, b.where)
			if strings.Contains(said, ":crash=") {
				t.Errorf("a crash that does not matter has not shrunk away:\n%s", said)
			}
		})
	}
}

// deafProgram answers although its store has failed.
func deafProgram(s *harness.Sim) {
	var store *storage.Store
	s.Boot(func(_ context.Context, p *harness.Process) (err error) {
		store, err = storage.Open(p.Store)
		return err
	})
	for range 3 {
		_ = s.Call("deaf", func(context.Context) error {
			var b storage.Batch
			b.SetMeta("x", []byte("y"))
			if t, err := store.Commit(&b); err == nil {
				_ = store.WaitDurable(t)
			}
			return nil
		})
	}
}

// impatientLease gives the lease away 10 s after the last sign of life of its holder.
func impatientLease(s *harness.Sim) {
	holding := 0
	hold := func(ctx context.Context, p *harness.Process) {
		holding++
		s.Always("one holder", holding == 1, "two holders")
		p.Seams.At("work/step", "lease")
		holding--
	}
	var p *harness.Process
	s.Boot(func(_ context.Context, now *harness.Process) error { p, holding = now, 0; return nil })
	s.Go("first", func() { _ = s.Call("first", func(ctx context.Context) error { hold(ctx, p); return nil }) })
	s.Advance(10 * time.Second)
	_ = s.Call("second", func(ctx context.Context) error { hold(ctx, p); return nil })
}

// wallTimer waits for a minute by the wall clock alone.
func wallTimer(s *harness.Sim) {
	s.Boot(func(_ context.Context, p *harness.Process) error {
		began, at := s.Now(), p.Seams.Clock.Now()
		p.Seams.Executor.Go("egg timer", func() {
			for p.Seams.Clock.Now().Sub(at) < time.Minute {
				p.Seams.At("work/look", "egg")
				if p.Seams.Sleep(context.Background(), time.Second) != nil {
					return
				}
			}
			s.Always("the egg is done", s.Now().Sub(began) >= time.Minute, "too early")
		})
		return nil
	})
	s.Advance(2 * time.Minute)
}

// countsRings counts each delivery of its alarm: it looks at the constructor and the
// handler, but not at the stored rows.
func countsRings(s *harness.Sim) {
	deliveries := 0
	s.Host(kettles)
	s.OK(s.Retry(func() error { _, err := putOn.Call(s.Context(), s, "k", struct{}{}); return err }))
	s.Advance(time.Hour)
	deliveries = s.Passed("alarm/dispatch", "kettle/k")
	s.Always("rings once", deliveries <= 1+s.Crashes(), fmt.Sprintf("rang %d times", deliveries))
}

// lastWriterWins writes its generation to the outside, which takes any.
func lastWriterWins(s *harness.Sim) {
	outside := 0
	class := object.Define("writer", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	write := object.Handle(class, "write", func(st *object.State, ctx context.Context, _ struct{}) (int, error) {
		var generation int
		if _, err := st.Storage().GetInto(ctx, "generation", &generation); err != nil {
			return 0, err
		}
		generation++
		if err := st.Storage().Put(ctx, "generation", generation); err != nil {
			return 0, err
		}
		if err := st.Sync(ctx); err != nil {
			return 0, err
		}
		s.World().Do("write", func() {
			s.Always("in order", generation > outside, "an old effect overwrote a new one")
			outside = generation
		})
		return generation, nil
	})
	s.Host(class)
	for range 2 {
		s.OK(s.Retry(func() error { _, err := write.Call(s.Context(), s, "one", struct{}{}); return err }))
	}
}

// refusesOnError charges an account, and stores each error of the bank as a refusal.
func refusesOnError(s *harness.Sim) {
	class := object.Define("tenant", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
	pay := object.Handle(class, "pay", func(st *object.State, ctx context.Context, _ struct{}) (outcome string, err error) {
		if _, err := st.Storage().GetInto(ctx, "outcome", &outcome); err != nil || outcome != "" {
			return outcome, err
		}
		outcome = "paid"
		if err := s.World().Do("charge/rent", nil); err != nil {
			outcome = "refused"
		}
		return outcome, st.Storage().Put(ctx, "outcome", outcome)
	})
	s.Host(class)
	s.OK(s.Retry(func() error { _, err := pay.Call(s.Context(), s, "anna", struct{}{}); return err }))
	s.Finally("the rent", func() error {
		outcome, err := pay.Call(s.Context(), s, "anna", struct{}{})
		if outcome == "refused" && s.World().Count("charge/rent") > 0 {
			return errors.New("refused, and yet charged")
		}
		return err
	})
}

// Only a lost answer finds code that takes an error for a refusal: all other faults together,
// with each crash, find nothing.
func TestOnlyALostAnswerFindsARefusal(t *testing.T) {
	others := allFaults
	others.LostAnswer, others.ClockJump, others.LateMessage, others.DupMessage = 0, time.Hour, 1, 1
	report, err := harness.Explore(refusesOnError, harness.AllowFaults(others), harness.Depth(2))
	if err != nil || report.Faults["zombie"] == 0 || report.Faults["failcommit"] == 0 || report.Faults["slow"] == 0 {
		t.Errorf("%v, %s", err, report)
	}
}

// checked is a testing.TB for a Check that must fail. It keeps the report.
type checked struct {
	testing.TB
	said   strings.Builder
	failed bool
}

func (c *checked) Helper()                   {}
func (c *checked) Name() string              { return "checked" }
func (c *checked) Failed() bool              { return c.failed }
func (c *checked) Log(args ...any)           { fmt.Fprintln(&c.said, args...) }
func (c *checked) Logf(f string, a ...any)   { fmt.Fprintf(&c.said, f+"\n", a...) }
func (c *checked) Errorf(f string, a ...any) { c.failed = true; c.Logf(f, a...) }
func (c *checked) FailNow()                  { panic(c) }

// checkFails is the message of Check about a property that does not hold.
func checkFails(t *testing.T, property func(*harness.Sim, *rapid.T), opts ...harness.Option) string {
	t.Helper()
	for name, value := range map[string]string{
		"rapid.nofailfile": "true",
		"rapid.checks":     "5000", // it ends at the first that fails, long before
		"rapid.seed":       "1",    // shrinking ends at a least failure, not always at the same
	} {
		was := flag.Lookup(name).Value.String()
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = flag.Set(name, was) }()
	}
	c := &checked{TB: t}
	func() {
		defer func() {
			if v := recover(); v != nil && v != any(c) {
				panic(v)
			}
		}()
		harness.Check(c, property, opts...)
	}()
	if !c.failed {
		t.Error("Check finds nothing")
	}
	return c.said.String()
}
