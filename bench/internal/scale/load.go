package scale

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/bench/internal/raw"
	"github.com/holdfast-dev/holdfast/bench/internal/workload"
	"github.com/holdfast-dev/holdfast/object"
)

// stallBound is how long no call may take without an explanation.
const stallBound = 50 * time.Millisecond

// keptUp is the part of a rate from which it counts as reached.
const keptUp = 0.98

// load finds the most durable increments a second, and measures latencies at parts of
// that, as they are seen by calls that come at a steady rate. Beside ours the bare turn
// loop and an operation that does nothing get the same rates, so that the shares of the
// disk and the generator can be told apart, and ours gets them once more with
// GOMAXPROCS one greater: a flush then competes for a processor with threads, which the
// kernel lets go first when they wake up, and not with goroutines, which wait until its
// ten milliseconds are over.
func load(ctx context.Context, o Options, r *Result) {
	const callers, objects, ours = 1024, 1000, "holdfast"
	h := fail.Must(workload.OpenCounters(filepath.Join(o.Dir, "ours"), objects, object.Options{}))
	defer h.Close()
	disk := measure.NewDisk()
	db := fail.Must(raw.Open(filepath.Join(o.Dir, "raw"), disk))
	defer db.Close()
	turns := raw.NewTurns(db, objects)
	most := fail.Must(measure.Closed(ctx, callers, o.For, h.Increment))
	r.figure("most durable increments, 1,024 callers, 1,000 objects", most.PerSecond(), "/s")
	procs := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(procs)
	sides := []struct {
		name  string
		op    func(i int) error
		disk  *measure.Disk
		procs int
	}{
		{ours, h.Increment, h.Disk, procs},
		{"holdfast, GOMAXPROCS one more", h.Increment, h.Disk, procs + 1},
		{"the bare turn loop", turns.Increment, disk, procs},
		{"nothing", func(int) error { return nil }, disk, procs},
	}
	curves := map[string][2]*Curve{}
	for _, side := range sides {
		curves[side.name] = [2]*Curve{
			{"p50 of " + side.name, "% of the most", "ms", nil}, {"p99 of " + side.name, "% of the most", "ms", nil},
		}
	}
	for _, percent := range []int{25, 50, 75, 90} {
		for _, side := range sides {
			runtime.GOMAXPROCS(side.procs)
			s := stalls{disk: side.disk}
			rate := most.PerSecond() * float64(percent) / 100
			run := fail.Must(measure.Open(ctx, rate, o.For, callers, side.op, s.done))
			name := fmt.Sprintf("%s at %d %%", side.name, percent)
			kept := run.PerSecond() / rate
			if s.behind = kept < keptUp; s.behind {
				r.note("%s: only %.0f %% of the rate was reached, so its latencies are those of a queue that grows", name, 100*kept)
			}
			r.figure(name+": p50", run.Lat.P50/1e3, "ms")
			r.figure(name+": p99", run.Lat.P99/1e3, "ms")
			r.figure(name+": p99.9", run.Lat.P999/1e3, "ms")
			for i, v := range []float64{run.Lat.P50, run.Lat.P99} {
				c := curves[side.name][i]
				c.Points = append(c.Points, [2]float64{float64(percent), v / 1e3})
			}
			s.report(r, name, side.name == ours)
		}
	}
	for _, side := range sides {
		r.Curves = append(r.Curves, *curves[side.name][0], *curves[side.name][1])
	}
}

// stalls are the calls that took longer than stallBound; those that lie close
// together are one stall.
type stalls struct {
	disk   *measure.Disk
	behind bool // the rate was not reached

	mu    sync.Mutex
	found []stall
}

type stall struct {
	last       time.Time
	worst      time.Duration
	calls      int
	compacting bool // a flush or compaction was writing at some of the calls' ends
}

// done is told of the end of each call.
func (s *stalls) done(at time.Time, late time.Duration) {
	if late < stallBound {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.found); n == 0 || at.Sub(s.found[n-1].last) > stallBound {
		s.found = append(s.found, stall{})
	}
	f := &s.found[len(s.found)-1]
	f.last, f.worst, f.calls = at, max(f.worst, late), f.calls+1
	f.compacting = f.compacting || s.disk.Compacting()
}

// report adds the stalls. The bound is on those of ours during a flush or a compaction,
// unless the rate was too high for the machine.
func (s *stalls) report(r *Result, name string, bounded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	compacting := 0
	for _, f := range s.found {
		if f.compacting {
			compacting++
		}
		r.note("%s: a stall of %v, %d calls, beside a flush or compaction: %t", name, f.worst.Round(time.Millisecond), f.calls, f.compacting)
	}
	r.figure(name+": stalls above 50 ms", float64(len(s.found)), "")
	if bounded {
		r.check(name+": of these beside a flush or compaction", float64(compacting), "", "none, if the rate was reached", compacting == 0 || s.behind)
	}
}
