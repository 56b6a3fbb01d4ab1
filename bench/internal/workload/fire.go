package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/storage"
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

// Drain arms n alarms for one moment and returns how long it took from then until the
// effect of the last was durable, how late they were, and the costs of each.
func (a *Alarms) Drain(ctx context.Context, n int) (time.Duration, measure.Quantiles, measure.Costs, error) {
	due, all, err := a.armed(ctx, n, func(int) time.Duration { return 0 })
	if err != nil {
		return 0, measure.Quantiles{}, nil, err
	}
	meters := measure.Start(a.Meters())
	err = a.Wait(ctx, all)
	return time.Since(due), a.Late(), meters.PerOp(int64(n)), err
}

// Flight is how many alarms the scheduler hands to a host at a time.
const Flight = 128

// DrainFlights fires n alarms in full flights, again and again for so many rounds,
// and returns the least that each alarm cost in any round. The clock must be that
// of the host, which must take n alarms at a time and hold that many in memory. All
// of a round are set before the clock passes the moment at which they are due, so
// the speed of the machine does not decide how many fly together. It does decide
// how many goroutines serve them, and each new one allocates; hence the least.
func (a *Alarms) DrainFlights(ctx context.Context, clock *Ahead, n, rounds int) (measure.Costs, error) {
	if n%Flight != 0 {
		return nil, fmt.Errorf("%d alarms do not fill flights of %d: use a multiple", n, Flight)
	}
	var least measure.Costs
	for range rounds {
		all, due := a.Expect(n), clock.Now().Add(time.Hour)
		if err := a.Arm(ctx, n, func(int) time.Time { return due }); err != nil {
			return nil, err
		}
		meters := measure.Start(a.Meters())
		before := a.Store().Applied()
		clock.Pass(time.Hour)
		a.RecheckAlarms()
		if err := a.applied(ctx, before+storage.Ticket(n+n/Flight)); err != nil {
			return nil, err
		}
		least = measure.Least(least, meters.PerOp(int64(n)))
		if err := a.Wait(ctx, all); err != nil {
			return nil, err
		}
	}
	return least, nil
}

// applied waits until a commit is durable, and allocates next to nothing meanwhile.
func (a *Alarms) applied(ctx context.Context, t storage.Ticket) error {
	for a.Store().Applied() < t {
		if err := await(ctx, a, time.After(10*time.Millisecond)); err != nil {
			return err
		}
	}
	return a.Durable()
}

// Steady arms n alarms, so many of them due each second, and returns how late they were
// and the costs of each.
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

// Settled waits until the scheduler has filled its memory, and returns how many alarms
// are in it.
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
