package harness_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
)

// BenchmarkPlan is the cost of one run of a small scenario with one crash: two
// starts of a host, five calls, two alarms.
func BenchmarkPlan(b *testing.B) {
	for name, store := range map[string]harness.Option{"map": harness.MapStore(), "pebble": harness.PebbleStore()} {
		b.Run(name, func(b *testing.B) {
			plans := 0
			for b.Loop() {
				report, err := harness.Explore(cartScenario, store)
				if err != nil {
					b.Fatal(err)
				}
				plans += report.Plans
			}
			b.ReportMetric(float64(plans)/b.Elapsed().Seconds(), "plans/s")
		})
	}
}
