package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
)

// counter keeps a number in memory and stored.
type counter struct {
	st *object.State
	n  uint64
}

var (
	counters = object.Define("counter", func(ctx context.Context, st *object.State) (*counter, error) {
		c := &counter{st: st}
		v, ok, err := st.Storage().Get(ctx, "n")
		if ok && len(v) == 8 {
			c.n = binary.BigEndian.Uint64(v)
		}
		return c, err
	})
	read = object.Handle(counters, "read", func(c *counter, _ context.Context, _ struct{}) (uint64, error) {
		return c.n, nil
	})
	increment = object.Handle(counters, "increment", func(c *counter, ctx context.Context, by uint64) (uint64, error) {
		c.n += by
		var v [8]byte
		binary.BigEndian.PutUint64(v[:], c.n)
		return c.n, c.st.Storage().PutBytes(ctx, "n", v[:])
	})
)

func openHost(b *testing.B, defs ...object.Definition) *object.Host {
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

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(i)
	}
	return out
}

// BenchmarkP1 is a call that reads memory of a live object; its reference is a
// mailbox run by its caller: a map look-up, a mutex and a function call.
func BenchmarkP1(b *testing.B) {
	for _, objects := range []int{1, 100_000} {
		b.Run(fmt.Sprintf("objects=%d/holdfast", objects), func(b *testing.B) {
			h, ids, ctx := openHost(b, counters), names(objects), context.Background()
			for _, id := range ids {
				if _, err := read.Call(ctx, h, id, struct{}{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := read.Call(ctx, h, ids[i%objects], struct{}{}); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
		b.Run(fmt.Sprintf("objects=%d/reference", objects), func(b *testing.B) {
			ids := names(objects)
			m := make(map[string]*bareTurn, objects)
			for _, id := range ids {
				m[id] = &bareTurn{}
			}
			var sum uint64
			var mu sync.RWMutex
			i := 0
			for b.Loop() {
				mu.RLock()
				o := m[ids[i%objects]]
				mu.RUnlock()
				o.mu.Lock()
				sum += o.n
				o.mu.Unlock()
				i++
			}
			_ = sum
		})
	}
}

// BenchmarkP3 and BenchmarkP4 are durable increments of one object and of 1,000;
// their reference is the bare turn over as many.
func BenchmarkP3(b *testing.B) { increments(b, 1) }

func BenchmarkP4(b *testing.B) { increments(b, 1000) }

func increments(b *testing.B, objects int) {
	for _, callers := range []int{64, 1024} {
		b.Run(fmt.Sprintf("callers=%d/holdfast", callers), func(b *testing.B) {
			h, ids, ctx := openHost(b, counters), names(objects), context.Background()
			inParallel(b, callers, func(i int) {
				if _, err := increment.Call(ctx, h, ids[i%objects], 1); err != nil {
					b.Error(err)
				}
			})
		})
		b.Run(fmt.Sprintf("callers=%d/reference", callers), func(b *testing.B) {
			db := openRaw(b)
			os := make([]*bareTurn, objects)
			for i := range os {
				os[i] = &bareTurn{key: fmt.Appendf(nil, "object-%08d/n", i)}
			}
			inParallel(b, callers, func(i int) { os[i%objects].increment(b, db) })
		})
	}
}
