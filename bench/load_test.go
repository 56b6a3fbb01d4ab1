package bench

import (
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/rows"
)

// BenchmarkP19 is the load with other work beside it: a round of a second for each of
// b.N, so that a profile holds the load and the work beside it.
func BenchmarkP19(b *testing.B) {
	cases, err := rows.Cases("P19", rows.Small)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range cases {
		b.Run(c.What, func(b *testing.B) {
			pair, err := c.Prepare(b.Context(), &rows.Env{Dir: b.TempDir(), For: time.Second, Size: rows.Small})
			if err != nil {
				b.Fatal(err)
			}
			closeAfter(b, pair.Close)
			var nanos []float64
			for b.Loop() {
				s, err := pair.Ours(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				nanos = append(nanos, s.Costs[measure.ProcessorNanos])
			}
			b.ReportMetric(measure.Median(nanos), "cpu-ns/op")
		})
	}
}
