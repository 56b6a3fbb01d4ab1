package workload

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/object"
)

// SleeperClass is the class of the objects of Alarms.
const SleeperClass = "sleeper"

// Alarms is a host with objects that have an alarm and do nothing when it fires.
type Alarms struct {
	*Host
	arm *object.Method[time.Time, bool]

	entered, left atomic.Int64
	expected      atomic.Int64
	late          atomic.Pointer[measure.Latencies]
	all           atomic.Pointer[chan struct{}]
}

type sleeper struct {
	st *object.State
	a  *Alarms
}

// Alarm notes how late it is.
func (s *sleeper) Alarm(_ context.Context, info object.AlarmInfo) error {
	a := s.a
	n := a.entered.Add(1)
	if late := a.late.Load(); late != nil {
		late.RecordAs(int(n), max(time.Since(info.Scheduled), 1))
	}
	if a.left.Add(1) == a.expected.Load() {
		close(*a.all.Load())
	}
	return nil
}

// Definition is the class of the sleepers; a counts their firings.
func (a *Alarms) Definition() object.Definition {
	class := object.Define(SleeperClass, func(_ context.Context, st *object.State) (*sleeper, error) {
		return &sleeper{st, a}, nil
	})
	a.arm = object.Handle(class, "arm", func(s *sleeper, ctx context.Context, at time.Time) (bool, error) {
		return true, s.st.SetAlarm(ctx, at)
	})
	return class
}

// OpenAlarms opens a host with sleepers.
func OpenAlarms(dir string, o object.Options) (*Alarms, error) {
	a := &Alarms{}
	def := a.Definition()
	h, err := OpenHost(dir, o, def)
	a.Host = h
	return a, err
}

// Expect makes a ready for n firings; the channel is closed at the last. It must
// be called before any of them.
func (a *Alarms) Expect(n int) <-chan struct{} {
	all := make(chan struct{})
	a.late.Store(measure.NewLatencies())
	a.all.Store(&all)
	a.entered.Store(0)
	a.left.Store(0)
	a.expected.Store(int64(n))
	return all
}

// Fired is how many handlers have been entered since Expect.
func (a *Alarms) Fired() int64 { return a.left.Load() }

// Late is how late the alarms reached their handlers since Expect.
func (a *Alarms) Late() measure.Quantiles { return a.late.Load().Quantiles() }

// Arm sets the alarms of the first n sleepers; due is given their number.
func (a *Alarms) Arm(ctx context.Context, n int, due func(i int) time.Time) error {
	err := measure.Each(ctx, 512, n, func(i int) error {
		_, err := a.arm.Call(ctx, a.Host, Name(i), due(i), object.Unconfirmed())
		return err
	})
	if err != nil {
		return err
	}
	return a.Durable()
}

// Wait waits for the last firing that was expected, and until the effects of all
// are durable: until then an alarm is under way.
func (a *Alarms) Wait(ctx context.Context, all <-chan struct{}) error {
	err := await(ctx, a, all)
	for err == nil && a.Gauge("holdfast_alarms_in_flight") > 0 {
		err = await(ctx, a, time.After(200*time.Microsecond))
	}
	return err
}

func await[T any](ctx context.Context, a *Alarms, c <-chan T) error {
	select {
	case <-c:
		return nil
	case <-a.Done():
		return a.Err()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Set sets the alarm of sleeper i, durably.
func (a *Alarms) Set(i int, at time.Time) error {
	_, err := a.arm.Call(context.Background(), a.Host, Name(i), at)
	return err
}
