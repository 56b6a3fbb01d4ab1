package scale

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
	"github.com/holdfast-dev/holdfast/storage"
)

// cap is how many objects may be live in scenarios of many objects.
const liveCap = 10_000

// large opens a store with many objects and alarms, and a small one, and does the
// same with both.
func large(ctx context.Context, o Options, r *Result) {
	n := o.of(10_000_000, 10_000)
	small := fail.Must(openLarge(ctx, filepath.Join(o.Dir, "small"), 1000, nil))
	defer small.Close()
	big := fail.Must(openLarge(ctx, filepath.Join(o.Dir, "large"), n, r))
	defer big.Close()
	for _, step := range []func(context.Context, Options, *Result, *stores){operations, fireSome, churn, scrub} {
		step(ctx, o, r, &stores{big, small, n})
	}
}

type stores struct {
	big, small *store
	objects    int
}

// store is a host with counters, of which all exist, and sleepers.
type store struct {
	*workload.Counters
	alarms  *workload.Alarms
	dir     string
	objects int
}

// openLarge makes a store of n counters, each with a value and an alarm that is
// far away, and opens it.
func openLarge(ctx context.Context, dir string, n int, r *Result) (*store, error) {
	start := time.Now()
	fail.On(workload.Make(ctx, dir, workload.Fill{
		Class: workload.CounterClass, Objects: n, Value: workload.Number8(1), First: time.Now().Add(24 * time.Hour), Step: time.Microsecond,
	}))
	made, before := time.Since(start), measure.HeapBytes()
	s := &store{alarms: &workload.Alarms{}, dir: dir, objects: n}
	start = time.Now()
	s.Counters = fail.Must(workload.OpenCounters(dir, n, object.Options{MaxLive: liveCap}, s.alarms.Definition()))
	open := time.Since(start)
	s.alarms.Host = s.Host
	if err := s.Read(n / 2); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	first := time.Since(start)
	if r == nil {
		return s, nil
	}
	size, err := workload.DiskBytes(dir)
	r.figure("objects with an alarm", float64(n), "")
	r.figure("made in", made.Seconds(), "s")
	r.figure("disk of an object, compacted", float64(size)/float64(n), "B")
	r.figure("open", millis(open), "ms")
	r.figure("open and first call", millis(first), "ms")
	names := float64(min(n, 1<<20)) * 24 // ours, not the host's
	r.figure("heap of the open host", (measure.HeapBytes()-before-names)/(1<<20), "MiB")
	return s, err
}

// operations measures single operations, mostly on objects that are not in memory.
func operations(ctx context.Context, o Options, r *Result, s *stores) {
	far := time.Now().Add(48 * time.Hour)
	id := func(h *store, i int) storage.ID {
		return storage.ID{Class: workload.CounterClass, Name: workload.Name(i % h.objects)}
	}
	for _, op := range []struct {
		name string
		do   func(h *store, i int) error
	}{
		{"call that reads", func(h *store, i int) error { return h.Read(i) }},
		{"durable increment", func(h *store, i int) error { return h.Increment(i) }},
		{"arm", func(h *store, i int) error { return h.Arm(i, far) }},
		{"inspect", func(h *store, i int) error {
			_, err := h.Inspect(ctx, id(h, i))
			return err
		}},
		{"list 100 objects", func(h *store, i int) error {
			_, err := h.Objects(ctx, workload.CounterClass, object.ObjectsOptions{After: workload.Name(i % h.objects), Limit: 100})
			return err
		}},
		{"delete", func(h *store, i int) error { return h.Delete(ctx, id(h, i)) }},
	} {
		p50 := map[*store]float64{}
		for _, h := range []*store{s.small, s.big} {
			run, err := measure.Closed(ctx, 1, o.For/10, func(int) error { return op.do(h, rand.IntN(h.objects)) })
			if err != nil {
				fail.On(fmt.Errorf("%s: %w", op.name, err))
			}
			p50[h] = run.Lat.P50
			if h == s.big {
				r.figure(op.name+": p99", run.Lat.P99, "µs")
			}
		}
		r.figure(op.name+": p50", p50[s.big], "µs")
		r.figure(op.name+": p50 among 1,000 objects", p50[s.small], "µs")
	}
}

// fireSome fires alarms before the many that are not due.
func fireSome(ctx context.Context, o Options, r *Result, s *stores) {
	n := o.of(100_000, 1000)
	rate := map[*store]float64{}
	for _, h := range []*store{s.small, s.big} {
		d, _, _, err := h.alarms.Drain(ctx, n)
		fail.On(err)
		rate[h] = float64(n) / d.Seconds()
	}
	r.figure("alarms fired beside 1,000 objects", rate[s.small], "/s")
	ratio := rate[s.big] / rate[s.small]
	r.check("alarms fired beside all", rate[s.big], "/s", "≥ 1/1.3 of that beside 1,000", ratio >= 1/1.3)
}

// churn calls objects at random, most of which are not in memory, and writes to
// some, and looks whether memory or disk grow.
func churn(ctx context.Context, o Options, r *Result, s *stores) {
	const callers = 64
	var heap, disk [][2]float64
	live := 0.0
	sampler := sample(ctx, max(o.For/40, 50*time.Millisecond), func(at float64) {
		heap = append(heap, [2]float64{at, heapMiB()})
		live = max(live, s.big.Live())
		if size, err := workload.DiskBytes(s.big.dir); err == nil {
			disk = append(disk, [2]float64{at, float64(size) / (1 << 20)})
		}
	})
	run, err := measure.Closed(ctx, callers, 2*o.For, func(i int) error {
		if i%10 == 0 {
			return s.big.Increment(rand.IntN(s.objects))
		}
		return s.big.Read(rand.IntN(s.objects))
	})
	sampler.stop()
	fail.On(err)
	r.figure("eviction churn, 64 callers, one in ten writes", run.PerSecond(), "calls/s")
	r.figure("eviction churn: p99", run.Lat.P99, "µs")
	r.check("live objects at most", live, "", fmt.Sprintf("≤ %d and the callers", liveCap), live <= liveCap+callers)
	half := len(heap) / 2
	growth := mean(heap[half:]) / mean(heap[:half])
	r.check("heap in the second half / in the first", growth, "", "≤ 1.2", half == 0 || growth <= 1.2)
	r.Curves = append(r.Curves,
		Curve{"heap under eviction churn", "seconds", "MiB", thin(heap, 200)},
		Curve{"disk under eviction churn", "seconds", "MiB", thin(disk, 200)})
}

// scrub walks as many objects as it gets to.
func scrub(ctx context.Context, o Options, r *Result, s *stores) {
	short, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	start := time.Now()
	seen, err := recovery.Scrub(short, s.big.Host.Host, recovery.ScrubOptions{Pause: time.Nanosecond})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		fail.On(err)
	}
	r.figure("scrub without pauses", float64(seen.Objects)/time.Since(start).Seconds(), "objects/s")
	r.check("findings of the scrub", float64(len(seen.Findings)), "", "none", len(seen.Findings) == 0)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
