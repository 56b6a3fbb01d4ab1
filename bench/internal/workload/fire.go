package workload

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// armed arms n alarms, the i-th of them due after(i) after a moment that lies yet
// to come when it returns, and returns that moment and a channel that is closed
// when all have fired. If arming takes longer than expected it tries again.
func (a *Alarms) armed(ctx context.Context, n int, after func(i int) time.Duration) (first time.Time, all <-chan struct{}, err error) {
	const longest = 2 * time.Minute
	for lead := time.Duration(n)*20*time.Microsecond + 300*time.Millisecond; lead < longest; lead *= 3 {
		all = a.Expect(n)
		first = time.Now().Add(lead)
		if err := a.Arm(ctx, n, func(i int) time.Time { return first.Add(after(i)) }); err != nil {
			return first, nil, err
		}
		if wait := time.Until(first) - time.Millisecond; wait > 0 {
			time.Sleep(wait)
			return first, all, nil
		}
		if err := a.Wait(ctx, all); err != nil {
			return first, nil, err
		}
	}
	return first, nil, errors.New("arming the alarms takes too long: try again when the machine is quiet")
}

// Drain arms n alarms for one moment and returns how long it took from then until
// the effect of the last was durable, how late they were, and what each cost.
func (a *Alarms) Drain(ctx context.Context, n int) (time.Duration, measure.Quantiles, measure.Costs, error) {
	due, all, err := a.armed(ctx, n, func(int) time.Duration { return 0 })
	if err != nil {
		return 0, measure.Quantiles{}, nil, err
	}
	meters := measure.Start(a.Meters())
	err = a.Wait(ctx, all)
	return time.Since(due), a.Late(), meters.PerOp(int64(n)), err
}

// Steady arms n alarms, so many of them due each second, and returns how late
// they were and what each cost.
func (a *Alarms) Steady(ctx context.Context, n int, perSecond float64) (measure.Quantiles, measure.Costs, error) {
	_, all, err := a.armed(ctx, n, func(i int) time.Duration { return nth(i, perSecond) })
	if err != nil {
		return measure.Quantiles{}, nil, err
	}
	meters := measure.Start(a.Meters())
	err = a.Wait(ctx, all)
	return a.Late(), meters.PerOp(int64(n)), err
}

// nth is when the i-th of so many events a second is.
func nth(i int, perSecond float64) time.Duration {
	return time.Duration(float64(i) / perSecond * float64(time.Second))
}

// Settled waits until the scheduler has read what it keeps in memory, and returns
// how many alarms that are.
func (a *Alarms) Settled(ctx context.Context) (float64, error) {
	for held := -1.0; ; {
		now := a.Gauge("holdfast_alarms_held")
		if now == held && now > 0 {
			return now, nil
		}
		held = now
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}
