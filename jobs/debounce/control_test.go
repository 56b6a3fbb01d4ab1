package debounce_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// A request during backoff tries the flush at once and takes nothing from its
// budget. Case 10. Proves D4.
func TestCrashFlushNowDuringBackoff(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{
			Quiet: seconds(5),
			Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(time.Hour)},
		})
		l.fail = func(f *flush) error {
			if s.Now().Sub(f.Due) < seconds(20) {
				return errors.New("not yet")
			}
			return nil
		}
		l.add("a")
		s.Advance(seconds(10)) // the first attempt fails
		s.OK(l.flushNow())     // and so does this one, out of a fresh budget
		s.Advance(seconds(30))
		s.OK(l.flushNow())
		s.Advance(seconds(1))
		s.Finally("flushed for the first cause", func() error { return l.flushedAs(debounce.ReasonQuiet) })
	}, harness.Settle(time.Minute))
}

// FlushNow during a flush takes effect when the flush has ended.
func TestCrashFlushNowDuringFlush(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(5), Reduce: collect})
		l.also = func(ctx context.Context, f *flush) error {
			if f.Generation > 1 {
				return nil
			}
			if _, err := l.job.Add(ctx, f, name, event{ID: "late"}, debounce.EventID("late")); err != nil {
				return err
			}
			last, err := l.job.FlushNow(ctx, f, name)
			if err == nil && last != 2 {
				s.Errorf("FlushNow tells of generation %d, want 2", last)
			}
			return err
		}
		l.add("a")
		l.acked = append(l.acked, "late")
		s.Advance(seconds(6))
		s.Finally("the reason", func() error {
			if f := l.flushes[2]; f == nil || f.Reason != debounce.ReasonManual {
				return fmt.Errorf("flush 2: %+v", f)
			}
			return nil
		})
	})
}

// Proves D5: Clear discards the collected events, and says how many.
func TestCrashClear(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(5)})
		l.add("a")
		l.add("b")
		l.cleared["a"], l.cleared["b"] = true, true
		n, err := l.job.Clear(s.Context(), s, name)
		switch {
		case harness.Unknown(err):
			s.OK(l.retry(func(ctx context.Context, c object.Caller, id string) error {
				_, err := l.job.Clear(ctx, c, id)
				return err
			}))
		case err != nil || n != 2 && s.Crashes() == 0:
			s.Errorf("D5: Clear: %d, %v", n, err)
		}
		if st := l.status(); st.Events != 0 {
			s.Errorf("D5: %d events are left", st.Events)
		}
		l.add("c")
		s.Advance(seconds(20))
		if st := l.status(); st.EventsFlushed+st.EventsDropped != 3 {
			s.Errorf("D5: status %+v accounts for other than 3 events", st)
		}
	})
}

// Clear leaves the events of a flush alone that waits for its next attempt, because the
// flush may have had effects. Proves D5.
func TestCrashClearDuringBackoff(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(2), Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(seconds(60))}})
		failed := false
		l.fail = func(*flush) error {
			if !failed {
				failed = true
				return errors.New("not yet")
			}
			return nil
		}
		l.add("a")
		s.Advance(seconds(5))
		l.add("b")
		l.cleared["b"] = true
		s.OK(l.retry(func(ctx context.Context, c object.Caller, id string) error {
			_, err := l.job.Clear(ctx, c, id)
			return err
		}))
		if st := l.status(); st.Events != 0 || st.EventsFlushed == 0 && st.Flushing != 1 {
			s.Errorf("D5: status %+v after Clear", st)
		}
	})
}

// move makes a move until it is answered; a repeat may find it made.
func (l *ledger) move(call func(context.Context, object.Caller, string) error) {
	if err := l.retry(call); err != nil && (l.s.Crashes() == 0 || !errors.Is(err, jobs.ErrIllegalMove) && !errors.Is(err, jobs.ErrNotFound)) {
		l.s.Errorf("move: %v", err)
	}
}

// Pause keeps everything: events are collected, and nothing is flushed until Resume. The
// flush then has the due time that it had before. Proves J10 for debounce.
func TestCrashPause(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(30)})
		l.add("a")
		l.move(l.job.Pause)
		if s.Crashes() == 0 {
			l.add("b")
		}
		s.Advance(time.Minute)
		if len(l.flushes) > 0 {
			s.Errorf("J10: a paused job flushed")
		}
		if err := l.flushNow(); !errors.Is(err, jobs.ErrIllegalMove) {
			s.Errorf("FlushNow of a paused job: %v", err)
		}
		l.move(l.job.Resume)
		s.Advance(seconds(1))
		s.Finally("flushed", func() error { return l.flushedAs(debounce.ReasonQuiet) })
	})
}

// Pause and Resume while a flush is under way, here by the flush itself: it ends
// first, and no second one begins beside it. Proves J3 for debounce.
func TestCrashPauseDuringFlush(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(5)})
		l.also = func(ctx context.Context, f *flush) error {
			if err := l.job.Resume(ctx, f, name); err != nil && s.Crashes() == 0 {
				s.Errorf("J3: Resume of a job that executes: %v", err)
			}
			return l.job.Pause(ctx, f, name)
		}
		l.add("a")
		s.Advance(seconds(6))
		l.add("b")
		s.Advance(seconds(6))
		if st := l.status(); st.Meta.Status != jobs.Paused || s.Crashes() == 0 && (st.EventsFlushed != 1 || st.Events != 1) {
			s.Errorf("J10: status %+v after a pause during the first flush", st)
		}
		l.also = nil
		l.move(l.job.Resume)
	})
}

// held is how many seconds a flush that a crash has cut off over a log waits before it begins again, because its owner may
// be alive.
const held = 3

// Terminate removes everything, the ids too, and the id may begin again under
// other keys. Proves J10 for debounce. Case 5.
func TestCrashTerminate(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(5)})
		l.lives = true
		var keys []string
		l.also = func(_ context.Context, f *flush) error {
			if !slices.Contains(keys, f.Key) {
				keys = append(keys, f.Key)
			}
			return nil
		}
		l.add("a")
		l.pass(seconds(6 + held))
		l.add("b")
		l.move(func(ctx context.Context, c object.Caller, id string) error {
			return l.job.Terminate(ctx, c, id, "done")
		})
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			in, err := h.Inspect(ctx, l.job.ID(name))
			if err == nil && (in.Exists || in.Alarm != nil || in.Execution) {
				s.Errorf("J10: Terminate left %+v", in)
			}
			return err
		}))
		if _, err := l.job.Status(s.Context(), s, name); !errors.Is(err, jobs.ErrNotFound) && !harness.Unknown(err) {
			s.Errorf("J10: Status after Terminate: %v", err)
		}
		if ack := l.add("b"); ack.Events != 1 {
			s.Errorf("J10: the first event of a new life: %+v", ack)
		}
		l.pass(seconds(6 + held))
		if len(keys) < 2 {
			s.Errorf("flushes of two lives had the keys %q", keys)
		}
	}, harness.Settle(seconds(30)))
}

// A flush calls Terminate for its own job. The work is cancelled, and stores nothing.
// Proves J8 and J10 for debounce.
func TestCrashTerminateDuringFlush(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(5)})
		l.lives = true
		l.also = func(ctx context.Context, f *flush) error {
			_ = l.job.Terminate(ctx, f, name, "by its own flush")
			return nil
		}
		l.add("a")
		s.Advance(seconds(6))
		s.Finally("gone", func() error {
			return s.WithHost(func(ctx context.Context, h *object.Host) error {
				in, err := h.Inspect(ctx, l.job.ID(name))
				if err == nil && (in.Exists || in.Alarm != nil || in.Execution) {
					err = fmt.Errorf("J10: Terminate left %+v", in)
				}
				return err
			})
		})
	})
}

// A flush that is given up fails the job. The job keeps its events and goes on
// collecting, and Resume flushes them with a fresh budget. Proves J9 for debounce.
func TestCrashExhaustedFail(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(5)})
		broken := true
		l.fail = func(*flush) error {
			if broken {
				return errors.New("broken")
			}
			return nil
		}
		l.add("a")
		l.pass(seconds(7 + held))
		if st := l.status(); st.Meta.Status != jobs.Failed || st.Flushing != 1 {
			s.Errorf("J9: status %+v", st)
		}
		l.add("b")
		broken = false
		l.resumed++
		l.move(l.job.Resume)
		l.pass(seconds(7 + held))
	})
}

// Under Drop the events of a flush that is given up are discarded, an event tells of
// that, and later events are flushed. Case 2. Proves J9 for debounce.
func TestCrashExhaustedDrop(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(5), Exhausted: debounce.Drop})
		l.fail = func(f *flush) error {
			if f.Generation == 1 {
				return errors.New("broken")
			}
			return nil
		}
		l.add("a")
		l.pass(seconds(7 + held))
		l.add("b")
		l.pass(seconds(7 + held))
		if st := l.status(); st.Meta.Status != jobs.Running || st.EventsDropped != 1 || st.EventsFlushed != 1 || st.Flushed != 2 {
			s.Errorf("J9: status %+v", st)
		}
	})
}

// A flush that was lost in crashes too often fails the job even under Drop, for
// its events are not to blame for sure: they stay for Resume. Proves R4 for
// debounce.
func TestCrashedTooOften(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{
			Quiet: seconds(5), Exhausted: debounce.Drop, MaxRecoveries: -1,
		})
		l.add("a")
		s.Advance(seconds(10))
		st := l.status()
		s.Sometimes("failed", st.Meta.Status == jobs.Failed)
		for st.Meta.Status == jobs.Failed { // once for each crash in a flush
			if st.Flushing != 1 || st.EventsDropped != 0 {
				s.Errorf("R4: status %+v", st)
			}
			l.resumed++
			l.move(l.job.Resume)
			s.Advance(seconds(1))
			st = l.status()
		}
	})
}
