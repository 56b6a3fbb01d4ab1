package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// purse is an object with money.
type purse struct {
	st    *object.State
	cents int
}

// taking is an order to take money and give it to another purse.
type taking struct {
	To    string
	Cents int
}

// purses are the objects between which runs move money.
type purses struct {
	*object.Class[purse]
	put  *object.Method[int, int]
	move *object.Method[taking, int]
}

func newPurses() *purses {
	p := &purses{}
	p.Class = object.Define("purse", func(ctx context.Context, st *object.State) (*purse, error) {
		in := &purse{st: st}
		_, err := st.Storage().GetInto(ctx, "cents", &in.cents)
		return in, err
	})
	add := func(in *purse, ctx context.Context, cents int) (int, error) {
		sum := in.cents + cents
		if err := in.st.Storage().Put(ctx, "cents", sum); err != nil {
			return 0, err
		}
		in.cents = sum
		return sum, nil
	}
	none := object.Sent(func(int) int { return 0 })
	p.put = object.Handle(p.Class, "put", add, none)
	p.move = object.Handle(p.Class, "move", func(in *purse, ctx context.Context, t taking) (int, error) {
		if err := p.put.Send(ctx, in.st, t.To, t.Cents); err != nil {
			return 0, err
		}
		return add(in, ctx, -t.Cents)
	}, object.Sent(func(taking) int { return 0 }))
	return p
}

// money returns the cents of two purses, and the counter of the run that moves them.
func (p *purses) money(store *storage.Store, run storage.ID) (a, b, moves int, err error) {
	if _, err = harness.Stored(store, p.ID("a"), "cents", &a); err != nil {
		return
	}
	if _, err = harness.Stored(store, p.ID("b"), "cents", &b); err != nil {
		return
	}
	_, err = harness.Stored(store, run, "u/moves", &moves)
	return
}

// underWayTo counts the messages that a store holds for an object.
func underWayTo(store *storage.Store, id storage.ID) (n int, err error) {
	c, err := store.CountMessages()
	if err != nil {
		return 0, err
	}
	for more := true; more && err == nil; {
		more, err = c.Next(func(to storage.ID, k int) bool {
			if to == id {
				n += k
			}
			return true
		})
	}
	return n, errors.Join(err, c.Close())
}

// Proves F6. A run moves money between two objects by a message of Atomic and counts that beside
// it, exactly once each. Another Atomic fails after its writes: they are undone, its message is
// not sent, and it is not tried again.
// Case WF18.
func TestCrashAtomic(t *testing.T) {
	p := newPurses()
	run := storage.ID{Class: "order", Name: "1"}
	const opened, cents = 100, 10
	constant := func(store *storage.Store) error {
		a, b, moves, err := p.money(store, run)
		orders, errOrders := underWayTo(store, p.ID("a"))
		money, errMoney := underWayTo(store, p.ID("b"))
		if err = errors.Join(err, errOrders, errMoney); err != nil {
			return err
		}
		if a+b+cents*money != opened && a != 0 || moves != orders+money+b/cents {
			return fmt.Errorf("a %d, b %d, %d moves; under way %d to a and %d to b", a, b, moves, orders, money)
		}
		return nil
	}
	crashes.Try(t, func(s *harness.Sim) {
		p := newPurses()
		failures := 0
		w := workflow.New[int, string]("order", workflow.Config{})
		w.Func(func(c *workflow.Context, n int) (string, error) {
			for i := range n {
				moves, err := workflow.Atomic(c, "move", func(ctx context.Context, tx *workflow.Tx) (int, error) {
					raw, _, err := tx.Get(ctx, "moves")
					if err != nil {
						return 0, err
					}
					moves, _ := strconv.Atoi(string(raw))
					if _, err := p.move.Call(ctx, tx.Outbox(), "a", taking{"b", cents}); err != nil {
						return 0, err
					}
					return moves + 1, tx.Put(ctx, "moves", []byte(strconv.Itoa(moves+1)))
				})
				if err != nil || moves != i+1 {
					return "", fmt.Errorf("move %d: %d, %w", i, moves, err)
				}
				_, err = workflow.Atomic(c, "spoil", func(ctx context.Context, tx *workflow.Tx) (int, error) {
					failures++
					if _, err := p.move.Call(ctx, tx.Outbox(), "a", taking{"b", 1}); err != nil {
						return 0, err
					}
					if err := tx.DeleteAll(ctx); err != nil {
						return 0, err
					}
					if err := tx.Put(ctx, "moves", []byte("1000")); err != nil {
						return 0, err
					}
					if i == 1 {
						panic("spoilt")
					}
					return 0, errors.New("spoilt")
				})
				var failed *workflow.StepError
				if !errors.As(err, &failed) || !strings.Contains(failed.Text, "spoilt") || failed.Attempts != 1 || failed.Panicked != (i == 1) {
					return "", fmt.Errorf("spoil %d: %w", i, err)
				}
			}
			return "moved", nil
		})
		s.Host(w, p)
		s.OK(s.Retry(func() error {
			_, err := p.put.Call(s.Context(), s, "a", opened, object.Idempotent("open", time.Hour))
			return err
		}))
		start(s, w, "1", 3)
		s.Advance(time.Minute)
		out, err := ends(s, w, "1")
		s.Always("the output", err == nil && out == "moved", out, err)
		s.Finally("moved", func() error {
			a, b, moves, err := p.money(s.Store(), run)
			if err != nil || a != opened-3*cents || b != 3*cents || moves != 3 || failures < 3 || failures > 3+s.Crashes() {
				return fmt.Errorf("a %d, b %d, %d moves, %d failures, %w", a, b, moves, failures, err)
			}
			return nil
		})
	}, append([]harness.Option{harness.Invariant("no money is made or lost", constant), harness.NoLostMessage}, promises...)...)
}
