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
	counted(b, func() error { return measure.Each(context.Background(), callers, b.N, op) })
}

// counted runs b.N operations and reports their rate and their processor time.
func counted(b *testing.B, run func() error) {
	b.Helper()
	b.ReportAllocs()
	b.ResetTimer()
	before := measure.Processor()
	if err := run(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(measure.Processor()-before)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

// alone calls op b.N times from this goroutine.
func alone(b *testing.B, op func(i int) error) {
	b.Helper()
	counted(b, func() error {
		for i := range b.N {
			if err := op(i); err != nil {
				return err
			}
		}
		return nil
	})
}

// BenchmarkP1 is a call that reads memory of a live object.
func BenchmarkP1(b *testing.B) {
	for _, objects := range []int{1, 100_000} {
		b.Run(fmt.Sprintf("objects=%d/holdfast", objects), func(b *testing.B) {
			c := openCounters(b, objects)
			if err := c.Wake(context.Background()); err != nil {
				b.Fatal(err)
			}
			alone(b, c.Read)
		})
		b.Run(fmt.Sprintf("objects=%d/reference", objects), func(b *testing.B) {
			boxes := raw.NewMailboxes(objects)
			alone(b, func(i int) error {
				boxes.Read(i)
				return nil
			})
		})
	}
}

// BenchmarkP2 is a call that reads one key.
func BenchmarkP2(b *testing.B) {
	const objects = 1000
	b.Run("holdfast", func(b *testing.B) {
		c := openCounters(b, objects)
		if err := c.Fill(context.Background(), time.Time{}); err != nil {
			b.Fatal(err)
		}
		alone(b, c.Load)
	})
	b.Run("reference", func(b *testing.B) {
		turns := openTurns(b, objects)
		for i := range objects {
			if err := turns.Commit(i); err != nil {
				b.Fatal(err)
			}
		}
		alone(b, func(i int) error {
			_, err := turns.Get(i)
			return err
		})
	})
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

// BenchmarkP17 is the activation of an object with its rows in the cache.
func BenchmarkP17(b *testing.B) {
	const objects = 20_000
	b.Run("holdfast", func(b *testing.B) {
		i, err := workload.OpenIdle(b.TempDir(), objects, 64, time.Hour)
		if err != nil {
			b.Fatal(err)
		}
		closeAfter(b, i.Close)
		if err := i.Create(context.Background()); err != nil {
			b.Fatal(err)
		}
		alone(b, i.Poke)
	})
	b.Run("reference", func(b *testing.B) {
		db, err := raw.Open(b.TempDir(), measure.NewDisk())
		if err != nil {
			b.Fatal(err)
		}
		closeAfter(b, db.Close)
		r, err := workload.NewRawIdle(db, objects)
		if err != nil {
			b.Fatal(err)
		}
		alone(b, r.Read)
	})
}

// BenchmarkP6 is alarms that are set on 1,000 objects.
func BenchmarkP6(b *testing.B) {
	far := time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, callers := range []int{64, 1024} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			counters := openCounters(b, 1000)
			each(b, callers, func(i int) error { return counters.Arm(i, far.Add(time.Duration(i)*time.Microsecond)) })
		})
	}
}
