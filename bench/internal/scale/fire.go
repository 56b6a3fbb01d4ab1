package scale

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
)

// fireAll opens a store with overdue alarms only, and watches the rate at which they
// fire, because each fired alarm leaves a tombstone at the head of the index.
func fireAll(ctx context.Context, o Options, r *Result) {
	n := o.of(10_000_000, 10_000)
	dir := filepath.Join(o.Dir, "store")
	fail.On(makeOverdue(ctx, dir, n))
	a := &workload.Alarms{}
	def := a.Definition()
	all := a.Expect(n)
	start := time.Now()
	h := fail.Must(workload.OpenHost(dir, object.Options{MaxLive: liveCap}, def))
	a.Host = h
	defer h.Close()
	var fired, heap [][2]float64
	every := min(max(o.For/40, 20*time.Millisecond), 500*time.Millisecond)
	sampler := sample(ctx, every, func(at float64) {
		fired = append(fired, [2]float64{at, float64(a.Fired())})
		heap = append(heap, [2]float64{at, heapMiB()})
	})
	err := a.Wait(ctx, all)
	total := time.Since(start)
	sampler.stop()
	fail.On(err)
	rates := slope(fired)
	r.figure("alarms", float64(n), "")
	r.figure("open until the last was done", total.Seconds(), "s")
	r.figure("fired", float64(n)/total.Seconds(), "/s")
	if q := len(rates) / 4; q > 0 {
		ratio := mean(rates[len(rates)-q:]) / mean(rates[:q])
		r.check("rate of the last quarter / of the first", ratio, "", "≥ 1/1.3", ratio >= 1/1.3)
	}
	r.check("heap at most", highest(heap), "MiB", "≤ 512", highest(heap) <= 512)
	r.Curves = append(r.Curves,
		Curve{"alarms fired in a row", "alarms fired", "alarms/s", thin(rates, 200)},
		Curve{"heap while alarms fire in a row", "seconds", "MiB", thin(heap, 200)})
}

func makeOverdue(ctx context.Context, dir string, n int) error {
	return workload.Make(ctx, dir, workload.Fill{
		Class: workload.SleeperClass, Objects: n, First: time.Now().Add(-time.Hour), Step: time.Microsecond,
	})
}

// slope turns counts over time into rates over counts.
func slope(counts [][2]float64) (rates [][2]float64) {
	for i := 1; i < len(counts); i++ {
		from, to := counts[i-1], counts[i]
		if dt := to[0] - from[0]; dt > 0 && to[1] > from[1] {
			rates = append(rates, [2]float64{to[1], (to[1] - from[1]) / dt})
		}
	}
	return rates
}

// overdue measures calls of other objects while many overdue alarms fire, and the
// same calls without.
func overdue(ctx context.Context, o Options, r *Result) {
	const callers, objects = 16, 1000
	n := o.of(1_000_000, 5000)
	quiet := fail.Must(workload.OpenCounters(filepath.Join(o.Dir, "quiet"), objects, object.Options{}))
	normal, err := measure.Closed(ctx, callers, o.For, quiet.Increment)
	fail.On(errors.Join(err, quiet.Close()))
	dir := filepath.Join(o.Dir, "overdue")
	fail.On(makeOverdue(ctx, dir, n))
	a := &workload.Alarms{}
	def := a.Definition()
	all := a.Expect(n)
	before := measure.HeapBytes() / (1 << 20)
	busy := fail.Must(workload.OpenCounters(dir, objects, object.Options{MaxLive: liveCap}, def))
	defer busy.Close()
	a.Host = busy.Host
	var heap [][2]float64
	sampler := sample(ctx, 20*time.Millisecond, func(at float64) { heap = append(heap, [2]float64{at, heapMiB()}) })
	firing, cancel := context.WithCancel(ctx)
	var waited error
	var waiting sync.WaitGroup
	waiting.Go(func() {
		waited = a.Wait(ctx, all)
		cancel()
	})
	meanwhile, err := measure.Closed(firing, callers, time.Hour, busy.Increment)
	if ctx.Err() == nil && firing.Err() != nil {
		err = nil // the last alarm has ended it
	}
	cancel()
	waiting.Wait()
	sampler.stop()
	fail.On(errors.Join(err, waited))
	r.figure("overdue alarms", float64(n), "")
	r.figure("fired in", meanwhile.Elapsed.Seconds(), "s")
	r.figure("durable call, p50, none overdue", normal.Lat.P50, "µs")
	r.figure("durable call, p50, meanwhile", meanwhile.Lat.P50, "µs")
	r.figure("durable call, p99, none overdue", normal.Lat.P99, "µs")
	r.check("durable call, p99, meanwhile", meanwhile.Lat.P99, "µs", "< 10 × normal", meanwhile.Lat.P99 < 10*normal.Lat.P99)
	r.figure("durable call, slowest, meanwhile", meanwhile.Lat.Max, "µs")
	more := highest(heap) - before
	r.check("heap at most, beside the heap before", more, "MiB", "≤ 512", more <= 512)
}
