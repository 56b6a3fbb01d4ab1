package storagetest

import (
	"runtime"
	"sync"
	"testing"
)

// Options bound a test. The zero value is fit for each run of the tests.
type Options struct {
	// Seed chooses sizes, how often the workload waits, and torn blocks.
	Seed uint64
	// Commits is the length of the workload. Default: 60.
	Commits int
	// Points bounds how many crashes, errors or damages are tried; beyond, they
	// are taken at equal distances, and the log says how many of how many.
	// Default: 1000.
	Points int
	// Scatter is for Crash: the file system has no journal, so that each name of a
	// file that was not synced is kept or lost by itself. Where Pebble changes its
	// manifest that leaves a store in which a file is missing. Such a store may
	// refuse to open, with an error that says so, and counts as Refused.
	Scatter bool
	// Witness tells Damage that the store keeps a witness file, so that the loss
	// of acknowledged commits must not go unnoticed.
	Witness bool
}

func (o Options) withDefaults() Options {
	if o.Commits == 0 {
		o.Commits = 60
	}
	if o.Points == 0 {
		o.Points = 1000
	}
	return o
}

// stride is the distance between the places that are tried among total: at most as
// many as Points. It has no factor in common with the number of kinds at each
// operation, so each kind is among them.
func (o Options) stride(total, kinds int) int {
	n := max(1, (total+o.Points-1)/o.Points)
	for common(n, kinds) > 1 {
		n++
	}
	return n
}

// common is the greatest common factor of two numbers.
func common(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// Figures count the work of a test.
type Figures struct {
	Operations int // that change files in the workload
	Points     int // crashes, errors or damages tried
	Nested     int // of the crashes, those in the recovery from another
	Refused    int // damages reported when the store was opened or read, or lived on
	Lost       int // damages that lost the newest commits, where that is documented
	Harmless   int // damages or errors that changed nothing
	Died       int // errors after which the store was dead
	Wrong      int // checks that failed; each is an error of the test, too
}

// Add adds the figures of another test.
func (f *Figures) Add(g Figures) {
	f.Operations += g.Operations
	f.Points += g.Points
	f.Nested += g.Nested
	f.Refused += g.Refused
	f.Lost += g.Lost
	f.Harmless += g.Harmless
	f.Died += g.Died
	f.Wrong += g.Wrong
}

// tally is Figures that several checkers count in.
type tally struct {
	t  testing.TB
	mu sync.Mutex
	Figures
}

func (s *tally) add(g Figures) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Add(g)
}

// wrong reports a check that failed.
func (s *tally) wrong(format string, args ...any) {
	s.t.Errorf(format, args...)
	s.add(Figures{Wrong: 1})
}

// each runs do for each of the items on all processors, until the channel ends.
func each[T any](do func(T)) (items chan<- T, wait func()) {
	in := make(chan T)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for item := range in {
				do(item)
			}
		})
	}
	return in, func() {
		close(in)
		workers.Wait()
	}
}
