package main

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// The machine on which limit was set sorts sorted numbers in paceOfLimit.
const (
	sorted      = 1 << 20
	paceOfLimit = 135 * time.Millisecond
)

// slowness is how much slower this machine is now than that on which limit was set: at least 1.
// The numbers are sorted on as many goroutines as tests run at a time, so other load counts too.
func slowness() float64 {
	began := seams.Steady()
	var workers sync.WaitGroup
	for range together {
		workers.Go(sortNumbers)
	}
	workers.Wait()
	return max(1, float64(seams.Steady().Sub(began))/float64(paceOfLimit))
}

func sortNumbers() {
	random := rand.New(rand.NewPCG(1, 2))
	numbers := make([]uint64, sorted)
	for i := range numbers {
		numbers[i] = random.Uint64()
	}
	slices.Sort(numbers)
}
