package seam_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

func TestSleepAndDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := seam.Seams{}.WithDefaults()
		began := time.Now()
		if err := s.Sleep(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("Sleep took %v: %v", time.Since(began), err)
		}
		cause := errors.New("too long")
		ctx, cancel := s.WithDeadline(context.Background(), s.Clock.Now().Add(time.Minute), cause)
		defer cancel()
		if at, ok := ctx.Deadline(); !ok || !at.Equal(time.Now().Add(time.Minute)) {
			t.Errorf("Deadline: %v, %v", at, ok)
		}
		if err := s.Sleep(ctx, time.Hour); !errors.Is(err, cause) || time.Since(began) != time.Hour+time.Minute {
			t.Errorf("a sleep beyond the deadline ended after %v: %v", time.Since(began), err)
		}
		inner, cancel := s.WithDeadline(ctx, s.Clock.Now().Add(time.Hour), errors.New("later"))
		defer cancel()
		if context.Cause(inner) != cause {
			t.Errorf("a context inside one that has ended: %v", context.Cause(inner))
		}
	})
}

// A value that is ready wins over a context that has ended.
func TestWaitPrefersReady(t *testing.T) {
	s := seam.Seams{}.WithDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	ready := make(chan struct{}, 1)
	ready <- struct{}{}
	if err := s.Executor.Wait(ctx, ready); err != nil {
		t.Errorf("Wait: %v", err)
	}
	if err := s.Executor.Wait(ctx, ready); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait without a value: %v", err)
	}
}

type probe []seam.Point

func (p *probe) At(at seam.Point) { *p = append(*p, at) }

func ExampleSeams_At() {
	var seen probe
	s := seam.Seams{Probe: &seen}.WithDefaults()
	s.At("commit/before", "cart/alice")
	fmt.Println(seen)
	// Output: [{commit/before cart/alice}]
}

func ExampleUint64n() {
	s := seam.Seams{}.WithDefaults()
	fmt.Println(seam.Uint64n(s.Rand, 6) < 6)
	// Output: true
}

func ExampleSeams_Steady() {
	s := seam.Seams{}.WithDefaults()
	began := s.Steady()
	fmt.Println(s.Steady().Sub(began) >= 0)
	// Output: true
}
