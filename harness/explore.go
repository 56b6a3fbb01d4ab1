package harness

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Explore is Exhaust without a test: it returns the first failure as a *Failure,
// and leaves the environment aside.
func Explore(scenario Scenario, opts ...Option) (Report, error) {
	return explore(scenario, newConfig(opts))
}

func explore(scenario Scenario, c *Config) (Report, error) {
	e := &explorer{cfg: c, scenario: scenario, tally: newTally(c, "exhaust")}
	began := time.Now()
	err := e.explore()
	r := e.total()
	r.Seconds, r.Failed = time.Since(began).Seconds(), err != nil
	return r, err
}

type explorer struct {
	cfg      *Config
	scenario Scenario
	*tally
}

func (e *explorer) explore() error {
	base, err := e.baseline()
	if err != nil {
		return err
	}
	singles := e.branches(candidate{schedule: schedule{seed: e.cfg.seed}}, base)
	chosen := choose(singles, e.cfg.budget)
	next := make([][]candidate, len(chosen))
	err = e.tryAll(chosen, func(i int, out outcome) {
		if e.cfg.depth > 1 {
			next[i] = e.branches(chosen[i], out)
		}
	})
	if err != nil {
		return err
	}
	pairs := slices.Concat(next...)
	second := choose(pairs, e.cfg.budget-len(chosen))
	if err := e.tryAll(second, func(int, outcome) {}); err != nil {
		return err
	}
	// Pairs of singles that were not chosen are not known; they count as if they
	// were as many as those of the others.
	all := len(singles) + int(float64(len(pairs))/max(share(len(chosen), len(singles)), 1e-9))
	e.report.Covered = share(len(chosen)+len(second), all)
	return e.neverReached()
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 1
	}
	return float64(part) / float64(whole)
}

// baseline runs the scenario without a crash, twice, and compares.
func (e *explorer) baseline() (outcome, error) {
	p := schedule{seed: e.cfg.seed}
	r := &runner{cfg: e.cfg, scenario: e.scenario}
	var first, again outcome
	if err := r.guard(func() {
		first = r.run(p)
		first.hits, first.chances = slices.Clone(first.hits), slices.Clone(first.chances)
		again = r.run(p)
	}); err != nil {
		return outcome{}, r.wrap(err)
	}
	e.note(first)
	switch diff := difference(first.hits, again.hits); {
	case first.problem != nil:
		return first, first.problem
	case again.problem != nil:
		again.problem.Problem += "\nThe first run of the scenario did not fail, the second does: most likely " + outlives + unsteady(again.defs)
		return again, again.problem
	case diff != "":
		return first, &Failure{Schedule: p.String(), Problem: "two runs without a crash do not do the same: " + diff +
			"\nmost likely " + likely(first.hits, again.hits) + unsteady(again.defs)}
	}
	e.report.Points = len(first.hits)
	e.report.ByName = make(map[string]int)
	for _, h := range first.hits {
		e.report.ByName[h.Name]++
	}
	return first, nil
}

// tryAll runs candidates, as many at a time as there are workers, and calls each with
// their outcomes. It stops at a failure. With any number of workers it returns the
// failure of the first candidate in order, so that a test prints the same one each
// time.
func (e *explorer) tryAll(all []candidate, each func(i int, out outcome)) error {
	var next atomic.Int64
	var failed atomic.Bool
	errs := make([]error, min(e.cfg.workers, len(all)))
	at := make([]int, len(errs)) // where each worker failed
	var workers sync.WaitGroup
	for w := range errs {
		workers.Go(func() {
			r := &runner{cfg: e.cfg, scenario: e.scenario}
			err := r.guard(func() {
				for !failed.Load() {
					i := int(next.Add(1)) - 1
					if i >= len(all) {
						return
					}
					at[w] = i
					out := r.try(all[i])
					if e.note(out); out.problem != nil {
						errs[w] = out.problem
						failed.Store(true)
						return
					}
					each(i, out)
				}
			})
			if err != nil {
				errs[w] = r.wrap(err)
				failed.Store(true)
			}
		})
	}
	workers.Wait()
	var first error
	least := len(all)
	for w, err := range errs {
		if err != nil && at[w] < least {
			first, least = err, at[w]
		}
	}
	return first
}

// try runs a candidate. Up to its last crash it must pass the same points as the run
// that it branches from.
func (r *runner) try(c candidate) outcome {
	out := r.run(c.schedule)
	if at := out.last(c.fault); out.problem == nil && at != c.index {
		out.problem = &Failure{Schedule: c.schedule.String(), Problem: fmt.Sprintf(
			"%s was point %d of one run and point %d of another with the same crashes: the scenario does not do the same each time%s",
			c.at, c.index+1, at+1, unsteady(out.defs))}
	}
	return out
}

// neverReached is a failure for each Sometimes that held in no run.
func (e *explorer) neverReached() error {
	var names []string
	for name, ok := range e.sometimes {
		if !ok {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return &Failure{Schedule: schedule{seed: e.cfg.seed}.String(), Problem: fmt.Sprintf("never reached in %d schedules: %s", e.report.Schedules, strings.Join(names, ", "))}
}
