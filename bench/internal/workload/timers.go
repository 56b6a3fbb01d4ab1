package workload

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/timers"
)

// clock is an object with timers.
type clock struct{ timers *timers.Timers }

func (c *clock) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return c.timers.Alarm(ctx, info)
}

// hand sets some timers to times that follow one another.
type hand struct {
	From, To int
	At, Step int64 // nanoseconds
}

// Timers is a host with one object that has timers.
type Timers struct {
	*Host
	set    *object.Method[hand, int]
	cancel *object.Method[int, int]
	n      int
	base   int64 // when the earliest is due
	left   atomic.Int64
	done   chan struct{}
	ctx    context.Context
}

// TimerName is the name of timer i.
func TimerName(i int) string { return fmt.Sprintf("timer-%08d", i) }

// OpenTimers opens a host with one object that has no timers yet. The handlers do nothing.
func OpenTimers(dir string, o object.Options) (*Timers, error) {
	m := &Timers{ctx: context.Background(), done: make(chan struct{})}
	class := object.Define("clock", func(ctx context.Context, st *object.State) (*clock, error) {
		t, err := timers.Attach(ctx, st, timers.Options{}, func(context.Context, timers.Timer) error {
			if m.left.Add(-1) == 0 {
				close(m.done)
			}
			return nil
		})
		return &clock{t}, err
	}, timers.ClassOptions(object.ClassOptions{}))
	m.set = object.Handle(class, "set", func(c *clock, ctx context.Context, h hand) (int, error) {
		for i := h.From; i < h.To; i++ {
			if err := c.timers.At(ctx, TimerName(i), time.Unix(0, h.At+h.Step*int64(i-h.From)), nil); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	m.cancel = object.Handle(class, "cancel", func(c *clock, ctx context.Context, i int) (int, error) {
		_, err := c.timers.Cancel(ctx, TimerName(i))
		return 0, err
	})
	var err error
	m.Host, err = OpenHost(dir, o, class)
	return m, err
}

// put sets the timers 0 to n, in portions.
func (m *Timers) put(n int, at, step int64) error {
	m.n, m.base = n, at
	const portion = 1000
	for i := 0; i < n; i += portion {
		h := hand{i, min(i+portion, n), at + step*int64(i), step}
		if _, err := m.set.Call(m.ctx, m.Host, "hot", h, object.Unconfirmed()); err != nil {
			return err
		}
	}
	return m.Durable()
}

// Fill sets n timers, and more, for tomorrow. Timer 0 stays the earliest.
func (m *Timers) Fill(n int) error {
	return m.put(n+1, time.Now().Add(24*time.Hour).UnixNano(), int64(time.Millisecond))
}

// Move moves a timer that is not the earliest to another time.
func (m *Timers) Move(i int) error {
	k := 1 + i%(m.n-1)
	_, err := m.set.Call(m.ctx, m.Host, "hot", hand{From: k, To: k + 1, At: spread(m.base, i, m.n)})
	return err
}

// spread is a time behind base that differs from call to call.
func spread(base int64, i, n int) int64 {
	return base + 1 + int64(uint64(i)*0x9e3779b97f4a7c15>>1)%(int64(n)*int64(time.Millisecond))
}

// SetCancel sets a timer that is not the earliest, and cancels it in another turn.
func (m *Timers) SetCancel(i int) error {
	k := 1_000_000 + i
	if _, err := m.set.Call(m.ctx, m.Host, "hot", hand{From: k, To: k + 1, At: spread(m.base, i, m.n)}); err != nil {
		return err
	}
	_, err := m.cancel.Call(m.ctx, m.Host, "hot", k)
	return err
}

// Drain sets n timers that are due at once, and returns how long after that time the effect
// of the last is durable.
func (m *Timers) Drain(n int) (time.Duration, measure.Costs, error) {
	m.left.Store(int64(n))
	due := time.Now().Add(200*time.Millisecond + time.Duration(n)*200*time.Microsecond)
	if err := m.put(n, due.UnixNano(), 0); err != nil {
		return 0, nil, err
	}
	if late := time.Since(due); late > 0 {
		return 0, nil, fmt.Errorf("the timers were set %v after they were due", late)
	}
	time.Sleep(time.Until(due))
	meters := measure.Start(m.Meters())
	<-m.done
	// A call behind the last alarm is answered when that is durable.
	_, err := m.cancel.Call(m.ctx, m.Host, "hot", n)
	return time.Since(due), meters.PerOp(int64(n)), err
}
