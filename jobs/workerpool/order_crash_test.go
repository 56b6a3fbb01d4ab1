package workerpool_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// Proves W1. Proves W2. Proves W3. Case HN5. Several producers submit tasks of one
// partition between two syncs, while its tasks begin and end. A crash keeps a prefix, and
// the counts and the order of the key hold in it.
func TestCrashManyProducersOfOneSync(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		p := newPool(s, config{})
		s.Host(p)
		for i := range 3 {
			s.Go(fmt.Sprint("producer ", i), func() {
				for n := range 2 {
					enqueue(s, p, fmt.Sprint(i, "/", n), workerpool.Key(fmt.Sprint("key ", i)))
				}
			})
		}
		finally(s, func() {
			if st := stats(s, p); st.Done != 6 || st.Submitted != 6 {
				s.Errorf("W1: %+v", st)
			}
			for i := range 3 {
				if first, second := attempts(s, fmt.Sprint(i, "/0")), attempts(s, fmt.Sprint(i, "/1")); first == 0 || second == 0 {
					s.Errorf("W2: of key %d the tasks were begun %d and %d times", i, first, second)
				}
			}
		})
	}, harness.Seed(1), crashes.Budget(400)) // internal/prove/reliability tries more
}
