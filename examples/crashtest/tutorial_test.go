package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// docs/TESTING.md shows code of this file. A test of internal/lint compares the two.

func crashDraft(t testing.TB) {
	harness.Exhaust(t, lunch(newDraft), harness.NoDoubleEffect("charge/"))
}

func replayDraft(t testing.TB) {
	harness.Replay(t, lunch(newDraft), "v1:seed=0:crash=commit/after/invoice/lunch#1,keep=1", harness.NoDoubleEffect("charge/"))
}

// recorder is a testing.TB for tests that must fail. It keeps their messages.
type recorder struct {
	testing.TB
	said string
}

func (*recorder) Helper()             {}
func (*recorder) Logf(string, ...any) {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestTutorialFindsTheFirstBug(t *testing.T) {
	for name, test := range map[string]func(testing.TB){"crash": crashDraft, "replay": replayDraft} {
		var r recorder
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			test(&r)
		}()
		<-ended
		if !strings.Contains(r.said, "a day and a half later nothing is charged") {
			t.Errorf("%s: found %q", name, r.said)
		}
	}
}

// once charges a card, unless the World says that it was charged before.
func once(s *harness.Sim) Charge {
	return func(_ context.Context, name string, _ int) error {
		if s.World().Count("charge/"+name) > 0 {
			return nil
		}
		s.World().Do("charge/"+name, nil) // where the bank takes the money
		return nil
	}
}

func TestCheckersOfTheTutorial(t *testing.T) {
	scenario := lunch(NewInvoices)
	harness.Exhaust(t, scenario, harness.NoLostAck)
	harness.Exhaust(t, scenario, harness.NoSharedMemory)
	harness.Exhaust(t, scenario, harness.NoCallBeforeCommit)
	harness.Exhaust(t, scenario, harness.NoTornBatch, harness.PebbleStore())
	harness.Exhaust(t, scenario, harness.OneAlarm)
	harness.Exhaust(t, scenario, harness.NeverOrphaned)
	harness.Exhaust(t, scenario, harness.RecoversWithin(time.Minute))
	harness.Exhaust(t, scenario, harness.AllowFaults(harness.Faults{FailCommit: 1, DupAlarm: 1, LostAnswer: 1}), harness.NoLostAck)
	harness.Exhaust(t, scenario, harness.Invariant("sane", func(store *storage.Store) error {
		var row invoiceRow
		ok, err := harness.Stored(store, storage.ID{Class: "invoice", Name: "lunch"}, "invoice", &row)
		if ok && row.Cents <= 0 {
			return fmt.Errorf("an invoice over %d cents", row.Cents)
		}
		return err
	}))
	harness.Exhaust(t, scenario, harness.StateMatches(func(s *harness.Sim) error {
		if n := s.World().Count("charge/lunch"); n != 1 {
			return fmt.Errorf("charged %d times", n)
		}
		return nil
	}))
}

// issued issues one invoice, which is charged in the given way.
func issued(charge func(*harness.Sim) Charge) harness.Scenario {
	return func(s *harness.Sim) {
		invoices := NewInvoices(charge(s))
		s.Host(invoices)
		s.OK(s.Retry(func() error {
			_, err := invoices.Issue.Call(s.Context(), s, "lunch", Bill{Cents: 1250, In: time.Hour})
			return err
		}))
		s.Advance(2 * time.Hour)
	}
}

func TestEffectsOfTheTutorial(t *testing.T) {
	scenario := issued(once)
	harness.Exhaust(t, scenario, harness.NoDoubleEffect("charge/"))

	scenario = issued(func(s *harness.Sim) Charge {
		return func(_ context.Context, name string, _ int) error {
			s.World().Do("mail/"+name, nil)
			return nil
		}
	})
	harness.Exhaust(t, scenario, harness.AtMostOncePerCrash("mail/"))
}

// carts are counters.
var (
	carts = object.Define("till", func(ctx context.Context, st *object.State) (*till, error) {
		c := &till{st: st}
		_, err := st.Storage().GetInto(ctx, "total", &c.total)
		return c, err
	})
	add = object.Handle(carts, "add", (*till).add)
)

type till struct {
	st    *object.State
	total int
}

func (c *till) add(ctx context.Context, n int) (int, error) {
	c.total += n
	return c.total, c.st.Storage().Put(ctx, "total", c.total)
}

func TestHistoriesOfTheTutorial(t *testing.T) {
	scenario := func(s *harness.Sim) {
		s.Host(carts)
		for range 2 {
			_, err := harness.Record(s, "till/1", 5, func() (int, error) { return add.Call(s.Context(), s, "1", 5) })
			s.OK(err)
		}
	}
	harness.Exhaust(t, scenario, harness.Linearizable(func(total, n int) (next, answer int) { return total + n, total + n }))
}

func TestRandomSchedulesOfTheTutorial(t *testing.T) {
	harness.Check(t, func(s *harness.Sim, rt *rapid.T) {
		s.Host(carts)
		n := rapid.IntRange(1, 9).Draw(rt, "n")
		s.Must(add.Call(s.Context(), s, "alice", n))
	}, harness.NoLostAck, harness.OneAlarm)
}

func FuzzInvoices(f *testing.F) {
	harness.Fuzz(f, lunch(NewInvoices), harness.NoDoubleEffect("charge/"))
}
