package workload

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// errand goes from one object to the next, as often as Hops says.
type errand struct{ Next, Hops int }

// runner counts the errands that have come to it.
type runner struct {
	st *object.State
	n  uint64
}

// add stores the number, one greater.
func (r *runner) add(ctx context.Context) error {
	r.n++
	var v [8]byte
	binary.BigEndian.PutUint64(v[:], r.n)
	return r.st.Storage().PutBytes(ctx, "n", v[:])
}

// Messages is a host with objects that send to one another, in a ring.
type Messages struct {
	*Host
	names      []string
	pass, come *object.Method[errand, int]
	look       *object.Method[struct{}, uint64]
	fill       *object.Method[int, int]
	later      *object.Method[time.Duration, int]
	stop       chan struct{} // closed: the slow receiver goes on
	ctx        context.Context
}

// Slow is the name of a receiver that handles nothing until Go.
const Slow = "slow"

// OpenMessages opens a host with some objects that send messages.
func OpenMessages(dir string, objects int, o object.Options) (*Messages, error) {
	m := &Messages{names: Names(objects), stop: make(chan struct{}), ctx: context.Background()}
	class := object.Define("runner", func(_ context.Context, st *object.State) (*runner, error) { return &runner{st: st}, nil },
		object.ClassOptions{MaxWaiting: 10_000_000, HoldLimit: -1})
	m.come = object.Handle(class, "come", func(r *runner, ctx context.Context, e errand) (int, error) {
		if r.st.Name() == Slow {
			<-m.stop
			return 0, nil
		}
		if e.Hops > 0 {
			if err := m.come.Send(ctx, r.st, m.name(e.Next), errand{e.Next + 1, e.Hops - 1}); err != nil {
				return 0, err
			}
		}
		return 0, r.add(ctx)
	})
	m.pass = object.Handle(class, "pass", func(r *runner, ctx context.Context, e errand) (int, error) {
		if err := m.come.Send(ctx, r.st, m.name(e.Next), errand{e.Next + 1, e.Hops - 1}); err != nil {
			return 0, err
		}
		return 0, r.add(ctx)
	})
	m.look = object.Handle(class, "look", func(r *runner, _ context.Context, _ struct{}) (uint64, error) { return r.n, nil })
	fill := object.Handle(class, "fill", func(r *runner, ctx context.Context, n int) (int, error) {
		for range n {
			if err := m.come.Send(ctx, r.st, Slow, errand{}); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	m.later = object.Handle(class, "later", func(r *runner, ctx context.Context, d time.Duration) (int, error) {
		return 0, m.come.Send(ctx, r.st, Slow, errand{}, object.After(d))
	})
	var err error
	m.Host, err = OpenHost(dir, o, class)
	m.fill = fill
	return m, err
}

func (m *Messages) name(i int) string { return m.names[i%len(m.names)] }

// Pass has a message go from object i to the next, and returns when the turns of both are
// durable: a call that looks at the receiver stands behind the message.
func (m *Messages) Pass(i int) error {
	if _, err := m.pass.Call(m.ctx, m.Host, m.name(i), errand{i + 1, 1}, object.Unconfirmed()); err != nil {
		return err
	}
	_, err := m.look.Call(m.ctx, m.Host, m.name(i+1), struct{}{})
	return err
}

// Send is the turn of the sender alone, which sends to the slow receiver.
func (m *Messages) Send(int) error {
	_, err := m.fill.Call(m.ctx, m.Host, m.name(0), 1)
	return err
}

// SendLater is Send of a message that is due in a day.
func (m *Messages) SendLater(int) error {
	_, err := m.later.Call(m.ctx, m.Host, m.name(0), 24*time.Hour)
	return err
}

// Fill has n messages wait for the slow receiver.
func (m *Messages) Fill(n int) error {
	const portion = 1000
	for done := 0; done < n; done += portion {
		if _, err := m.fill.Call(m.ctx, m.Host, m.name(0), min(portion, n-done), object.Unconfirmed()); err != nil {
			return err
		}
	}
	return m.Durable()
}

// Close lets the slow receiver go on and shuts the host down.
func (m *Messages) Close() error {
	close(m.stop)
	return m.Host.Close()
}

// Chain has a message go through ten objects from i on, and returns when the turn of the last is
// durable: each look stands behind the message to its object.
func (m *Messages) Chain(i int) error {
	if _, err := m.pass.Call(m.ctx, m.Host, m.name(i), errand{i + 1, 10}, object.Unconfirmed()); err != nil {
		return err
	}
	for hop := 1; hop < 10; hop++ {
		if _, err := m.look.Call(m.ctx, m.Host, m.name(i+hop), struct{}{}, object.Unconfirmed()); err != nil {
			return err
		}
	}
	_, err := m.look.Call(m.ctx, m.Host, m.name(i+10), struct{}{})
	return err
}
