package judge

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
)

// toldCall is a call of counter "c" with its times. Without an answer its end is never.
type toldCall struct {
	verb         Verb
	began, ended int64
	n            uint64
}

// orderOf reads the lines of calls in the order of their times.
func orderOf(calls []toldCall) *Order {
	var lines []Line
	for i, c := range calls {
		op := uint64(i + 1)
		lines = append(lines, Line{Kind: Call, Op: op, Verb: c.verb, On: "c", At: c.began})
		if c.ended != never {
			lines = append(lines, Line{Kind: Ack, Op: op, N: c.n, At: c.ended})
		}
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return int(a.At - b.At) })
	o := NewOrder()
	for _, l := range lines {
		o.Read(l)
	}
	return o
}

// Each way in which answers fit no order is found, and what fits one is not.
func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		calls []toldCall
		fits  bool
	}{
		"one after the other":        {[]toldCall{{Add, 1, 2, 1}, {Read, 3, 4, 1}, {Add, 5, 6, 2}}, true},
		"swapped":                    {[]toldCall{{Add, 1, 2, 2}, {Add, 3, 4, 1}}, false},
		"side by side":               {[]toldCall{{Add, 1, 4, 2}, {Add, 2, 3, 1}}, true},
		"stale read":                 {[]toldCall{{Add, 1, 2, 1}, {Add, 3, 4, 2}, {Read, 5, 6, 1}}, false},
		"read beside the next add":   {[]toldCall{{Add, 1, 2, 1}, {Add, 3, 6, 2}, {Read, 4, 5, 1}}, true},
		"read ahead":                 {[]toldCall{{Read, 1, 2, 1}, {Add, 3, 4, 1}}, false},
		"reads that go back":         {[]toldCall{{Add, 1, 9, 1}, {Read, 2, 3, 1}, {Read, 4, 5, 0}}, false},
		"a read before all":          {[]toldCall{{Read, 1, 2, 0}, {Add, 3, 4, 1}}, true},
		"one count twice":            {[]toldCall{{Add, 1, 2, 1}, {Add, 1, 2, 1}}, false},
		"a count of nobody":          {[]toldCall{{Add, 1, 2, 2}}, false},
		"a count of an open call":    {[]toldCall{{Add, 1, never, 0}, {Add, 2, 3, 2}}, true},
		"an open call too late":      {[]toldCall{{Add, 4, never, 0}, {Add, 2, 3, 2}}, false},
		"an open call that is not":   {[]toldCall{{Add, 1, never, 0}, {Add, 2, 3, 1}, {Read, 4, 5, 1}}, true},
		"an open call and two gaps":  {[]toldCall{{Add, 1, never, 0}, {Add, 2, 3, 3}}, false},
		"an open call after a read":  {[]toldCall{{Add, 1, never, 0}, {Read, 2, 3, 0}, {Read, 4, 5, 1}}, true},
		"a count that is taken back": {[]toldCall{{Add, 1, never, 0}, {Read, 2, 3, 1}, {Read, 4, 5, 0}}, false},
	} {
		if err := orderOf(c.calls).Check(); (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Calls with one key are one call, from the first to its first answer, and a refused call counts nothing.
func TestOrderOfKeysAndRefusals(t *testing.T) {
	o := NewOrder()
	for _, l := range []Line{
		{Kind: Call, Op: 1, Verb: Once, On: "c", Key: "k", At: 1},
		{Kind: Call, Op: 2, Verb: Add, On: "c", At: 2},
		{Kind: Ack, Op: 2, N: 2, At: 3},
		{Kind: Call, Op: 3, Verb: Once, On: "c", Key: "k", At: 4},
		{Kind: Ack, Op: 3, N: 1, At: 5},
		{Kind: Call, Op: 4, Verb: Add, On: "c", At: 6},
		{Kind: Refused, Op: 4, At: 7},
		{Kind: Call, Op: 5, Verb: Read, On: "c", At: 8},
		{Kind: Ack, Op: 5, N: 2, At: 9},
	} {
		o.Read(l)
	}
	if err := o.Check(); err != nil || o.Calls() != 3 {
		t.Errorf("%d calls: %v", o.Calls(), err)
	}
	o.Read(Line{Kind: Call, Op: 6, Verb: Add, On: "c", At: 10})
	o.Read(Line{Kind: Ack, Op: 6, N: 4, At: 11})
	if o.Check() == nil {
		t.Error("the count 3 was taken by a refused call")
	}
}

// The check agrees with porcupine on small histories.
func TestOrderAgreesWithPorcupine(t *testing.T) {
	type in struct{ read, open bool }
	model := (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{uint64(0)} },
		Step: func(state, input, output any) []any {
			n, i, told := state.(uint64), input.(in), output.(uint64)
			switch {
			case i.open && i.read:
				return []any{n}
			case i.open:
				return []any{n, n + 1}
			case i.read && n == told:
				return []any{n}
			case !i.read && n+1 == told:
				return []any{n + 1}
			}
			return nil
		},
	}).ToModel()
	fits, fitsNot := 0, 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		calls := make([]toldCall, 2+r.IntN(5))
		var history []porcupine.Operation
		for i := range calls {
			c := toldCall{Add, r.Int64N(12), 0, 1 + r.Uint64N(4)}
			c.ended = c.began + 1 + r.Int64N(8)
			switch r.IntN(4) {
			case 0:
				c.verb, c.n = Read, c.n-1
			case 1:
				c.ended = never
			}
			// Times of different calls differ, because at equal ones it is a matter of taste which comes first.
			c.began = c.began*16 + int64(2*i)
			if c.ended != never {
				c.ended = c.ended*16 + int64(2*i) + 1
			}
			calls[i] = c
			history = append(history, porcupine.Operation{ClientId: i, Input: in{c.verb == Read, c.ended == never}, Call: c.began, Output: c.n, Return: c.ended})
		}
		want := porcupine.CheckOperations(model, history)
		if got := orderOf(calls).Check(); (got == nil) != want {
			t.Fatalf("seed %d: porcupine says %t, and the check %v of %+v", seed, want, got, calls)
		}
		if want {
			fits++
		} else {
			fitsNot++
		}
	}
	if fits < 100 || fitsNot < 100 {
		t.Errorf("%d histories fit an order and %d do not", fits, fitsNot)
	}
}
