package seeds

import (
	"math/rand/v2"
	"sync"
)

// Source returns a source of the same numbers for the same seed, which any goroutine may
// use. Tests give it to a host as the seam of randomness.
func Source(seed uint64) rand.Source { return &source{pcg: rand.NewPCG(seed, 0)} }

type source struct {
	mu  sync.Mutex
	pcg *rand.PCG
}

// Uint64 implements rand.Source.
func (s *source) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pcg.Uint64()
}
