package main

import (
	"math/rand/v2"
	"time"
)

// strike is one kill -9 that is planned. The orders are placed in portions, one before
// each strike and one after the last. A strike waits until some orders of its portion are
// paid, so the worker and its orders are always under way when it comes.
type strike struct {
	target role
	upTo   int           // the orders that may be placed until then: 1 to upTo
	paid   int           // so many orders of the portion are paid before the strike
	delay  time.Duration // from then on
}

// delayMax is the longest delay of a strike.
const delayMax = 60 * time.Millisecond

// plan draws the strikes of a run with n orders. In one of four cases a strike waits for
// no payment: then it hits a process that has just been started, in its recovery.
func plan(n, kills, serverKills int, seed uint64) []strike {
	r := rand.New(rand.NewPCG(seed, 0))
	all := make([]strike, kills+serverKills)
	last := 0
	for i := range all {
		s := strike{target: worker, upTo: n * (i + 1) / (len(all) + 1), delay: time.Duration(r.Int64N(int64(delayMax)))}
		if i > 0 && r.IntN(4) == 0 {
			s.delay /= 2
		} else {
			s.paid = 1 + r.IntN(s.upTo-last)
		}
		all[i], last = s, s.upTo
	}
	for i := range serverKills { // evenly among the others
		all[(2*i+1)*len(all)/(2*serverKills)].target = paymentServer
	}
	return all
}
