package workload

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// Sleepers is a host with runs of a workflow that sleep until a time, make a step, and
// begin another.
type Sleepers struct {
	*Host
	runs *workflow.Workflow[time.Time, int]
	next atomic.Int64 // the number of the next run
	past atomic.Pointer[countdown]
}

// OpenSleepers opens a host with sleepers, of which so many execute at a time. They leave
// memory soon after they have fallen asleep.
func OpenSleepers(dir string, atOnce int) (*Sleepers, error) {
	return openSleepers(dir, atOnce, object.Options{})
}

// sleepersClass is the class of the runs of Sleepers.
const sleepersClass = "asleep"

func openSleepers(dir string, atOnce int, o object.Options) (*Sleepers, error) {
	s := &Sleepers{}
	s.runs = workflow.New[time.Time, int](sleepersClass, workflow.Config{Concurrency: atOnce})
	s.runs.Func(s.sleep)
	o.IdleAfter = 100 * time.Millisecond
	h, err := OpenHost(dir, o, s.runs)
	s.Host = h
	return s, err
}

func (s *Sleepers) sleep(c *workflow.Context, until time.Time) (int, error) {
	if err := workflow.Sleep(c, until.Sub(c.Now())); err != nil {
		return 0, err
	}
	if _, err := workflow.Step(c, "first", func(context.Context) (int, error) { return 0, nil }); err != nil {
		return 0, err
	}
	return workflow.Step(c, "second", func(context.Context) (int, error) {
		if past := s.past.Load(); past != nil {
			past.one() // the entry of the first step is stored
		}
		return 0, nil
	})
}

// Start starts n runs that sleep until the time, and returns when none of them is in memory.
func (s *Sleepers) Start(ctx context.Context, n int, until time.Time) error {
	err := measure.Each(ctx, 512, n, func(int) error {
		_, err := s.runs.Start(ctx, s.Host, strconv.FormatInt(s.next.Add(1), 10), until)
		return err
	})
	if err != nil {
		return err
	}
	return s.Evicted(ctx)
}

// Wake brings each run into memory, where it goes on sleeping, and returns when none is in
// memory any more.
func (s *Sleepers) Wake(ctx context.Context) error {
	err := measure.Each(ctx, 16, int(s.next.Load()), func(i int) error {
		_, err := s.runs.Status(ctx, s.Host, strconv.Itoa(i+1))
		return err
	})
	if err != nil {
		return err
	}
	return s.Evicted(ctx)
}

// Due starts n runs that sleep until one moment, and returns how long it took from then until
// the next step of each was stored, and the costs of each. If the start takes longer than
// expected it tries again.
func (s *Sleepers) Due(ctx context.Context, n int) (time.Duration, measure.Costs, error) {
	const longest = 5 * time.Minute
	for lead := time.Duration(n)*400*time.Microsecond + time.Second; lead < longest; lead *= 3 {
		due, past := time.Now().Add(lead), newCountdown(n)
		s.past.Store(past)
		if err := s.Start(ctx, n, due); err != nil {
			return 0, nil, err
		}
		wait := time.Until(due)
		time.Sleep(wait)
		meters := measure.Start(s.Meters())
		select {
		case <-past.done:
		case <-ctx.Done():
			return 0, nil, context.Cause(ctx)
		}
		if wait > 0 {
			return time.Since(due), meters.PerOp(int64(n)), nil
		}
	}
	return 0, nil, errors.New("starting the runs takes too long: try again when the machine is quiet")
}
