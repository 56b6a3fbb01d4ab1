package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
)

// simBank is a payment server of a simulation. Its book survives the crashes of the worker, and
// lostAnswers loses an answer.
type simBank struct {
	s     *harness.Sim
	naive bool // it takes each request for a new one
	lines []entry
}

// lostAnswers has one request be done, and its answer get lost, at each place in turn.
var lostAnswers = harness.AllowFaults(harness.Faults{LostAnswer: 1})

// request adds an entry under a key, unless the book has it.
func (b *simBank) request(e entry) (line int, err error) {
	write := func() int {
		e.Line = len(b.lines) + 1
		b.lines = append(b.lines, e)
		return e.Line
	}
	effect := fmt.Sprintf("%s/%d", e.Kind, e.Order)
	if b.naive {
		err = b.s.World().Do(effect, func() { line = write() })
		return line, err
	}
	return harness.DoOnce(b.s.World(), effect, e.Key, write)
}

func (b *simBank) charge(_ context.Context, key string, o order) (int, error) {
	return b.request(entry{Kind: charge, Key: key, Order: o.Number, Cents: o.Cents})
}

func (b *simBank) refund(_ context.Context, key string, o order, number int) error {
	_, err := b.request(entry{Kind: refund, Key: key, Order: o.Number, Cents: o.Cents, Of: number})
	return err
}

// shopping is a scenario in which some orders are placed, and each runs to its end.
func shopping(numbers ...int) harness.Scenario { return shoppingAt(false, numbers...) }

func shoppingAt(naive bool, numbers ...int) harness.Scenario {
	return func(s *harness.Sim) {
		b := &simBank{s: s, naive: naive}
		shop := newShop(b, time.Hour, func(int) {})
		shop.open(s)
		s.Host(shop.definitions()...)
		for _, number := range numbers {
			s.OK(s.Retry(func() error { return shop.place(s.Context(), s, orderOf(number)) }))
		}
		s.Advance(2 * time.Hour)
		s.Finally("each order is charged once, or charged and refunded once", func() error {
			return judgeSim(s, shop, b, numbers)
		})
	}
}

// judgeSim asks each order how it has ended, and gives the answers to the judge. The orders
// have different items, so a shelf has one order.
func judgeSim(s *harness.Sim, shop *shop, b *simBank, numbers []int) error {
	var v verdict
	for _, number := range numbers {
		o := orderOf(number)
		end, err := shop.wait(s.Context(), s, o)
		if err != nil {
			return err
		}
		var lines []entry
		for _, e := range b.lines {
			if e.Order == number {
				lines = append(lines, e)
			}
		}
		v.order(o, map[int]ending{number: end}, lines)
		want := stock{}
		if !o.refused() {
			want.Shipped = 1
		}
		got, err := count.Call(s.Context(), s, o.Item, struct{}{})
		if err != nil || got != want {
			return fmt.Errorf("the stock of %s is %+v, %v; want %+v", o.Item, got, err, want)
		}
	}
	if len(v.problems) > 0 {
		return errors.New(v.problems[0])
	}
	return nil
}

// promises are the checks of each scenario, beside the judge.
var promises = []harness.Option{
	harness.NoLostAck, harness.NoTornBatch, harness.OneAlarm, harness.NeverOrphaned, harness.NoStuck, harness.OneEnd,
}

// singly are the checks of each scenario with a bank that knows keys: each order is charged
// once, and refunded once at most, also if an answer of the bank gets lost.
var singly = append(promises[:len(promises):len(promises)], lostAnswers, harness.NoDoubleEffect("charge/"), harness.NoDoubleEffect("refund/"))

// An order that must be approved is charged once, at whichever point the worker is killed.
func TestOrderAfterACrashAtEveryPoint(t *testing.T) { crashes.Try(t, shopping(6), singly...) }

// An order that the warehouse refuses is charged once and refunded once.
func TestRefusedOrderAfterACrashAtEveryPoint(t *testing.T) {
	crashes.Try(t, shopping(21), singly...)
}

// Orders of several kinds run at the same time.
func TestOrdersTogetherAfterACrashAtEveryPoint(t *testing.T) {
	crashes.Try(t, shopping(1, 6, 7), append(singly, crashes.Budget(300))...)
}

// A bank that knows no keys charges twice for a crash between a charge and its record. The
// harness finds the crash, and the judge the second charge.
func TestBankWithoutKeysIsFound(t *testing.T) {
	naive := shoppingAt(true, 1)
	harness.Run(t, naive, promises...) // it does not show without a crash
	_, err := harness.Explore(naive, promises...)
	var found *harness.Failure
	if !errors.As(err, &found) || !strings.Contains(found.Problem, "order 1 was charged 2 times") {
		t.Errorf("a bank without keys: %v", err)
	}
}
