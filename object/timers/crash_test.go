package timers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/timers"
)

// exhaust crashes a story at its points, with the checkers that fit each story.
func exhaust(t *testing.T, story harness.Scenario, opts ...harness.Option) {
	t.Helper()
	crashes.Try(t, story, append(opts, harness.NoTornBatch, harness.OneAlarm, harness.EarliestTimer, harness.NoLostAck)...)
}

// quick tries a timer three times, a second apart.
var quick = timers.Options{Retry: alarm.Retry{MaxAttempts: 3, Backoff: alarm.Constant(time.Second)}}

// Case TM1. Proves T1, T4: set, move and cancel under crashes. Each timer fires once, at its last time.
func TestCrashSetMoveCancel(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		r := newRig(s, timers.Options{}, nil)
		begin := s.Now()
		set := func(name string, after time.Duration) {
			r.must(func(ctx context.Context, b *box) error { return b.timers.At(ctx, name, begin.Add(after), after) })
		}
		set("moved", time.Minute)
		set("cancelled", time.Minute)
		set("kept", 2*time.Minute)
		set("moved", time.Hour)
		r.must(func(ctx context.Context, b *box) error { _, err := b.timers.Cancel(ctx, "cancelled"); return err })
		s.Advance(30 * time.Minute)
		s.Always("the moved one waits", s.World().Count("fire/moved") == 0)
		s.Advance(time.Hour)
		s.Finally("each has fired as often as it should", func() error {
			r.want("moved", 1)
			r.want("kept", 1)
			r.want("cancelled", 0)
			if n := s.World().Count("fire/kept"); n > 1+s.Crashes() {
				return fmt.Errorf("kept has fired %d times in %d crashes", n, s.Crashes())
			}
			return nil
		})
	})
}

// Case TM3. Proves T1, T2, T3: among timers that are due at once one fails twice, one panics until it is
// a dead letter, one replaces itself, one sends a message, and one belongs to a schedule.
func TestCrashTimersDueAtOnce(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		r := newRig(s, quick, nil)
		begin := s.Now()
		r.fire = func(ctx context.Context, b *box, t timers.Timer) error {
			if err := r.note(ctx, b, t); err != nil {
				return err
			}
			switch t.Name {
			case "fails":
				if t.Failures < 2 {
					return errNo
				}
			case "panics":
				panic("always")
			case "replaces":
				if t.Scheduled.Equal(begin.Add(time.Minute)) {
					return b.timers.At(ctx, "replaces", begin.Add(2*time.Minute), nil)
				}
			}
			return nil
		}
		r.must(func(ctx context.Context, b *box) error {
			for _, name := range []string{"before", "fails", "panics", "replaces", "zero"} {
				if err := b.timers.At(ctx, name, begin.Add(time.Minute), nil); err != nil {
					return err
				}
			}
			return b.timers.On(ctx, "hourly", jobs.Rate(time.Hour), nil)
		})
		s.Advance(5 * time.Minute)
		s.Finally("each took effect as often as it should", func() error {
			for name, n := range map[string]int{"before": 1, "fails": 1, "panics": 0, "replaces": 2, "zero": 1} {
				r.want(name, n)
			}
			letters := r.letters()
			if len(letters) != 1 || letters[0].Kind != timers.DeadTimer || letters[0].Attempts != 3 && letters[0].Reason != "crashes" {
				return fmt.Errorf("T3: letters %+v", letters)
			}
			return nil
		})
	})
}

// Case TM4. Proves T3, T4: a dead letter and its timer are one: Replay and Discard under crashes.
func TestCrashReplayAndDiscard(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		r := newRig(s, timers.Options{Retry: alarm.Retry{MaxAttempts: 1}}, nil)
		broken := true
		r.fire = func(ctx context.Context, b *box, t timers.Timer) error {
			if broken {
				return errNo
			}
			return r.note(ctx, b, t)
		}
		r.at("a", time.Second)
		r.at("b", time.Second)
		s.Advance(time.Minute)
		letters := r.letters()
		for len(letters) < 2 { // a crash holds a suspect back
			s.Advance(time.Minute)
			letters = r.letters()
		}
		broken = false
		gone := func(err error) error {
			if errors.Is(err, object.ErrNoDeadLetter) && s.Crashes() > 0 {
				return nil
			}
			return err
		}
		r.must(func(ctx context.Context, b *box) error { return gone(b.timers.Replay(ctx, letters[0].Seq)) })
		r.must(func(ctx context.Context, b *box) error { return gone(b.timers.Discard(ctx, letters[1].Seq)) })
		s.Advance(time.Minute)
		s.Finally("one came back, and no letter is left", func() error {
			r.want("a", 1)
			r.want("b", 0)
			if left := r.letters(); len(left) != 0 {
				return fmt.Errorf("letters %+v", left)
			}
			return nil
		})
	})
}

// Case TM5. Proves T1: the occurrences of a schedule under crashes, with a deploy between that mends the
// handler. Each occurrence from the first on takes effect once.
func TestCrashScheduleOverADeploy(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		o := timers.Options{Retry: alarm.Retry{MaxAttempts: 1000, Backoff: alarm.Constant(time.Second)}, Missed: jobs.RunEach}
		r := newRig(s, o, func(context.Context, *box, timers.Timer) error { return errNo })
		r.must(func(ctx context.Context, b *box) error {
			return b.timers.On(ctx, "a", jobs.Cron("*/10 * * * *", ""), nil)
		})
		set := s.Now()
		s.Advance(10*time.Minute + 3*time.Second)
		mended := r.define(o)
		s.Shutdown()
		s.Advance(25 * time.Minute)
		r.fire = func(ctx context.Context, b *box, t timers.Timer) error {
			return count(ctx, b, t.Scheduled.Format("15:04"))
		}
		s.Restart(harness.WithCode(mended))
		s.Advance(10 * time.Minute)
		s.Finally("each occurrence once", func() error {
			for at := set.Truncate(10 * time.Minute).Add(10 * time.Minute); !at.After(s.Now().Add(-10 * time.Minute)); at = at.Add(10 * time.Minute) {
				r.want(at.UTC().Format("15:04"), 1)
			}
			return nil
		})
	})
}

// Case TM2. Proves T1, T2, T4, T5. Scenario 23: two thousand timers, of which one fails for good and one is
// replaced in its own handler.
func TestTwoThousandTimers(t *testing.T) { harness.Run(t, manyTimers(2000, 700, 1300)) }

// Case TM2. Proves T1, T2, T4, T5. As many as six turns take, with crashes.
func TestCrashManyTimers(t *testing.T) { exhaust(t, manyTimers(350, 100, 200), harness.Budget(60)) }

// manyTimers is the story of timers that are due at once, with one that fails for good and one
// that is replaced in its own handler.
func manyTimers(many, failing, replaced int) harness.Scenario {
	return func(s *harness.Sim) {
		r := newRig(s, timers.Options{Retry: alarm.Retry{MaxAttempts: 2, Backoff: alarm.Constant(time.Second)}}, nil)
		begin := s.Now()
		fired := map[string]int{} // by the rows of one object, read at the end
		r.fire = func(ctx context.Context, b *box, t timers.Timer) error {
			if err := count(ctx, b, t.Name); err != nil {
				return err
			}
			switch t.Name {
			case fmt.Sprint(failing):
				return errNo
			case fmt.Sprint(replaced):
				if t.Scheduled.Equal(begin.Add(time.Minute)) {
					return b.timers.At(ctx, t.Name, begin.Add(5*time.Minute), nil)
				}
			}
			return nil
		}
		r.must(func(ctx context.Context, b *box) error {
			for i := range many {
				if err := b.timers.At(ctx, fmt.Sprint(i), begin.Add(time.Minute), nil); err != nil {
					return err
				}
			}
			return nil
		})
		s.Advance(10 * time.Minute)
		s.Finally("each has fired once, and one twice", func() error {
			r.must(func(ctx context.Context, b *box) error {
				clear(fired)
				for item, err := range b.st.Storage().List(ctx, object.ListOptions{Prefix: "count/"}) {
					if err != nil {
						return err
					}
					fired[item.Key[len("count/"):]] = int(item.Value[0] - '0')
				}
				return nil
			})
			for i := range many {
				want := map[int]int{failing: 0, replaced: 2}
				n, other := want[i]
				if !other {
					n = 1
				}
				if got := fired[fmt.Sprint(i)]; got != n {
					return fmt.Errorf("T1: timer %d has fired %d times, want %d", i, got, n)
				}
			}
			if letters := r.letters(); len(letters) != 1 {
				return fmt.Errorf("T3: letters %+v", letters)
			}
			return nil
		})
	}
}

// Case TM7. Proves T1: the wall clock jumps back and forth while timers wait: none is early by it, none
// is lost, and each takes effect once.
func TestCrashTimersBesideAClockThatJumps(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		r := newRig(s, quick, nil)
		r.fire = func(ctx context.Context, b *box, t timers.Timer) error {
			s.Always("T1: no timer is early", !b.began.Before(t.Due) && (t.Failures > 0 || !b.began.Before(t.Scheduled)), b.began, t)
			return count(ctx, b, t.Name)
		}
		for i := range 3 {
			r.at(fmt.Sprint(i), time.Duration(i+1)*time.Minute)
		}
		s.Advance(10 * time.Minute)
		s.Finally("each once", func() error {
			r.Always("no letter", len(r.letters()) == 0, r.letters())
			for i := range 3 {
				// An At that is repeated after a crash sets the timer again, though it may have fired.
				n := r.counted(fmt.Sprint(i))
				r.Always("once", n >= 1 && n <= 1+s.Crashes(), i, n)
			}
			return nil
		})
	}, harness.AllowFaults(harness.Faults{ClockJump: time.Hour, DupAlarm: 2, DropWake: 1}), harness.Settle(2*time.Hour))
}

// Case TM6. Proves T2: the process dies twice in a row in the handlers, so that each is stored as begun
// before it runs. A crash at any point after that charges none of them for good.
func TestCrashTimersAfterCrashesInARow(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		r := newRig(s, quick, nil)
		r.fire = func(ctx context.Context, b *box, t timers.Timer) error {
			if err := b.st.Driver().Seams().Sleep(ctx, 2*time.Second); err != nil {
				return err
			}
			return count(ctx, b, t.Name)
		}
		for i := range 3 {
			r.at(fmt.Sprint(i), time.Second)
		}
		for range 2 {
			s.Advance(3 * time.Second)
			s.Crash(harness.Kill)
			s.Restart()
		}
		s.Advance(time.Minute)
		s.Finally("each once", func() error {
			for i := range 3 {
				r.want(fmt.Sprint(i), 1)
			}
			r.Always("no letter", len(r.letters()) == 0, r.letters())
			return nil
		})
	}, crashes.Budget(300), harness.Settle(10*time.Minute))
}
