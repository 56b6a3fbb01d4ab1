package harness_test

import (
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
)

// BenchmarkSchedule is the cost of one run of a small scenario with one crash: two
// starts of a host, five calls, two alarms.
func BenchmarkSchedule(b *testing.B) {
	for name, store := range map[string]harness.Option{"map": harness.MapStore(), "pebble": harness.PebbleStore()} {
		b.Run(name, func(b *testing.B) {
			schedules := 0
			for b.Loop() {
				report, err := harness.Explore(cartScenario, store)
				if err != nil {
					b.Fatal(err)
				}
				schedules += report.Schedules
			}
			b.ReportMetric(float64(schedules)/b.Elapsed().Seconds(), "schedules/s")
		})
	}
}
