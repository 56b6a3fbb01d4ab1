package workerpool_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
)

// A failing call of OnEmpty is made ten times in all, with waits that grow by a second
// and survive a restart. There is no eleventh call. The next time that the pool is empty
// there is a new call, with ten tries.
func TestOnEmptyThatFails(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		var at []time.Duration
		begin := s.Now()
		p := newPool(s, config{OnEmpty: func(context.Context, int) error {
			at = append(at, s.Now().Sub(begin))
			return errors.New("not yet")
		}})
		s.Host(p)
		enqueue(s, p, "a")
		s.Advance(4 * time.Second) // three calls have failed
		s.Restart()
		s.Advance(time.Hour)
		want := []time.Duration{0}
		for n := range 9 {
			want = append(want, want[n]+time.Duration(n+1)*time.Second)
		}
		if !slices.Equal(at, want) {
			s.Errorf("OnEmpty was called at %v, want %v", at, want)
		}
		begin, at = s.Now(), nil
		enqueue(s, p, "b")
		s.Advance(time.Hour)
		if !slices.Equal(at, want) {
			s.Errorf("OnEmpty was called at %v for the next last task, want %v", at, want)
		}
	})
}

// A call of OnEmpty that succeeds after failures is not repeated, except once for each
// crash.
func TestCrashOnEmptyThatFails(t *testing.T) {
	exhaust(t, 1, func(s *harness.Sim) {
		failed := 0
		p := newPool(s, config{OnEmpty: func(context.Context, int) error {
			if failed++; failed < 3 {
				return errors.New("not yet")
			}
			s.World().Do("told", nil)
			return nil
		}})
		s.Host(p)
		enqueue(s, p, "a")
		s.Advance(20 * time.Second)
		finally(s, func() {
			if n := s.World().Count("told"); n < 1 || n > 1+s.Crashes() {
				s.Errorf("OnEmpty succeeded %d times with %d crashes", n, s.Crashes())
			}
		})
	})
}
