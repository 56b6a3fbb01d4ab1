package patterns

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
)

// prices is a shop that takes its time. A caller gives it up when ctx ends.
func prices(s *harness.Sim, takes time.Duration, prices ...int) Shop {
	asked := 0
	return func(ctx context.Context, item string) (int, error) {
		s.World().Do("ask/"+item, nil)
		cents := prices[min(asked, len(prices)-1)]
		asked++
		return cents, s.SleepContext(ctx, takes)
	}
}

func TestCrashSlowShopHoldsUpNoCustomer(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		offers := NewOffers(prices(s, 2*time.Second, 100, 80, 120))
		s.Host(offers)
		lowest := math.MaxInt // that a customer was told
		for range 3 {         // at the same time
			s.Go("customer", func() {
				s.OK(s.Retry(func() error {
					cents, err := offers.Ask.Call(s.Context(), s, "lamp", none{})
					if err == nil {
						lowest = min(lowest, cents)
					}
					return err
				}))
			})
		}
		s.Advance(2 * time.Second)
		s.Sometimes("three asked the shop at the same time", s.World().Count("ask/lamp") == 3 && s.Crashes() == 0)
		s.Advance(time.Minute)
		s.Finally("the lowest price is kept", func() error {
			var cents int
			_, err := harness.Stored(s.Store(), offers.ID("lamp"), "cents", &cents)
			if err == nil && cents != lowest {
				err = fmt.Errorf("%d cents, and a customer was told %d", cents, lowest)
			}
			return err
		})
	}, harness.NoLostAck)
}

func TestSlowShopIsGivenUp(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		offers := NewOffers(prices(s, time.Minute, 100))
		s.Host(offers)
		begun := s.Now()
		_, err := offers.Ask.Call(s.Context(), s, "lamp", none{})
		s.Always("after three seconds", errors.Is(err, ErrSlow) && s.Now().Sub(begun) == 3*time.Second, err, s.Now().Sub(begun))
	})
}

func TestCrashWatchedOfferGetsItsPrice(t *testing.T) {
	harness.Exhaust(t, func(s *harness.Sim) {
		offers := NewOffers(prices(s, 20*time.Second, 100))
		s.Host(offers)
		s.OK(s.Retry(func() error { _, err := offers.Watch.Call(s.Context(), s, "lamp", none{}); return err }))
		s.Advance(5 * time.Minute)
		s.Finally("the price is stored and nothing asks any more", func() error {
			var cents int
			_, err := harness.Stored(s.Store(), offers.ID("lamp"), "cents", &cents)
			if asked := s.World().Count("ask/lamp"); err == nil && (cents != 100 || asked > 1+2*s.Crashes()) {
				err = fmt.Errorf("%d cents after %d requests", cents, asked)
			}
			return err
		})
	}, harness.NoLostAck, harness.OneAlarm, harness.Depth(2), harness.Budget(150))
}
