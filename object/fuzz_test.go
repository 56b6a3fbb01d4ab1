package object_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves O6, O7, O16, A4 under schedules that the fuzzer chooses: three clients pay into
// two accounts, and an alarm pays interest, while crashes and faults of every kind
// strike.
func FuzzDeposits(f *testing.F) {
	harness.Fuzz(f, fuzzedDeposits,
		harness.AllowFaults(harness.Faults{FailCommit: 1, Slow: 5 * time.Second, ClockJump: time.Minute, DropWake: 1, DupAlarm: 2, Zombie: 1}),
		harness.Settle(10*time.Minute), harness.NoLostAck, harness.OneAlarm)
}

func fuzzedDeposits(s *harness.Sim) {
	s.Host(purses)
	for client := range 3 {
		s.Go("client", func() {
			for i := range 3 {
				name, key := fmt.Sprint("purse", i%2), fmt.Sprint(client, "/", i)
				s.OK(s.Retry(func() error {
					_, err := putIn.Call(s.Context(), s, name, 1, object.Idempotent(key, 24*time.Hour))
					return err
				}))
				s.Sleep(time.Second)
			}
		})
	}
	s.Advance(5 * time.Minute)
	s.Finally("each deposit counts once, and interest once", func() error {
		return errors.Join(holds(s, "purse0", 6+1000), holds(s, "purse1", 3+1000))
	})
}

func holds(s *harness.Sim, name string, want int) error {
	var got int
	if _, err := harness.Stored(s.Store(), purses.ID(name), "coins", &got); err != nil || got != want {
		return fmt.Errorf("%s holds %d, %v, want %d", name, got, err, want)
	}
	return nil
}

// purse is an object that counts coins, and adds 1000 by its one alarm, a minute
// after the first.
type purse struct{ st *object.State }

func (p *purse) add(ctx context.Context, n int) (coins int, err error) {
	if _, err := p.st.Storage().GetInto(ctx, "coins", &coins); err != nil {
		return 0, err
	}
	if coins == 0 {
		if err := p.st.SetAlarm(ctx, p.st.Now().Add(time.Minute)); err != nil {
			return 0, err
		}
	}
	coins += n
	return coins, p.st.Storage().Put(ctx, "coins", coins)
}

func (p *purse) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	_, err := p.add(ctx, 1000)
	return err
}

var (
	purses = object.Define("purse", func(_ context.Context, st *object.State) (*purse, error) { return &purse{st}, nil })
	putIn  = object.Handle(purses, "putIn", (*purse).add)
)
