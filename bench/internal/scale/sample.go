package scale

import (
	"context"
	"runtime/metrics"
	"sync"
	"time"
)

// heapMiB is the size of the heap, garbage included.
func heapMiB() float64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return float64(s[0].Value.Uint64()) / (1 << 20)
}

// sampler calls f now and then until it is stopped.
type sampler struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// sample begins to call f, with the time since now in seconds.
func sample(ctx context.Context, every time.Duration, f func(at float64)) *sampler {
	ctx, cancel := context.WithCancel(ctx)
	s := &sampler{cancel: cancel}
	start := time.Now()
	s.done.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f(time.Since(start).Seconds())
			case <-ctx.Done():
				return
			}
		}
	})
	return s
}

// stop returns when f is not called any more.
func (s *sampler) stop() {
	s.cancel()
	s.done.Wait()
}

// thin keeps at most n of the points, evenly.
func thin(points [][2]float64, n int) [][2]float64 {
	if len(points) <= n {
		return points
	}
	out := make([][2]float64, n)
	for i := range out {
		out[i] = points[i*(len(points)-1)/(n-1)]
	}
	return out
}

// highest is the greatest y.
func highest(points [][2]float64) (y float64) {
	for _, p := range points {
		y = max(y, p[1])
	}
	return y
}

// mean is the mean of y over a part of the points.
func mean(points [][2]float64) (y float64) {
	for _, p := range points {
		y += p[1]
	}
	return y / float64(max(len(points), 1))
}
