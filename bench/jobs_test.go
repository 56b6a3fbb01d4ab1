package bench

import (
	"context"
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/jobs/workerpool"
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
				b.StartTimer() // most of the rest is arming: alarms/s has the drain alone
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
		p, err := workload.OpenPool(b.TempDir(), workerpool.AtOnce)
		if err != nil {
			b.Fatal(err)
		}
		closeAfter(b, p.Close)
		counted(b, func() error { return p.Run(context.Background(), b.N, nil) })
	})
	b.Run("reference", func(b *testing.B) {
		db, err := raw.Open(b.TempDir(), measure.NewDisk())
		if err != nil {
			b.Fatal(err)
		}
		closeAfter(b, db.Close)
		counted(b, func() error { return workload.RawPool{DB: db}.Run(context.Background(), b.N) })
	})
}

// BenchmarkP14 is adding events with ids to debounce objects, durably.
func BenchmarkP14(b *testing.B) {
	for _, objects := range []int{1, 1000} {
		b.Run(fmt.Sprintf("objects=%d/holdfast", objects), func(b *testing.B) {
			d, err := workload.OpenDebounce(b.TempDir(), objects)
			if err != nil {
				b.Fatal(err)
			}
			closeAfter(b, d.Close)
			each(b, 1024, d.Add)
		})
		b.Run(fmt.Sprintf("objects=%d/reference", objects), func(b *testing.B) {
			each(b, 1024, openCounters(b, objects).Increment)
		})
	}
}

// BenchmarkP15 is runs of one continuous job, one after the other.
func BenchmarkP15(b *testing.B) {
	b.Run("holdfast", func(b *testing.B) {
		r, err := workload.OpenRuns(b.Context(), b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		closeAfter(b, r.Close)
		counted(b, func() error { return r.Times(context.Background(), b.N) })
	})
	b.Run("reference", func(b *testing.B) {
		each(b, 1, openTurns(b, 1).Commit)
	})
}
