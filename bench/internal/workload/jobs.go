package workload

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// Event is an event of a debounce object.
type Event struct {
	ID string `json:"id"`
	N  int    `json:"n"`
}

// Debounce is a host with debounce objects that collect and do not flush.
type Debounce struct {
	*Host
	job   *debounce.Job[Event, struct{}]
	names []string
	next  atomic.Int64
}

// OpenDebounce opens a host with some debounce objects.
func OpenDebounce(dir string, objects int) (*Debounce, error) {
	d := &Debounce{names: Names(objects)}
	d.job = debounce.New(debounce.Config[Event, struct{}]{
		Name: "hooks", Quiet: time.Hour, MaxPending: 1 << 30,
		Flush: func(context.Context, *debounce.Flush[Event, struct{}]) error { return nil },
	})
	h, err := OpenHost(dir, object.Options{}, d.job)
	d.Host = h
	return d, err
}

// Add adds an event with an id of its own, durably.
func (d *Debounce) Add(i int) error {
	n := int(d.next.Add(1))
	id := "event " + strconv.Itoa(n)
	_, err := d.job.Add(context.Background(), d.Host, d.names[i%len(d.names)], Event{ID: id, N: n}, debounce.EventID(id))
	return err
}

// Runs is a host with a continuous job that runs again and again.
type Runs struct {
	*Host
	job  *continuous.Job[int]
	lat  *measure.Latencies
	last time.Time            // begin of the run before; zero: none
	next func(ops int64) bool // whether another run follows
	ops  int64
	done chan struct{}
}

// OpenRuns opens a host with one continuous job, which exists and waits.
func OpenRuns(ctx context.Context, dir string) (*Runs, error) {
	r := &Runs{}
	r.job = continuous.New(continuous.Config[int]{Name: "job", Run: r.run, StartLater: true})
	h, err := OpenHost(dir, object.Options{}, r.job)
	if err != nil {
		return nil, err
	}
	r.Host = h
	if _, err := r.job.Start(ctx, h, "a", 0); err != nil {
		return nil, join(err, h.Close)
	}
	return r, nil
}

// run notes the time since the run before and makes the next one due. Runs of
// one job never overlap.
func (r *Runs) run(_ context.Context, run *continuous.Run[int]) error {
	now := time.Now()
	if !r.last.IsZero() {
		r.lat.Record(now.Sub(r.last))
		r.ops++
	}
	r.last = now
	run.State++
	if r.next(r.ops) {
		run.NextAt(run.Scheduled)
	} else {
		close(r.done)
	}
	return nil
}

// Loop lets the job run for about d, and twice at least, and measures from the begin of each run to
// the begin of the next: one end batch and one begin batch.
func (r *Runs) Loop(ctx context.Context, d time.Duration) (measure.Run, error) {
	start := time.Now()
	end := start.Add(d)
	err := r.while(ctx, func(ops int64) bool { return ops == 0 || time.Now().Before(end) })
	return measure.Run{Ops: r.ops, Elapsed: time.Since(start), Lat: r.lat.Quantiles()}, err
}

// Times lets the job run n times more than once.
func (r *Runs) Times(ctx context.Context, n int) error {
	return r.while(ctx, func(ops int64) bool { return ops < int64(n) })
}

// while triggers the job and returns when no further run follows. No run is under
// way then but the last, which changes nothing of r any more.
func (r *Runs) while(ctx context.Context, next func(ops int64) bool) error {
	r.lat, r.ops, r.last, r.done, r.next = measure.NewLatencies(), 0, time.Time{}, make(chan struct{}), next
	if err := r.job.Trigger(ctx, r.Host, "a"); err != nil {
		return err
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
