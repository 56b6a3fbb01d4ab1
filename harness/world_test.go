package harness_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// payer asks a bank for one charge from its alarm, which is repeated until there is an answer.
type payer struct {
	st     *object.State
	charge func(attempt int) (int, error)
}

func (p *payer) Alarm(ctx context.Context, info object.AlarmInfo) error {
	receipt, err := p.charge(info.Attempt)
	if err != nil {
		return err
	}
	return p.st.Storage().Put(ctx, "receipt", receipt)
}

// rent has a payer pay, and compares its receipt with the first one that the bank gave.
func rent(charge func(s *harness.Sim, attempt int, receipts *int) (int, error)) harness.Scenario {
	return func(s *harness.Sim) {
		receipts := 0
		class := object.Define("payer", func(_ context.Context, st *object.State) (*payer, error) {
			return &payer{st, func(attempt int) (int, error) { return charge(s, attempt, &receipts) }}, nil
		})
		on := object.Handle(class, "on", func(p *payer, ctx context.Context, _ struct{}) (struct{}, error) {
			return struct{}{}, p.st.SetAlarm(ctx, p.st.Now())
		})
		s.Host(class)
		s.OK(s.Retry(func() error { _, err := on.Call(s.Context(), s, "anna", struct{}{}); return err }))
		s.Advance(time.Hour)
		s.Finally("the receipt is that of the first charge", func() error {
			var receipt int
			if ok, err := harness.Stored(s.Store(), class.ID("anna"), "receipt", &receipt); err != nil || !ok || receipt != 1 {
				return errors.Join(err, errors.New("another receipt"))
			}
			return nil
		})
	}
}

// sameKey charges under one key, newKey under one for each attempt.
func sameKey(s *harness.Sim, _ int, receipts *int) (int, error) { return chargeUnder(s, "k", receipts) }

func newKey(s *harness.Sim, attempt int, receipts *int) (int, error) {
	return chargeUnder(s, strings.Repeat("k", attempt), receipts)
}

func chargeUnder(s *harness.Sim, key string, receipts *int) (int, error) {
	return harness.DoOnce(s.World(), "charge/rent", key, func() int {
		*receipts++
		return *receipts
	})
}

// Proves A4. An effect under one key is done once, and each repeat gets the first answer: after a crash,
// after a lost answer, and beside a request that a dead process has sent. Without the key it is
// found, because a lost answer is repeated under another one.
func TestDoOnce(t *testing.T) {
	once := harness.NoDoubleEffect("charge/")
	for name, c := range map[string]struct {
		store harness.Option
		depth int
	}{"map": {harness.MapStore(), 2}, "pebble": {harness.PebbleStore(), 1}} {
		t.Run(name, func(t *testing.T) {
			report, err := harness.Explore(rent(sameKey), c.store, once, harness.Depth(c.depth), harness.AllowFaults(harness.Faults{LostAnswer: 1, Zombie: 1}))
			if err != nil || report.Faults["lostanswer"] == 0 || report.Faults["zombie"] == 0 || report.ByName["effect/after"] != 1 {
				t.Errorf("%v, %s", err, report)
			}
		})
	}
	harness.Exhaust(t, rent(newKey), harness.Budget(1), once)
	said := problemOf(t, rent(newKey), once, harness.AllowFaults(harness.Faults{LostAnswer: 1}))
	mustSay(t, said, `the effect "charge/rent" was done twice`, "lostanswer=effect/answer/charge/rent#1", "-- FAULT: lostanswer=effect/answer/charge/rent#1")
}

// Proves A4. A lost answer is the error of an effect that was done, as often as the faults allow.
func TestLostAnswer(t *testing.T) {
	for allowed := range 3 {
		lost := 0
		harness.Run(t, func(s *harness.Sim) {
			class := object.Define("client", func(_ context.Context, st *object.State) (*object.State, error) { return st, nil })
			send := object.Handle(class, "send", func(_ *object.State, _ context.Context, _ int) (int, error) {
				for range 100 {
					before := s.World().Count("mail")
					err := s.World().Do("mail", nil)
					s.Always("done", s.World().Count("mail") == before+1)
					if err != nil {
						s.Always("the error", errors.Is(err, harness.ErrLostAnswer), err)
						lost++
					}
				}
				return 0, nil
			})
			s.Host(class)
			s.Must(send.Call(s.Context(), s, "one", 0))
		}, harness.Seed(1), harness.AllowFaults(harness.Faults{LostAnswer: allowed}))
		if lost != allowed {
			t.Errorf("%d answers are lost, %d are allowed", lost, allowed)
		}
	}
}

// Proves A4. The scenario's own effects have no process, and meet no fault. Keys of different effects are
// apart, an effect without an answer has the zero one, and an answer of another type ends the run.
func TestDoOnceOfTheScenario(t *testing.T) {
	said := problemOf(t, func(s *harness.Sim) {
		for n := range 3 {
			got, err := harness.DoOnce(s.World(), "a", "k", func() int { return n })
			s.Always("the first answer", got == 0 && err == nil, got, err)
		}
		other, err := harness.DoOnce(s.World(), "b", "k", func() string { return "b" })
		s.Always("another effect", other == "b" && err == nil, other, err)
		none, err := harness.DoOnce[[]int](s.World(), "c", "k", nil)
		s.Always("no answer", none == nil && err == nil, none, err)
		again, err := harness.DoOnce[[]int](s.World(), "c", "k", nil)
		s.Always("no answer again", again == nil && err == nil, again, err)
		if w := s.World(); w.Count("a") != 1 || w.Count("b") != 1 || w.Count("c") != 1 || len(w.Log()) != 3 {
			s.Errorf("done %v", w.Log())
		}
		_, _ = harness.DoOnce(s.World(), "a", "k", func() string { return "" })
		s.Errorf("an answer of another type is taken")
	}, harness.AllowFaults(harness.Faults{LostAnswer: 5, Zombie: 1}))
	mustSay(t, said, `DoOnce: the effect "a" was answered by a *int under the key "k"`)
}

func TestFewerThanNoLostAnswers(t *testing.T) {
	mustSay(t, problemOf(t, func(s *harness.Sim) {}, harness.AllowFaults(harness.Faults{LostAnswer: -1})), "has a negative field")
}
