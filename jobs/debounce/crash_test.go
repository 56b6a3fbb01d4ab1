package debounce_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/debounce"
	"github.com/holdfast-dev/holdfast/object"
)

// exhaust crashes a scenario at each point, at each pair of points and at random.
func exhaust(t *testing.T, scenario harness.Scenario, opts ...harness.Option) {
	t.Helper()
	t.Parallel()
	crashes.Try(t, scenario, slices.Concat(opts, checks)...)
}

// checks are the checkers of all scenarios.
var checks = []harness.Option{
	harness.NoLostAck, harness.NoTornBatch, harness.OneAlarm, harness.NeverOrphaned,
	harness.NoDoubleEffect("flush/"), harness.Invariant("rows are whole", rowsAreWhole),
}

// Proves D1, D2, D3 and D4: one path for all reasons, and for events kept and folded.
// Case 3. Case DB5: after the flush the buffer is gone and the generation moved on.
func TestCrashEveryReason(t *testing.T) {
	for _, c := range []struct {
		name   string
		config config
		script func(s *harness.Sim, l *ledger)
		want   debounce.Reason
	}{
		{"quiet", config{Quiet: seconds(5)}, func(s *harness.Sim, l *ledger) {
			l.add("a")
			l.add("b")
			s.Advance(seconds(10))
		}, debounce.ReasonQuiet},
		{"maxWait", config{Quiet: seconds(5), MaxWait: seconds(6)}, func(s *harness.Sim, l *ledger) {
			l.add("a")
			s.Advance(seconds(4))
			l.add("b")
			s.Advance(seconds(10))
		}, debounce.ReasonMaxWait},
		{"window", config{Mode: debounce.Window, Window: seconds(5), Reduce: collect}, func(s *harness.Sim, l *ledger) {
			l.add("a")
			s.Advance(seconds(4))
			l.add("b")
			s.Advance(seconds(10))
		}, debounce.ReasonMaxWait},
		{"maxEvents", config{Quiet: seconds(50), MaxEvents: 2, Reduce: collect}, func(s *harness.Sim, l *ledger) {
			l.add("a")
			l.add("b")
			s.Advance(seconds(10))
		}, debounce.ReasonMaxEvents},
		{"manual", config{Quiet: seconds(50)}, func(s *harness.Sim, l *ledger) {
			l.add("a")
			l.add("b")
			s.OK(l.flushNow())
			s.Advance(seconds(10))
		}, debounce.ReasonManual},
	} {
		t.Run(c.name, func(t *testing.T) {
			exhaust(t, func(s *harness.Sim) {
				l := newLedger(s, c.config)
				c.script(s, l)
				s.Finally("the reason", func() error { return l.flushedAs(c.want) })
			})
		})
	}
}

// flushNow asks for a flush until it is answered. A repeat may find that nothing
// is there any more.
func (l *ledger) flushNow() error {
	return l.retry(func(ctx context.Context, c object.Caller, id string) error {
		_, err := l.job.FlushNow(ctx, c, id)
		return err
	})
}

// flushedAs checks that all events are in one generation, flushed for a reason.
func (l *ledger) flushedAs(want debounce.Reason) error {
	f := l.flushes[1]
	if len(l.flushes) != 1 || f == nil || f.Reason != want || f.Count != len(l.acked) {
		return fmt.Errorf("flushes %+v, want one of %d events for %s", f, len(l.acked), want)
	}
	st := l.status()
	if st.Generation != 2 || st.Events != 0 || st.Flushed != 1 || st.Meta.Status != jobs.Running {
		return fmt.Errorf("status %+v after the flush", st)
	}
	return nil
}

// Proves D2: an add that was cut off and is repeated applies once. An add with a lost
// reply gets the first answer when it is repeated, and the count is unchanged. Cases DB1
// and DB2.
func TestCrashRepeatedAdd(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(30), Dedup: time.Hour})
		for i, id := range []string{"a", "b"} {
			want := debounce.Ack{Generation: 1, Events: i + 1}
			if got := l.add(id); got != want {
				s.Errorf("D2: add %s: %+v, want %+v", id, got, want)
			}
			if again := l.add(id); again != want {
				s.Errorf("D2: repeated add %s: %+v, want %+v", id, again, want)
			}
		}
		if st := l.status(); st.Events != 2 {
			s.Errorf("D2: %d events are stored, want 2", st.Events)
		}
		s.OK(l.flushNow())
		s.Advance(seconds(1))
	})
}

// An id is forgotten after Config.Dedup, also when its event was flushed long ago,
// and not before. Proves D2.
func TestDedupTime(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(5), Dedup: time.Minute})
		l.lives = true // the event is flushed twice
		want := debounce.Ack{Generation: 1, Events: 1}
		if first := l.add("a"); first != want {
			s.Errorf("D2: first answer %+v", first)
		}
		s.Advance(seconds(50))
		if again := l.add("a"); again != want {
			s.Errorf("D2: answer %+v within the time", again)
		}
		s.Advance(seconds(14)) // in another second the object would end (D6)
		if fresh := l.add("a"); fresh != (debounce.Ack{Generation: 2, Events: 1}) {
			s.Errorf("D2: answer %+v after the time", fresh)
		}
	}, checks...)
}

// An event without an id happens once if it was acknowledged, and otherwise once
// or not at all.
func TestCrashAddWithoutID(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(5), Reduce: collect})
		l.addOnce("a")
		l.addOnce("b")
		s.Advance(seconds(6))
	})
}

// Proves D3: a flush that fails is repeated with the same events and reason, and
// events that come meanwhile go to the next. Its attempts are numbered alike in
// Flush and in the events (see checkEvents). Case 4. Case 10. Case 11.
func TestCrashRetriedFlush(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{
			Quiet: seconds(2), Retry: jobs.Retry{MaxAttempts: 2, Backoff: jobs.Constant(seconds(4))},
		})
		failed := false
		l.fail = func(f *flush) error {
			if f.Generation == 1 && !failed {
				failed = true
				return errors.New("not yet")
			}
			return nil
		}
		l.add("a")
		s.Advance(seconds(5)) // the first attempt fails
		if ack := l.add("b"); ack.Generation != 2 && s.Crashes() == 0 {
			s.Errorf("D3: an event during backoff went to generation %d", ack.Generation)
		}
		s.Advance(1500 * time.Millisecond) // the second one does not
		s.Finally("generations", func() error {
			if len(l.flushes) != 2 || l.flushes[1].Count != 1 {
				return fmt.Errorf("D3: flushes %+v", l.flushes)
			}
			return nil
		})
	})
}

// Proves D3: with a crash at any point, an event that comes while the flush does its work
// belongs to the next generation. The flush itself sends it. Case 11. Case DB4.
func TestCrashEventDuringFlush(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(5), Reduce: collect})
		l.also = func(ctx context.Context, f *flush) error {
			if f.Generation > 1 {
				return nil
			}
			ack, err := l.job.Add(ctx, f, name, event{ID: "late"}, debounce.EventID("late"))
			if err == nil && ack.Generation != 2 {
				s.Errorf("D3: an event during flush 1 went to generation %d", ack.Generation)
			}
			return err
		}
		l.add("a")
		l.acked = append(l.acked, "late")
		s.Advance(seconds(8))
	})
}

// A process that was down for an hour flushes at once the events that came due meanwhile,
// with the cause and the time at which they were due. An event that arrives right after
// the start does not join them. Proves D4. Case DB3.
func TestCrashDueWhileDown(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(5), MaxWait: seconds(60)})
		l.also = func(_ context.Context, f *flush) error {
			if want := f.Last.Add(seconds(5)); f.Reason != debounce.ReasonQuiet || !f.Due.Equal(want) {
				s.Errorf("D4: generation %d was due %v for %s, want %v for quiet", f.Generation, f.Due, f.Reason, want)
			}
			return nil
		}
		l.add("a")
		s.Crash(harness.PowerLoss)
		s.Advance(time.Hour)
		s.Restart()
		l.add("b")
		l.pass(seconds(1))
		if f := l.flushes[1]; f == nil || f.Count != 1 {
			s.Errorf("generation 1 is not flushed a second after the start: %+v", f)
		}
	})
}

// The same with each crash followed by an hour of downtime: the due time never
// follows from the time of the start.
func TestCrashLongDowntime(t *testing.T) {
	scenario := func(s *harness.Sim) {
		l := newLedger(s, config{Mode: debounce.Window, Window: seconds(5)})
		l.also = func(_ context.Context, f *flush) error {
			if want := f.First.Add(seconds(5)); !f.Due.Equal(want) || f.Last.After(f.Due) {
				s.Errorf("D4: generation %d with events from %v to %v was due %v", f.Generation, f.First, f.Last, f.Due)
			}
			return nil
		}
		l.add("a")
		s.Advance(seconds(2))
		l.add("b")
		s.Advance(seconds(10))
	}
	exhaust(t, scenario, harness.Downtime(time.Hour), harness.Settle(time.Minute))
}

// totals is an object that flushes fold their counts into.
type totals struct {
	st    *object.State
	total int
}

var (
	totalsClass = object.Define("totals", func(ctx context.Context, st *object.State) (*totals, error) {
		t := &totals{st: st}
		_, err := st.Storage().GetInto(ctx, "total", &t.total)
		return t, err
	})
	fold = object.Handle(totalsClass, "fold", func(t *totals, ctx context.Context, n int) (int, error) {
		t.total += n
		return t.total, t.st.Storage().Put(ctx, "total", t.total)
	})
)

// Proves D3 for flushes that update other objects: with Key as the idempotency key, each
// generation is folded once, also with a crash at any point.
func TestCrashFlushIntoAnotherObject(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(5)}, totalsClass)
		l.also = func(ctx context.Context, f *flush) error {
			_, err := fold.Call(ctx, f, "all", f.Count, object.Idempotent(f.Key, 0))
			return err
		}
		l.add("a")
		l.add("b")
		s.Advance(seconds(6))
		s.Finally("totals", func() error {
			var got int
			s.OK(s.Retry(func() (err error) { got, err = fold.Call(s.Context(), s, "all", 0); return err }))
			if got != len(l.acked) {
				return fmt.Errorf("the total is %d, want %d", got, len(l.acked))
			}
			return nil
		})
	})
}

// Proves J4: an event that is refused leaves nothing behind, and the id is free.
// The first call of Reduce gets no state. Proves D5. Case 1. Case 12.
func TestCrashRefusedFirstEvent(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(5), Reduce: func(ids []string, exists bool, e event) ([]string, error) {
			if e.ID == "odd" {
				return append(ids, "spoilt"), errOdd
			}
			return collect(ids, exists, e)
		}})
		for _, bad := range []event{{ID: "x", N: -1}, {ID: "odd"}} {
			err := s.Retry(func() error {
				_, err := l.job.Add(s.Context(), s, name, bad, debounce.EventID(bad.ID))
				return err
			})
			if !errors.Is(err, jobs.ErrInvalid) && !errors.Is(err, errOdd) {
				s.Errorf("add %+v: %v", bad, err)
			}
		}
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			in, err := h.Inspect(ctx, l.job.ID(name))
			if err == nil && (in.Exists || in.Alarm != nil) {
				s.Errorf("J4: a refused event left %+v", in)
			}
			return err
		}))
		if got := l.add("x"); got != (debounce.Ack{Generation: 1, Events: 1}) {
			s.Errorf("J4: the first good event: %+v", got)
		}
		_, err := l.job.Add(s.Context(), s, name, event{ID: "odd"})
		if err != nil && !harness.Unknown(err) && !errors.Is(err, errOdd) {
			s.Errorf("add odd: %v", err)
		}
	})
}

var errOdd = errors.New("odd")

// An add in mode Trailing leaves the alarm where it is. The alarm then rings too early
// and is set for the rest of the time, and the flush comes at its time.
func TestAlarmIsLazy(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		l := newLedger(s, config{Quiet: seconds(5)})
		begin := s.Now()
		l.add("a")
		s.Advance(seconds(3))
		l.add("b")
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			in, err := h.Inspect(ctx, l.job.ID(name))
			if err == nil && (in.Alarm == nil || !in.Alarm.Due.Equal(begin.Add(seconds(5)))) {
				s.Errorf("the second event moved the alarm: %+v", in.Alarm)
			}
			return err
		}))
		s.Advance(seconds(10))
		log := s.World().Log()
		if want := begin.Add(seconds(8)); len(log) != 1 || !log[0].Time.Equal(want) {
			s.Errorf("effects %+v, want one at %v", log, want)
		}
	}, checks...)
}
