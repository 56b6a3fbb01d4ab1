package object_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
)

// counter is the object of the benchmarks: a number in memory, and stored.
type counter struct {
	st *object.State
	n  uint64
}

var (
	counters = object.Define("counter", func(ctx context.Context, st *object.State) (*counter, error) {
		c := &counter{st: st}
		_, err := st.Storage().GetInto(ctx, "n", &c.n)
		return c, err
	})
	readCounter = object.Handle(counters, "read", func(c *counter, _ context.Context, _ struct{}) (uint64, error) {
		return c.n, nil
	})
	increment = object.Handle(counters, "increment", func(c *counter, ctx context.Context, by uint64) (uint64, error) {
		c.n += by
		return c.n, c.st.Storage().Put(ctx, "n", c.n)
	})
)

func openBench(b *testing.B, defs ...object.Definition) *object.Host {
	b.Helper()
	h, err := object.Open(object.Options{Dir: b.TempDir(), Logger: slog.New(slog.DiscardHandler)}, defs...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := h.Shutdown(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return h
}

// BenchmarkRead is P1: a call that reads memory.
func BenchmarkRead(b *testing.B) {
	for _, objects := range []int{1, 100_000} {
		b.Run(fmt.Sprintf("objects=%d", objects), func(b *testing.B) {
			h := openBench(b, counters)
			ctx := context.Background()
			names := make([]string, objects)
			for i := range names {
				names[i] = fmt.Sprint(i)
				if _, err := readCounter.Call(ctx, h, names[i], struct{}{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := readCounter.Call(ctx, h, names[i%objects], struct{}{}); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkIncrement is P3 and P4: durable increments by many callers.
func BenchmarkIncrement(b *testing.B) {
	for _, objects := range []int{1, 1000} {
		for _, callers := range []int{1, 64, 1024} {
			b.Run(fmt.Sprintf("objects=%d/callers=%d", objects, callers), func(b *testing.B) {
				h := openBench(b, counters)
				ctx := context.Background()
				var next atomic.Int64
				b.ReportAllocs()
				b.ResetTimer()
				var wg sync.WaitGroup
				for range callers {
					wg.Go(func() {
						for {
							i := next.Add(1)
							if i > int64(b.N) {
								return
							}
							if _, err := increment.Call(ctx, h, fmt.Sprint(i%int64(objects)), 1); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
			})
		}
	}
}
