package main

import (
	"fmt"
	"maps"
	"sync"
)

// tally is all that the children have told so far. Goroutines that read their output add
// to it, and the program waits for changes.
type tally struct {
	changed chan struct{} // has a token after a change

	mu       sync.Mutex
	ready    map[role]int // processes that were ready
	paid     map[int]bool // orders that the worker saw paid or ended
	endings  map[int]ending
	stocks   map[string]stock
	repeats  int
	faults   int
	twoFaced []string // endings that differ from an earlier one
}

func newTally() *tally {
	return &tally{
		changed: make(chan struct{}, 1), ready: make(map[role]int),
		paid: make(map[int]bool), endings: make(map[int]ending), stocks: make(map[string]stock),
	}
}

// hear returns the function that takes the events of a child.
func (t *tally) hear(from role) func(event) {
	return func(e event) {
		t.mu.Lock()
		t.add(from, e)
		t.mu.Unlock()
		select {
		case t.changed <- struct{}{}:
		default:
		}
	}
}

func (t *tally) add(from role, e event) {
	switch e.Kind {
	case evReady:
		t.ready[from]++
	case evRepeat:
		t.repeats++
	case evFault:
		t.faults++
	case evCharged:
		t.paid[e.Order] = true
	case evStock:
		t.stocks[e.Item] = e.Stock
	case evEnded:
		t.paid[e.Order] = true
		now := ending{e.Outcome, e.Charge}
		if before, told := t.endings[e.Order]; told && before != now {
			t.twoFaced = append(t.twoFaced, fmt.Sprintf("order %d had ended as %+v, and a later process said %+v", e.Order, before, now))
		}
		t.endings[e.Order] = now
	}
}

// readyCount is how many processes of a role were ready.
func (t *tally) readyCount(r role) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ready[r]
}

// paidIn is how many orders after one number, up to another, are paid.
func (t *tally) paidIn(after, upTo int) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for number := range t.paid {
		if after < number && number <= upTo {
			n++
		}
	}
	return n
}

// ended is how many orders have ended.
func (t *tally) ended() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.endings)
}

// results is the tally for the judge.
func (t *tally) results(n int, book []entry) results {
	t.mu.Lock()
	defer t.mu.Unlock()
	return results{n: n, endings: maps.Clone(t.endings), stocks: maps.Clone(t.stocks), twoFaced: t.twoFaced, book: book}
}
