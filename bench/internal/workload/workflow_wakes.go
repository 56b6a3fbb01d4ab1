package workload

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// Record is a value of a step for rows that repeat histories.
type Record struct {
	ID    string    `json:"id"`
	Name  string    `json:"name"`
	At    time.Time `json:"at"`
	Total int       `json:"total"`
	Tags  []string  `json:"tags"`
}

// record is what each such step returns.
var record = Record{ID: "order-00000001", Name: "a customer", At: time.Unix(1_700_000_000, 0).UTC(), Total: 4999, Tags: []string{"new", "paid"}}

// Wakes is a host with runs of a workflow that have made some steps and then wait for
// signals. After each signal they make a step, and begin another.
type Wakes struct {
	*Host
	runs   int
	wf     *workflow.Workflow[int, int]
	signal *workflow.Signal[int]
	stored chan struct{} // told when the step after a signal is stored
	names  []string
	ctx    context.Context

	recorder *recorder // nil: nothing is recorded
}

// Wake is how Wakes are opened.
type Wake struct {
	Runs    int
	Entries int  // steps of each run before it waits
	Structs bool // the steps return a Record, by JSON, instead of some bytes
	Anew    bool // each run begins anew after each signal, so its history does not grow
	// IdleAfter is how long a run stays in memory. Zero: as long as with the defaults.
	IdleAfter time.Duration
	recorder  *recorder // of one run, until the step after its signal is stored
}

// wakesClass is the class of the runs of Wakes.
const wakesClass = "wakes"

// options are those of the host, and names those of its runs.
func (o Wake) options() (object.Options, []string) {
	if o.recorder != nil {
		return o.recorder.options(), []string{recordedRun}
	}
	return object.Options{IdleAfter: o.IdleAfter}, Names(o.Runs)
}

// OpenWakes opens a host with such runs, all of them waiting.
func OpenWakes(ctx context.Context, dir string, o Wake) (*Wakes, error) {
	options, names := o.options()
	w := &Wakes{
		runs: o.Runs, signal: workflow.NewSignal[int]("go on"), stored: make(chan struct{}, 1), names: names, ctx: context.Background(),
		recorder: o.recorder,
	}
	w.wf = workflow.New[int, int](wakesClass, workflow.Config{
		Signals: workflow.Signals{w.signal}, MaxEntries: 1 << 30, MaxBytes: 1 << 40, Retention: jobs.Retention{Completed: time.Hour},
	})
	w.wf.Func(func(c *workflow.Context, n int) (int, error) {
		if err := steps(c, n, o.Structs); err != nil {
			return 0, err
		}
		for {
			if err := w.next(c); err != nil {
				return 0, err
			}
			if o.Anew {
				return w.wf.ContinueAs(c, n)
			}
		}
	})
	h, err := OpenHost(dir, options, w.wf)
	if err != nil {
		return nil, err
	}
	w.Host = h
	if err := w.begin(ctx, o.Entries); err != nil {
		return nil, join(err, h.Close)
	}
	return w, nil
}

// steps makes n steps.
func steps(c *workflow.Context, n int, structs bool) (err error) {
	for i := 0; i < n && err == nil; i++ {
		if structs {
			_, err = workflow.Step(c, "step", func(context.Context) (Record, error) { return record, nil })
		} else {
			_, err = workflow.Step(c, "step", func(context.Context) ([]byte, error) { return filler[:100], nil })
		}
	}
	return err
}

// next waits for a signal, and tells when the step after it is stored.
func (w *Wakes) next(c *workflow.Context) error {
	if _, err := w.signal.Wait(c, 0); err != nil {
		return err
	}
	if _, err := workflow.Step(c, "first", func(context.Context) (int, error) { return 0, nil }); err != nil {
		return err
	}
	_, err := workflow.Step(c, "second", func(context.Context) (int, error) {
		if w.recorder != nil {
			w.recorder.end()
		}
		w.stored <- struct{}{}
		return 0, nil
	})
	return err
}

// begin starts the runs and returns when all of them wait.
func (w *Wakes) begin(ctx context.Context, entries int) error {
	err := measure.Each(ctx, 64, w.runs, func(i int) error {
		_, err := w.wf.Start(ctx, w.Host, w.names[i], entries)
		return err
	})
	if err != nil {
		return err
	}
	return measure.Each(ctx, 16, w.runs, func(i int) error { return w.waits(ctx, i) })
}

// waits returns when run i waits for a signal.
func (w *Wakes) waits(ctx context.Context, i int) error {
	for {
		s, err := w.wf.Status(ctx, w.Host, w.names[i])
		if err != nil || len(s.Waits) > 0 {
			return err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Wake sends a signal to run i modulo their number, and returns when the step that follows
// it is stored. The run waits again a little later.
func (w *Wakes) Wake(i int) error {
	if err := w.signal.Send(w.ctx, w.Host, w.wf, w.names[i%w.runs], i); err != nil {
		return err
	}
	select {
	case <-w.stored:
		return nil
	case <-w.Done():
		return w.Err()
	}
}

// Warm wakes run after run for a time, each when the one before waits again, and returns how
// long each took until its next step was stored. The commits that follow are waited for and
// not measured, because the next signal would stand behind their syncs.
func (w *Wakes) Warm(ctx context.Context, d time.Duration) (measure.Quantiles, measure.Costs, error) {
	lat, meters := measure.NewLatencies(), measure.Start(w.Meters())
	n := 0
	for began := time.Now(); time.Since(began) < d && ctx.Err() == nil; n++ {
		start := time.Now()
		if err := w.Wake(n); err != nil {
			return measure.Quantiles{}, nil, err
		}
		lat.Record(time.Since(start))
		if err := w.waits(ctx, n%w.runs); err != nil {
			return measure.Quantiles{}, nil, err
		}
	}
	return lat.Quantiles(), meters.PerOp(int64(n)), context.Cause(ctx)
}

// Cold wakes each run once, from disk, and returns how long each took.
func (w *Wakes) Cold(ctx context.Context) (measure.Quantiles, measure.Costs, error) {
	if err := w.Evicted(ctx); err != nil {
		return measure.Quantiles{}, nil, err
	}
	lat, meters := measure.NewLatencies(), measure.Start(w.Meters())
	for i := range w.runs {
		start := time.Now()
		if err := w.Wake(i); err != nil {
			return measure.Quantiles{}, nil, err
		}
		lat.Record(time.Since(start))
	}
	return lat.Quantiles(), meters.PerOp(int64(w.runs)), nil
}
