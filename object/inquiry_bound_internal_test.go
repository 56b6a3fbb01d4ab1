package object

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/holdfast-dev/holdfast/storage"
)

// killerSearch is a model of the processes that search for killers. It plans each search
// with judge and form, and starts no goroutine. A killer kills in each of its trials.
type killerSearch struct {
	rand    *rand.Rand
	quick   int // in how many of 4 crashes an innocent has ended just before
	all     []subject
	killer  map[subject]bool
	waiting map[subject]bool // neither done nor stopped
	cuts    map[subject]int  // crashes that cut a subject off
	charges map[subject]int  // the most that a subject was ever charged with
	left    inquiry          // of the process that died last
}

// newKillerSearch is n subjects, all cut off by the first two crashes. The first of them kill.
func newKillerSearch(seed uint64, n, killers int) *killerSearch {
	s := &killerSearch{
		rand: rand.New(rand.NewPCG(seed, 8)), quick: int(seed % 4), killer: make(map[subject]bool), waiting: make(map[subject]bool),
		cuts: make(map[subject]int), charges: make(map[subject]int), left: inquiry{epoch: 2},
	}
	s.all = someSubjects("x", n)
	for i, x := range s.all {
		s.killer[x], s.waiting[x], s.cuts[x] = i < killers, true, cutsOfSuspect
	}
	return s
}

// begin is the suspects of the next process, held back in any order, with their trials.
// One with four charges is stopped.
func (s *killerSearch) begin() *suspects {
	crash := storage.Previous{Epoch: s.left.epoch, Crashes: s.left.epoch}
	p := &suspects{found: s.left.judge(crash, false), held: make(map[subject]*suspect)}
	for x, n := range p.found.charges {
		s.charges[x] = max(s.charges[x], n)
		if n >= 4 {
			delete(s.waiting, x)
		}
	}
	set := make(map[subject]int)
	for _, g := range p.found.plan {
		for _, x := range g.members {
			set[x] = g.set
		}
	}
	for _, i := range s.rand.Perm(len(s.all)) {
		x := s.all[i]
		if !s.waiting[x] {
			continue
		}
		if _, listed := set[x]; !listed {
			set[x] = freshSet
		}
		p.held[x] = &suspect{subject: x, set: set[x]}
		p.late = append(p.late, p.held[x])
	}
	p.form()
	return p
}

// live runs the trials of one process until a killer is in one. It reports false if none
// was in any.
func (s *killerSearch) live() (died bool) {
	p := s.begin()
	plan := p.groups()
	for i, g := range plan {
		for _, x := range g.members {
			died = died || s.killer[x]
		}
		for _, x := range g.members {
			switch {
			case died && (s.killer[x] || s.rand.IntN(4) >= s.quick):
				s.cuts[x]++
			default: // it has ended
				delete(s.waiting, x)
			}
		}
		if died {
			s.left = inquiry{
				epoch: s.left.epoch + 1, cleared: p.found.cleared, phase: trying, trial: i, plan: plan, charges: maps.Clone(p.found.charges),
			}
			return true
		}
	}
	return false
}

// mostCrashes is the bound of A8. Two crashes make a suspect, each further one divides
// its group by 16 until it runs alone, and four are charged. One more is possible if
// several kill.
func mostCrashes(n, killers int) int {
	most := 2 + 4
	for alone := trialGroups; alone < n; alone *= trialGroups {
		most++
	}
	if killers > 1 {
		most++
	}
	return most
}

// Proves A8: the number of crashes until a killer is stopped has a bound, for any number
// of killers and any order in which suspects are held back. The bound is reached, and no
// innocent is charged even once.
func TestCrashesOfKillers(t *testing.T) {
	for _, c := range []struct{ n, killers, seeds int }{
		{1, 1, 1}, {2, 1, 5}, {2, 2, 20}, {16, 1, 20}, {16, 2, 100}, {16, 16, 20}, {17, 2, 200}, {33, 3, 200}, {200, 1, 10},
		{256, 2, 100}, {256, 5, 50}, {256, 60, 5}, {257, 1, 10}, {400, 2, 50}, {2000, 1, 3}, {2000, 2, 10}, {2000, 8, 5},
		{4096, 1, 4}, {4096, 2, 6}, {4097, 1, 12},
	} {
		t.Run(fmt.Sprint(c.killers, " among ", c.n), func(t *testing.T) {
			t.Parallel()
			most := 0
			for seed := range uint64(c.seeds) {
				s := newKillerSearch(seed, c.n, c.killers)
				for s.live() {
				}
				for x, kills := range s.killer {
					switch {
					case kills && s.charges[x] != 4:
						t.Errorf("seed %d: the killer %s has %d charges, want 4", seed, x.id.Name, s.charges[x])
					case !kills && s.charges[x] > 0:
						t.Errorf("seed %d: %s is charged and kills nothing", seed, x.id.Name)
					case kills:
						most = max(most, s.cuts[x])
					}
				}
				if len(s.waiting) > 0 {
					t.Errorf("seed %d: %d still wait", seed, len(s.waiting))
				}
			}
			if want := mostCrashes(c.n, c.killers); most != want {
				t.Errorf("A8: the longest search took %d crashes of one killer, want %d", most, want)
			}
		})
	}
}
