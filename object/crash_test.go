package object_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/object"
)

// Objects under crashes: each story is crashed at each point, at each pair of
// points and at random.

func exhaust(t *testing.T, scenario harness.Scenario, opts ...harness.Option) {
	t.Helper()
	crashes.Try(t, scenario, append(opts, harness.NoTornBatch, harness.OneAlarm, harness.NoLostAck)...)
}

// account is an object that keeps a balance in two keys, which must agree, and
// pays interest by its alarm.
type account struct {
	st      *object.State
	balance int
}

func (a *account) save(ctx context.Context) error {
	return a.st.Storage().PutBatch(ctx, []object.Entry{{Key: "balance", Value: a.balance}, {Key: "mirror", Value: -a.balance}})
}

// Alarm pays interest once and tells the outside of it.
func (a *account) Alarm(ctx context.Context, info object.AlarmInfo) error {
	a.balance += 1000
	outside(a.st).Do("paid/"+a.st.Name(), nil)
	return a.save(ctx)
}

// outside is the world of the simulation that runs the object.
var outside func(*object.State) *harness.World

var (
	accounts = object.Define("account", func(ctx context.Context, st *object.State) (*account, error) {
		a := &account{st: st}
		_, err := st.Storage().GetInto(ctx, "balance", &a.balance)
		return a, err
	})
	deposit = object.Handle(accounts, "deposit", func(a *account, ctx context.Context, n int) (int, error) {
		a.balance += n
		if err := a.save(ctx); err != nil {
			return 0, err
		}
		return a.balance, nil
	})
	balance = object.Handle(accounts, "balance", func(a *account, _ context.Context, _ struct{}) (int, error) {
		return a.balance, nil
	})
	interest = object.Handle(accounts, "interest", func(a *account, ctx context.Context, after time.Duration) (int, error) {
		return 0, a.st.SetAlarm(ctx, a.st.Now().Add(after))
	})
	transfer = object.Handle(accounts, "transfer", func(a *account, ctx context.Context, to string) (int, error) {
		a.balance -= 10
		if err := a.save(ctx); err != nil {
			return 0, err
		}
		// The commit comes before the call that relies on it.
		if err := a.st.Sync(ctx); err != nil {
			return 0, err
		}
		return deposit.Call(ctx, a.st, to, 10, object.Idempotent("transfer", time.Hour))
	})
	fire = object.Handle(accounts, "fire", func(a *account, ctx context.Context, _ struct{}) (int, error) {
		return 0, errors.Join(a.st.Storage().DeleteAll(ctx), a.st.Emit(ctx, "closed", a.balance))
	})
)

func mirrored(s *harness.Sim) error {
	for _, name := range []string{"a", "b"} {
		var page object.KeyPage
		err := s.WithHost(func(ctx context.Context, h *object.Host) (err error) {
			page, err = h.Keys(ctx, accounts.ID(name), object.KeysOptions{Values: true})
			return err
		})
		if err != nil {
			return err
		}
		values := map[string]string{}
		for _, k := range page.Keys {
			values[k.Key] = string(k.Value)
		}
		if b, m := values["balance"], values["mirror"]; m != "-"+b && !(b == "" && m == "") && !(b == "0" && m == "0") {
			return fmt.Errorf("account %s holds balance %s and mirror %s", name, b, m)
		}
	}
	return nil
}

// Proves O6, O7, O16, S9: each acknowledged deposit is there once, whole.
func TestCrashDeposits(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		s.Host(accounts)
		total := 0
		for i := range 3 {
			s.OK(s.Retry(func() error {
				got, err := deposit.Call(s.Context(), s, "a", 1, object.Idempotent(fmt.Sprint(i), time.Hour))
				if err == nil {
					total = got
				}
				return err
			}))
			if total != i+1 {
				s.Errorf("deposit %d was answered with %d", i, total)
			}
		}
		got, err := balance.Call(s.Context(), s, "a", struct{}{})
		if err == nil && got != 3 {
			s.Errorf("the balance is %d, want 3", got)
		}
	}, harness.StateMatches(mirrored))
}

// Proves A1, A4, A8, A10: the alarm's effect on the state is exactly once, its
// effect outside at least once, and once more per crash at most.
func TestCrashAlarm(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		outside = func(*object.State) *harness.World { return s.World() }
		s.Host(accounts)
		s.OK(s.Retry(func() error {
			_, err := interest.Call(s.Context(), s, "a", time.Minute, object.Idempotent("once", time.Hour))
			return err
		}))
		s.Advance(2 * time.Minute)
		s.Finally("interest is paid once", func() error {
			got, err := balance.Call(s.Context(), s, "a", struct{}{})
			if err != nil || got != 1000 {
				return fmt.Errorf("the balance is %d, %v", got, err)
			}
			if n := s.World().Count("paid/a"); n < 1 || n > 1+s.Crashes() {
				return fmt.Errorf("paid outside %d times in %d crashes", n, s.Crashes())
			}
			return nil
		})
	}, harness.StateMatches(mirrored))
}

// Proves O7, O8, O16: a transfer between objects is applied once on both sides.
func TestCrashTransfer(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		s.Host(accounts)
		s.OK(s.Retry(func() error {
			_, err := transfer.Call(s.Context(), s, "a", "b", object.Idempotent("t", time.Hour))
			return err
		}))
		s.Finally("money is not made", func() error {
			b, err := balance.Call(s.Context(), s, "b", struct{}{})
			if err != nil || b != 10 {
				return fmt.Errorf("b holds %d, %v", b, err)
			}
			// a may give again if it died between its Sync and its answer, but b takes
			// the money only once. The documentation of Sync tells this story.
			a, err := balance.Call(s.Context(), s, "a", struct{}{})
			if err != nil || a > -10 || a < -10*(1+s.Crashes()) {
				return fmt.Errorf("a holds %d, %v", a, err)
			}
			return nil
		})
	})
}

// Proves O1, O15, S5, A1: an object's end is whole, and its event is in it.
func TestCrashDeleteAll(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		s.Host(accounts)
		s.OK(s.Retry(func() error { _, err := deposit.Call(s.Context(), s, "a", 5); return err }))
		s.OK(s.Retry(func() error { _, err := interest.Call(s.Context(), s, "a", time.Hour); return err }))
		s.OK(s.Retry(func() error { _, err := fire.Call(s.Context(), s, "a", struct{}{}); return err }))
		s.Finally("nothing is left", func() error {
			var in object.Inspection
			var events []object.Event
			err := s.WithHost(func(ctx context.Context, h *object.Host) (err error) {
				in, err = h.Inspect(ctx, accounts.ID("a"))
				if err == nil {
					events, err = h.Events(ctx, accounts.ID("a"), 0, 10)
				}
				return err
			})
			if err != nil || in.Exists || in.Alarm != nil {
				return fmt.Errorf("%+v, %v", in, err)
			}
			if len(events) < 1 || len(events) > 1+s.Crashes() {
				return fmt.Errorf("%d events", len(events))
			}
			return nil
		})
	}, harness.Settle(time.Minute))
}
