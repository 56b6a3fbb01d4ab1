package main

import (
	"fmt"
	"slices"
)

// ending is how an order has ended, as its workflow told.
type ending struct {
	outcome outcome
	charge  int // of a shipped order: the number of the charge on its receipt
}

// results are all that the judge compares.
type results struct {
	n       int            // the orders are 1 to n
	endings map[int]ending // of the orders that have ended, by number
	book    []entry        // of the payment server
	stocks  map[string]stock
	// twoFaced has a sentence for each order that ended in one way, and in another way
	// after a crash.
	twoFaced []string
}

// verdict is how the orders and the book agree.
type verdict struct {
	Wrong    int `json:"wrong"` // orders and items that disagree with the book or the warehouse
	Lost     int `json:"lost"`  // orders that have not ended, or that the book does not know
	Shipped  int `json:"shipped"`
	Refunded int `json:"refunded"`
	Charges  int `json:"charges"` // lines of the book
	Refunds  int `json:"refunds"`

	problems []string // a sentence for each that is wrong or lost
}

func (v *verdict) wrong(format string, args ...any) {
	v.Wrong++
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

func (v *verdict) lost(format string, args ...any) {
	v.Lost++
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// judge compares the orders with the book of the payment server: a shipped order is
// charged exactly once, and a refused one is charged and refunded exactly once.
func judge(r results) verdict {
	var v verdict
	byOrder := make(map[int][]entry)
	for _, e := range r.book {
		byOrder[e.Order] = append(byOrder[e.Order], e)
		if e.Kind == charge {
			v.Charges++
		} else {
			v.Refunds++
		}
		if e.Order < 1 || e.Order > r.n {
			v.wrong("line %d of the book is a %s of order %d, which was never placed", e.Line, e.Kind, e.Order)
		}
	}
	for number := 1; number <= r.n; number++ {
		v.order(orderOf(number), r.endings, byOrder[number])
	}
	v.warehouse(r)
	for _, sentence := range r.twoFaced {
		v.wrong("%s", sentence)
	}
	return v
}

// order judges one order. It is wrong or lost at most once.
func (v *verdict) order(o order, endings map[int]ending, lines []entry) {
	end, ended := endings[o.Number]
	charges := slices.DeleteFunc(slices.Clone(lines), func(e entry) bool { return e.Kind != charge })
	refunds := slices.DeleteFunc(slices.Clone(lines), func(e entry) bool { return e.Kind != refund })
	switch {
	case !ended:
		v.lost("order %d has not ended; the book has %d charges and %d refunds of it", o.Number, len(charges), len(refunds))
		return
	case end.outcome == shipped:
		v.Shipped++
	default:
		v.Refunded++
	}
	owed := 0
	if end.outcome == refunded {
		owed = 1
	}
	switch {
	case len(charges) == 0:
		v.lost("order %d has ended as %s; it was never charged", o.Number, end.outcome)
	case end.outcome != o.wants():
		v.wrong("order %d has ended as %s; it had to be %s", o.Number, end.outcome, o.wants())
	case len(charges) > 1:
		v.wrong("order %d was charged %d times", o.Number, len(charges))
	case len(refunds) != owed:
		v.wrong("order %d has ended as %s; the book has %d refunds of it", o.Number, end.outcome, len(refunds))
	case charges[0].Cents != o.Cents:
		v.wrong("order %d was charged %d cents; it costs %d", o.Number, charges[0].Cents, o.Cents)
	case end.outcome == shipped && charges[0].Line != end.charge:
		v.wrong("order %d has a receipt of charge %d; the book has charge %d", o.Number, end.charge, charges[0].Line)
	case owed == 1 && (refunds[0].Of != charges[0].Line || refunds[0].Cents != o.Cents):
		v.wrong("order %d was charged in line %d; its refund is of line %d", o.Number, charges[0].Line, refunds[0].Of)
	}
}

// warehouse judges the stock of each item: no piece is held any more, and as many have
// left as orders were shipped.
func (v *verdict) warehouse(r results) {
	want := make(map[string]int)
	for number, end := range r.endings {
		if end.outcome == shipped {
			want[orderOf(number).Item]++
		}
	}
	for i := range items {
		item := itemName(i)
		if got := r.stocks[item]; got != (stock{Shipped: want[item]}) {
			v.wrong("of %s %d pieces were shipped and %d are held; %d orders were shipped", item, got.Shipped, got.Held, want[item])
		}
	}
}
