package main

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// seams have the machine's clock, because the tests are real programs.
var seams = seam.Seams{}.WithDefaults()

const (
	sorted = 1 << 20
	// referencePace is how long the sort takes on the reference machine.
	referencePace = 135 * time.Millisecond
	// slowAfter is how long a test may take there before its mutant is reported as slow.
	slowAfter = 2 * time.Second
)

// pace is how long this machine takes to sort numbers on as many goroutines as tests
// run at a time. It includes other programs' load.
func pace() time.Duration {
	began := seams.Steady()
	var workers sync.WaitGroup
	for range together {
		workers.Go(sortNumbers)
	}
	workers.Wait()
	return seams.Steady().Sub(began)
}

func sortNumbers() {
	random := rand.New(rand.NewPCG(1, 2))
	numbers := make([]uint64, sorted)
	for i := range numbers {
		numbers[i] = random.Uint64()
	}
	slices.Sort(numbers)
}

// slow reports whether a test that took so long at this pace is slow. A pace above
// the reference counts as the reference.
func slow(took, pace time.Duration) bool {
	return took.Seconds()*min(1, referencePace.Seconds()/pace.Seconds()) > slowAfter.Seconds()
}
