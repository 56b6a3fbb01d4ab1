package main

import (
	"strings"
	"testing"
)

func TestTally(t *testing.T) {
	tally := newTally()
	fromWorker, fromServer := tally.hear(worker), tally.hear(paymentServer)
	for _, e := range []event{
		{Kind: evReady}, {Kind: evCharged, Order: 1}, {Kind: evCharged, Order: 1}, {Kind: evCharged, Order: 4},
		{Kind: evEnded, Order: 2, Outcome: shipped, Charge: 5}, {Kind: evEnded, Order: 2, Outcome: shipped, Charge: 5},
		{Kind: evStock, Item: "item-1", Stock: stock{1, 2}}, {Kind: evStock, Item: "item-1", Stock: stock{0, 3}},
	} {
		fromWorker(e)
	}
	for _, kind := range []string{evReady, evReady, evRepeat, evFault, evFault} {
		fromServer(event{Kind: kind})
	}
	<-tally.changed // many changes are one token
	r := tally.results(4, nil)
	if tally.readyCount(worker) != 1 || tally.readyCount(paymentServer) != 2 || tally.repeats != 1 || tally.faults != 2 ||
		tally.paidIn(0, 4) != 3 || tally.paidIn(1, 3) != 1 || tally.paidIn(2, 3) != 0 || tally.ended() != 1 ||
		r.endings[2] != (ending{shipped, 5}) || r.stocks["item-1"] != (stock{0, 3}) || len(r.twoFaced) > 0 {
		t.Errorf("the tally is %+v", tally)
	}
	fromWorker(event{Kind: evEnded, Order: 2, Outcome: refunded})
	if r := tally.results(4, nil); len(r.twoFaced) != 1 || !strings.Contains(r.twoFaced[0], "order 2 had ended as {outcome:shipped charge:5}") || r.endings[2] != (ending{refunded, 0}) {
		t.Errorf("the results are %+v", r)
	}
}

// A kill may cut off the last line of a child. A whole line that is no event is an error,
// and the lines after it are read all the same, because the child would block otherwise.
func TestReadEvents(t *testing.T) {
	var got []int
	tell := func(e event) { got = append(got, e.Order) }
	if err := readEvents(strings.NewReader("{\"event\":\"ended\",\"order\":3}\n{\"event\":\"ended\",\"ord"), tell); err != nil || len(got) != 1 || got[0] != 3 {
		t.Errorf("read %v, %v", got, err)
	}
	if err := readEvents(strings.NewReader("goroutine 1\n{\"event\":\"ended\",\"order\":4}\n"), tell); err == nil || len(got) != 2 {
		t.Errorf("read %v, %v", got, err)
	}
	var text strings.Builder
	teller(&text)(event{Kind: evCharged, Order: 5})
	if text.String() != "{\"event\":\"charged\",\"order\":5}\n" {
		t.Errorf("an event is %q", text.String())
	}
}
