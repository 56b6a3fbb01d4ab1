package debounce_test

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
)

// Proves D1. Proves D2. Proves D3. Case HN5. Several callers add events to one job
// between two syncs. A crash keeps a prefix of the adds, and the buffer is whole in it.
func TestCrashManyAddsOfOneSync(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(5), Reduce: collect})
		for i := range 3 {
			s.Go(fmt.Sprint("client ", i), func() {
				for n := range 2 {
					l.add(fmt.Sprint(i, "/", n))
				}
			})
		}
		s.Advance(seconds(20))
	}, harness.Seed(1), crashes.Budget(orderPlans))
}

// orderPlans bounds the plans of a story with concurrent callers, because each of its
// plans costs more than those of other stories. internal/prove/reliability tries more.
const orderPlans = 400
