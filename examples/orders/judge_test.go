package main

import (
	"slices"
	"strings"
	"testing"
)

// right are results in which nothing is wrong: 14 orders, of which 7 and 14 were refunded.
func right() results {
	r := results{n: 14, endings: make(map[int]ending), stocks: make(map[string]stock)}
	for number := 1; number <= r.n; number++ {
		o := orderOf(number)
		r.book = append(r.book, entry{Line: len(r.book) + 1, Kind: charge, Order: number, Cents: o.Cents})
		r.endings[number] = ending{o.wants(), 0}
		if !o.refused() {
			r.endings[number] = ending{shipped, len(r.book)}
			r.stocks[o.Item] = stock{Shipped: r.stocks[o.Item].Shipped + 1}
		}
	}
	for _, number := range []int{7, 14} {
		o := orderOf(number)
		r.book = append(r.book, entry{Line: len(r.book) + 1, Kind: refund, Order: number, Cents: o.Cents, Of: number})
	}
	return r
}

func TestJudgeFindsNothingWrong(t *testing.T) {
	v := judge(right())
	if v.Wrong != 0 || v.Lost != 0 || len(v.problems) > 0 || v.Shipped != 12 || v.Refunded != 2 || v.Charges != 14 || v.Refunds != 2 {
		t.Errorf("the verdict is %+v", v)
	}
}

// The judge finds each mistake that is planted, and says which.
func TestJudgeFindsPlantedMistakes(t *testing.T) {
	add := func(e entry) func(*results) {
		return func(r *results) { e.Line = len(r.book) + 1; r.book = append(r.book, e) }
	}
	remove := func(k kind, number int) func(*results) {
		return func(r *results) {
			r.book = slices.DeleteFunc(r.book, func(e entry) bool { return e.Kind == k && e.Order == number })
		}
	}
	for name, c := range map[string]struct {
		plant       func(*results)
		wrong, lost int
		says        string
	}{
		"charged twice":              {add(entry{Kind: charge, Order: 3, Cents: orderOf(3).Cents}), 1, 0, "order 3 was charged 2 times"},
		"charged twice and refunded": {add(entry{Kind: charge, Order: 7, Cents: orderOf(7).Cents}), 1, 0, "order 7 was charged 2 times"},
		"never charged":              {remove(charge, 3), 0, 1, "order 3 has ended as shipped; it was never charged"},
		"not ended": {func(r *results) {
			delete(r.endings, 7)
		}, 0, 1, "order 7 has not ended; the book has 1 charges and 1 refunds of it"},
		"lost with its charge": {func(r *results) {
			delete(r.endings, 7)
			remove(charge, 7)(r)
			remove(refund, 7)(r)
		}, 0, 1, "order 7 has not ended"},
		"not refunded":         {remove(refund, 7), 1, 0, "order 7 has ended as refunded; the book has 0 refunds of it"},
		"refunded twice":       {add(entry{Kind: refund, Order: 7, Cents: orderOf(7).Cents, Of: 7}), 1, 0, "order 7 has ended as refunded; the book has 2 refunds of it"},
		"shipped and refunded": {add(entry{Kind: refund, Order: 3, Cents: orderOf(3).Cents, Of: 3}), 1, 0, "order 3 has ended as shipped; the book has 1 refunds of it"},
		"other price":          {func(r *results) { r.book[2].Cents++ }, 1, 0, "order 3 was charged 11601 cents; it costs 11600"},
		"other refund":         {func(r *results) { r.book[14].Of = 6 }, 1, 0, "its refund is of line 6"},
		"smaller refund":       {func(r *results) { r.book[14].Cents-- }, 1, 0, "order 7 was charged in line 7"},
		"other receipt":        {func(r *results) { r.endings[3] = ending{shipped, 4} }, 1, 0, "order 3 has a receipt of charge 4; the book has charge 3"},
		"order that was never placed": {
			add(entry{Kind: charge, Order: 15, Cents: 1}), 1, 0, "line 17 of the book is a charge of order 15, which was never placed"},
		"order 0": {add(entry{Kind: charge, Order: 0, Cents: 1}), 1, 0, "order 0, which was never placed"},
		"shipped though refused": {func(r *results) {
			remove(refund, 7)(r)
			r.endings[7] = ending{shipped, 7}
			r.stocks[orderOf(7).Item] = stock{Shipped: r.stocks[orderOf(7).Item].Shipped + 1}
		}, 1, 0, "order 7 has ended as shipped; it had to be refunded"},
		"still held":         {func(r *results) { r.stocks["item-3"] = stock{1, 2} }, 1, 0, "of item-3 2 pieces were shipped and 1 are held"},
		"shipped once more":  {func(r *results) { r.stocks["item-3"] = stock{0, 3} }, 1, 0, "of item-3 3 pieces were shipped"},
		"no stock":           {func(r *results) { delete(r.stocks, "item-3") }, 1, 0, "of item-3 0 pieces were shipped"},
		"two answers":        {func(r *results) { r.twoFaced = []string{"order 3 had ended"} }, 1, 0, "order 3 had ended"},
		"nothing has ended":  {func(r *results) { r.endings, r.stocks = nil, nil }, 0, 14, "order 14 has not ended"},
		"nothing was booked": {func(r *results) { r.book = nil }, 0, 14, "order 14 has ended as refunded; it was never charged"},
	} {
		r := right()
		c.plant(&r)
		v := judge(r)
		if v.Wrong != c.wrong || v.Lost != c.lost || len(v.problems) != c.wrong+c.lost || !strings.Contains(strings.Join(v.problems, "\n"), c.says) {
			t.Errorf("%s: %d wrong, %d lost, %q", name, v.Wrong, v.Lost, v.problems)
		}
	}
}

// Orders have what the judge needs: refused ones, cheap ones and some to approve.
func TestOrders(t *testing.T) {
	seen := map[string]int{}
	for number := 1; number <= 500; number++ {
		o := orderOf(number)
		seen[o.Item]++
		if o.refused() {
			seen["refused"]++
		}
		if o.needsApproval() {
			seen["approval"]++
		}
		if o.Cents <= 0 || o.id() == orderOf(number+1).id() {
			t.Errorf("order %d is %+v", number, o)
		}
	}
	if len(seen) != items+2 || seen["refused"] != 71 || seen["approval"] < 50 || seen["approval"] > 250 {
		t.Errorf("the orders are %v", seen)
	}
}
