package object_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// wallet is an object with money.
type wallet struct {
	st    *object.State
	cents int
}

// payment moves money to another wallet, and from there on, as often as Hops says.
type payment struct {
	To    string
	Cents int
	Hops  int
}

// wallets is a class of objects that pay each other by messages.
type wallets struct {
	class *object.Class[wallet]
	take  *object.Method[payment, int]
	pay   *object.Method[payment, int]
}

func newWallets(opts ...object.ClassOptions) *wallets {
	p := &wallets{class: object.Define("wallet", func(ctx context.Context, st *object.State) (*wallet, error) {
		a := &wallet{st: st}
		_, err := st.Storage().GetInto(ctx, "cents", &a.cents)
		return a, err
	}, opts...)}
	p.take = object.Handle(p.class, "take", func(a *wallet, ctx context.Context, t payment) (int, error) {
		if t.Hops == 0 {
			return a.add(ctx, t.Cents)
		}
		t.Hops--
		return a.cents, p.take.Send(ctx, a.st, fmt.Sprint("hop", t.Hops), t)
	})
	p.pay = object.Handle(p.class, "pay", func(a *wallet, ctx context.Context, t payment) (int, error) {
		if err := p.take.Send(ctx, a.st, t.To, t); err != nil {
			return 0, err
		}
		return a.add(ctx, -t.Cents)
	})
	return p
}

func (a *wallet) add(ctx context.Context, cents int) (int, error) {
	sum := a.cents + cents
	if err := a.st.Storage().Put(ctx, "cents", sum); err != nil {
		return 0, err
	}
	a.cents = sum
	return sum, nil
}

// underWay counts the stored messages of the store.
func underWay(st *storage.Store) (n int, err error) {
	c, err := st.CountMessages()
	if err != nil {
		return 0, err
	}
	for more := true; more && err == nil; {
		more, err = c.Next(func(_ storage.ID, k int) bool { n += k; return true })
	}
	if closeErr := c.Close(); err == nil {
		err = closeErr
	}
	return n, err
}

// balanced checks that no money was made or lost: each message under way has 10 cents.
func balanced(st *storage.Store) error {
	sum := 0
	err := st.Objects("wallet", "", func(o storage.Object) bool {
		var cents int
		_, _ = harness.Stored(st, o.ID, "cents", &cents)
		sum += cents
		return true
	})
	n, more := underWay(st)
	if err == nil {
		err = more
	}
	if err == nil && sum+10*n != 0 {
		err = fmt.Errorf("the wallets hold %d cents, and %d messages are under way", sum, n)
	}
	return err
}

// Money that moves by messages is never lost and never made, in no stored state (M1, M2).
func TestMessagesKeepTheSumAfterACrashAtEveryPoint(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		p := newWallets()
		s.Host(p.class)
		for i, to := range []string{"b", "a", "c"} {
			s.OK(s.Retry(func() error {
				_, err := p.pay.Call(s.Context(), s, "a", payment{to, 10, 2 * (i % 2)}, object.Idempotent(fmt.Sprint(i), time.Hour))
				return err
			}))
		}
		s.Advance(time.Minute)
		s.Finally("all have arrived", func() error {
			if n, err := underWay(s.Store()); n != 0 || err != nil {
				return fmt.Errorf("%d messages never arrived, %v", n, err)
			}
			return balanced(s.Store())
		})
	}, harness.NoLostAck, harness.NoTornBatch, harness.Invariant("no money is made or lost", balanced))
}
