package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
)

// BenchmarkP7 is alarms due at once with an empty handler: from when they are due
// until the effect of the last is durable.
func BenchmarkP7(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("alarms=%d/holdfast", n), func(b *testing.B) {
			seconds := 0.0
			for range b.N {
				b.StopTimer()
				a, err := workload.OpenAlarms(b.TempDir(), object.Options{})
				if err != nil {
					b.Fatal(err)
				}
				closeAfter(b, a.Close)
				b.StartTimer() // most of what follows is arming: alarms/s has the drain alone
				d, _, _, err := a.Drain(context.Background(), n)
				if err != nil {
					b.Fatal(err)
				}
				seconds += d.Seconds()
			}
			b.ReportMetric(float64(n)*float64(b.N)/seconds, "alarms/s")
		})
		b.Run(fmt.Sprintf("alarms=%d/reference", n), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				db, err := raw.Open(b.TempDir(), measure.NewDisk())
				if err != nil {
					b.Fatal(err)
				}
				closeAfter(b, db.Close)
				r := &workload.RawAlarms{DB: db}
				if err := r.Fill(n); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if _, err := r.Drain(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "alarms/s")
		})
	}
}

// BenchmarkP12 is a task from Enqueue to done, durable at each step, with an
// empty work.
func BenchmarkP12(b *testing.B) {
	b.Run("holdfast", func(b *testing.B) {
		p, err := workload.OpenPool(b.TempDir(), -1)
		if err != nil {
			b.Fatal(err)
		}
		closeAfter(b, p.Close)
		tasks(b, func() error { return p.Run(context.Background(), b.N, nil) })
	})
	b.Run("reference", func(b *testing.B) {
		db, err := raw.Open(b.TempDir(), measure.NewDisk())
		if err != nil {
			b.Fatal(err)
		}
		closeAfter(b, db.Close)
		tasks(b, func() error { return workload.RawPool{DB: db}.Run(context.Background(), b.N) })
	})
}

func tasks(b *testing.B, run func() error) {
	b.ReportAllocs()
	b.ResetTimer()
	if err := run(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}
