package patterns

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
)

// billed charges once by each of the three jobs.
func billed(service func(s *harness.Sim) Charge) harness.Scenario {
	return func(s *harness.Sim) {
		b := NewBilling(service(s))
		s.Host(b.Monthly, b.Metered, b.Orders)
		s.OK(s.Retry(func() error { _, err := b.Monthly.Start(s.Context(), s, "alice", 100); return err }))
		s.OK(s.Retry(func() error {
			_, err := b.Metered.Add(s.Context(), s, "alice", 20, debounce.EventID("call 1"))
			return err
		}))
		s.OK(s.Retry(func() error {
			_, err := b.Orders.Enqueue(s.Context(), s, 3, workerpool.Idempotent("order 1", time.Hour))
			return err
		}))
		s.Advance(10 * time.Hour)
		s.Finally("each sum is charged", func() error {
			for _, cents := range []int{100, 20, 3} {
				if s.World().Count(fmt.Sprint("charge/", cents)) == 0 {
					return fmt.Errorf("%d cents were never charged", cents)
				}
			}
			return nil
		})
	}
}

// withKeys is a service that takes money once for each key.
func withKeys(s *harness.Sim) Charge {
	return func(_ context.Context, key string, cents int) error {
		_, err := harness.DoOnce(s.World(), fmt.Sprint("charge/", cents), key, func() int { return cents })
		return err
	}
}

// withoutKeys is a service that looks at no key.
func withoutKeys(s *harness.Sim) Charge {
	return func(_ context.Context, _ string, cents int) error {
		return s.World().Do(fmt.Sprint("charge/", cents), nil)
	}
}

func TestNoSumIsChargedTwice(t *testing.T) {
	once := harness.NoDoubleEffect("charge/")
	lost := harness.AllowFaults(harness.Faults{LostAnswer: 1})
	harness.Exhaust(t, billed(withKeys), once, lost, harness.NoLostAck, harness.OneAlarm, harness.NeverOrphaned)

	f := found(t, billed(withoutKeys), once)
	if !strings.Contains(f.Promise, "A4: So state changes happen exactly once, outside effects at least once") {
		t.Errorf("found something else:\n%v", f)
	}
	isShown(t, excerpt(f, 3))
	harness.Exhaust(t, billed(withoutKeys), harness.AtMostOncePerCrash("charge/"))
}
