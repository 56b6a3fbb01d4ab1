package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
)

// openCounters opens a host with counters for the time of a benchmark.
func openCounters(b *testing.B, objects int) *workload.Counters {
	b.Helper()
	c, err := workload.OpenCounters(b.TempDir(), objects, object.Options{MaxLive: 200_000, IdleAfter: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	closeAfter(b, c.Close)
	return c
}

// openTurns opens the bare turn loop for the time of a benchmark.
func openTurns(b *testing.B, objects int) *raw.Turns {
	b.Helper()
	db, err := raw.Open(b.TempDir(), measure.NewDisk())
	if err != nil {
		b.Fatal(err)
	}
	closeAfter(b, db.Close)
	return raw.NewTurns(db, objects)
}

func closeAfter(b *testing.B, close func() error) {
	b.Cleanup(func() {
		if err := close(); err != nil {
			b.Error(err)
		}
	})
}

// each calls op b.N times from the given number of callers.
func each(b *testing.B, callers int, op func(i int) error) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	if err := measure.Each(context.Background(), callers, b.N, op); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

// BenchmarkP1 is a call that reads memory of a live object.
func BenchmarkP1(b *testing.B) {
	for _, objects := range []int{1, 100_000} {
		b.Run(fmt.Sprintf("objects=%d/holdfast", objects), func(b *testing.B) {
			c := openCounters(b, objects)
			if err := c.Wake(context.Background()); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := c.Read(i); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("objects=%d/reference", objects), func(b *testing.B) {
			boxes := raw.NewMailboxes(objects)
			for i := 0; b.Loop(); i++ {
				boxes.Read(i)
			}
		})
	}
}

// BenchmarkP3 and BenchmarkP4 are durable increments of one object and of 1,000.
func BenchmarkP3(b *testing.B) { increments(b, 1) }

func BenchmarkP4(b *testing.B) { increments(b, 1000) }

func increments(b *testing.B, objects int) {
	for _, callers := range []int{64, 1024} {
		b.Run(fmt.Sprintf("callers=%d/holdfast", callers), func(b *testing.B) {
			each(b, callers, openCounters(b, objects).Increment)
		})
		b.Run(fmt.Sprintf("callers=%d/reference", callers), func(b *testing.B) {
			each(b, callers, openTurns(b, objects).Increment)
		})
	}
}

// BenchmarkP6 is alarms that are set on 1,000 objects.
func BenchmarkP6(b *testing.B) {
	far := time.Now().Add(24 * time.Hour)
	for _, callers := range []int{64, 1024} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			counters := openCounters(b, 1000)
			each(b, callers, func(i int) error { return counters.Arm(i, far.Add(time.Duration(i)*time.Microsecond)) })
		})
	}
}
