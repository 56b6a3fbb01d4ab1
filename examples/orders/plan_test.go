package main

import (
	"slices"
	"testing"
)

// A plan has as many strikes of each kind as were asked for, each in a portion that is not
// empty, and waits for no more payments than its portion has.
func TestPlan(t *testing.T) {
	inRecovery := 0
	for kills := range 13 {
		for serverKills := range 6 {
			for _, n := range []int{kills + serverKills + 1, 20, 500} {
				if kills+serverKills >= n {
					continue
				}
				all := plan(n, kills, serverKills, uint64(n))
				if !slices.Equal(all, plan(n, kills, serverKills, uint64(n))) {
					t.Errorf("the plan for %d orders differs from itself", n)
				}
				hit, last := map[role]int{}, 0
				for i, s := range all {
					hit[s.target]++
					if s.upTo <= last || s.upTo >= n || s.paid < 0 || s.paid > s.upTo-last || s.delay < 0 || s.delay >= delayMax {
						t.Errorf("strike %d of %+v follows %d of %d orders", i, s, last, n)
					}
					if s.paid == 0 {
						inRecovery++
					}
					if i == 0 && s.paid == 0 {
						t.Errorf("the first strike of %d orders waits for nothing", n)
					}
					last = s.upTo
				}
				if hit[worker] != kills || hit[paymentServer] != serverKills {
					t.Errorf("%d orders, %d and %d kills: the plan has %v", n, kills, serverKills, hit)
				}
			}
		}
	}
	if inRecovery < 100 {
		t.Errorf("%d strikes hit a recovery", inRecovery)
	}
	if slices.Equal(plan(500, 10, 2, 1), plan(500, 10, 2, 2)) {
		t.Error("two seeds have one plan")
	}
}

// The kills of the payment server lie among those of the worker.
func TestPlanMixesTargets(t *testing.T) {
	var at []int
	for i, s := range plan(500, 10, 2, 1) {
		if s.target == paymentServer {
			at = append(at, i)
		}
	}
	if !slices.Equal(at, []int{3, 9}) {
		t.Errorf("the payment server is killed by the strikes %v", at)
	}
}
