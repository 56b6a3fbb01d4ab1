package object

import (
	"fmt"
	"runtime"
)

// The phases of a turn. Tasks that the handler began may look at the phase, and may
// be inside Release, a block or a transaction when the handler returns; so the phase
// changes atomically, and the task that has made it phaseBusy keeps the turn from
// ending.
//
//	phaseQueued → phaseHolds ⇄ phaseLent → phaseLost
//	                  ⇅
//	              phaseBusy
//
// phaseOver follows any of them but phaseBusy.
const (
	phaseHolds  int32 = iota // the turn holds its object
	phaseQueued              // it has yet to begin
	phaseLent                // Release has lent it out
	phaseBusy                // it holds its object, and a task changes the draft
	phaseLost                // it was lent out, and its object has gone on without it
	phaseOver                // it has ended: nothing of it counts any more
)

// holds reports whether the turn holds its object: it is under way and not lent out.
func (t *turn) holds() bool {
	p := t.phase.Load()
	return p == phaseHolds || p == phaseBusy
}

// grasp keeps the turn from ending until letGo. It reports false if the turn does
// not hold its object.
func (t *turn) grasp() bool { return t.pass(phaseHolds, phaseBusy) }

// letGo takes back grasp.
func (t *turn) letGo() { t.phase.Store(phaseHolds) }

// pass moves the turn from one phase to another, after a task that has grasped it
// has let go. It reports false if the turn was in another phase.
func (t *turn) pass(from, to int32) bool {
	for !t.phase.CompareAndSwap(from, to) {
		if p := t.phase.Load(); p != phaseBusy && p != from {
			return false
		}
		runtime.Gosched()
	}
	return true
}

// returned is told that the handler has returned. It is an error if a goroutine of
// the handler is in Release, since the object has gone on, or in a transaction,
// since the turn would commit a part of it.
func (t *turn) returned() error {
	const text = "%s: %w: the handler returned while a goroutine of it was in %s: wait for the goroutine first"
	switch {
	case t.phase.Load() != phaseHolds && t.pass(phaseLent, phaseLost):
		return fmt.Errorf(text, t.act.id, ErrNoTurn, "Release or Await")
	case t.txs > 0:
		return fmt.Errorf(text, t.act.id, ErrNoTurn, "Transaction")
	}
	return nil
}

// over ends the turn and reports whether it held its object.
func (t *turn) over() (held bool) {
	for {
		switch p := t.phase.Load(); {
		case p == phaseBusy:
			runtime.Gosched()
		case t.phase.CompareAndSwap(p, phaseOver):
			return p == phaseHolds
		}
	}
}
