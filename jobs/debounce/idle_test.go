package debounce_test

import (
	"context"
	"encoding/json"
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

// book knows a scenario from outside, in which an object lives more than once: the
// acknowledged events, and the events of each flush, by its key.
type book struct {
	s       *harness.Sim
	job     *debounce.Job[event, []string]
	acked   []string
	flushed map[string][]string
	work    func(ctx context.Context, f *flush) error // nil: the flush does nothing more
}

// newBook opens a host with a job of the given definition.
func newBook(s *harness.Sim, c config) *book {
	b := bookOf(s, c)
	s.Host(b.job)
	return b
}

// bookOf is the book of a job that no host knows yet.
func bookOf(s *harness.Sim, c config) *book {
	b := &book{s: s, flushed: map[string][]string{}}
	c.Name = "hooks"
	c.Flush = func(ctx context.Context, f *flush) error {
		if was, ok := b.flushed[f.Key]; ok && !slices.Equal(was, ids(f)) {
			s.Errorf("D3: the flush %s had %q, and has %q", f.Key, was, ids(f))
		}
		b.flushed[f.Key] = ids(f)
		if b.work == nil {
			return nil
		}
		return b.work(ctx, f)
	}
	b.job = debounce.New(c)
	s.Finally("each acknowledged event is in exactly one flush", b.checkFlushes)
	return b
}

func (b *book) checkFlushes() error {
	count := map[string]int{}
	for _, ids := range b.flushed {
		for _, id := range ids {
			count[id]++
		}
	}
	for _, id := range b.acked {
		if count[id] != 1 {
			return fmt.Errorf("D2: event %s is in %d of the flushes %v", id, count[id], b.flushed)
		}
	}
	return nil
}

// add adds an event until it is acknowledged.
func (b *book) add(id string) (ack debounce.Ack) {
	b.s.OK(b.s.Retry(func() (err error) {
		ack, err = b.job.Add(b.s.Context(), b.s, name, event{ID: id}, debounce.EventID(id))
		return err
	}))
	if !slices.Contains(b.acked, id) {
		b.acked = append(b.acked, id)
	}
	return ack
}

func (b *book) status() (st debounce.Status, err error) {
	err = b.s.Retry(func() (err error) {
		st, err = b.job.Status(b.s.Context(), b.s, name)
		return err
	})
	return st, err
}

// purgeAt is when the object says that it goes.
func (b *book) purgeAt() time.Time {
	st, err := b.status()
	b.s.OK(err)
	return st.PurgeAt
}

// until lets time pass until at.
func (b *book) until(at time.Time) { b.s.Advance(at.Sub(b.s.Now())) }

// exists reports whether the object has anything stored, which its listing must confirm.
func (b *book) exists() (exists bool) {
	b.s.OK(b.s.WithHost(func(ctx context.Context, h *object.Host) error {
		in, err := h.Inspect(ctx, b.job.ID(name))
		all, err2 := h.Objects(ctx, "hooks", object.ObjectsOptions{Limit: 10})
		exists = in.Exists || in.Alarm != nil || in.Execution
		if len(all) == 1 != exists || exists != (len(in.Keys) > 0) {
			b.s.Errorf("D6: inspected %+v, listed %+v", in, all)
		}
		return errors.Join(err, err2)
	}))
	return exists
}

// alarm is when the object will be woken; zero: never.
func (b *book) alarm() (at time.Time) {
	b.s.OK(b.s.WithHost(func(ctx context.Context, h *object.Host) error {
		in, err := h.Inspect(ctx, b.job.ID(name))
		if in.Alarm != nil {
			at = in.Alarm.Due
		}
		return err
	}))
	return at
}

// goesAt checks that the object is there until at, and gone then.
func (b *book) goesAt(at time.Time) {
	b.until(at.Add(-1))
	if !b.exists() {
		b.s.Errorf("D6: the object is gone before %v", at)
	}
	b.s.Advance(1)
	if b.exists() {
		b.s.Errorf("D6: the object is there at %v", at)
	}
}

// ends are the reasons for which the object's lives ended, and how many began.
func (b *book) ends() (reasons []string, lives int) {
	b.s.OK(b.s.WithHost(func(ctx context.Context, h *object.Host) error {
		events, err := h.Events(ctx, b.job.ID(name), 0, 1000)
		for _, e := range events {
			switch e.Kind {
			case jobs.EventCreated:
				lives++
			case jobs.EventTerminated:
				var ev jobs.Event
				err = errors.Join(err, json.Unmarshal(e.Data, &ev))
				reasons = append(reasons, ev.Reason)
			}
		}
		return err
	}))
	return reasons, lives
}

// Proves D6: an object without events exists, and remembers the ids, until exactly its
// dedup time after the flush. Then it is gone, and its end says why. The next event
// begins a new life, with numbers from 1 and other keys. Case DB6.
func TestIdleObjectGoes(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		b := newBook(s, config{Quiet: seconds(5), MaxEvents: 1, Dedup: time.Hour})
		begin := s.Now()
		first := b.add("a")
		s.RunUntilIdle()
		at := begin.Add(time.Hour)
		if got := b.purgeAt(); !got.Equal(at) || !b.alarm().Equal(at) {
			s.Errorf("D6: the object goes at %v, its alarm is at %v, want %v", got, b.alarm(), at)
		}
		b.until(at.Add(-1))
		if again := b.add("a"); again != first {
			s.Errorf("D2: a repeat within the dedup time: %+v, want %+v", again, first)
		}
		b.goesAt(at)
		if _, err := b.status(); !errors.Is(err, jobs.ErrNotFound) {
			s.Errorf("D6: status of an object that is gone: %v", err)
		}
		if reasons, lives := b.ends(); !slices.Equal(reasons, []string{jobs.IdleReason}) || lives != 1 {
			s.Errorf("D6: %d lives ended for %q", lives, reasons)
		}
		if ack := b.add("b"); ack != (debounce.Ack{Generation: 1, Events: 1}) {
			s.Errorf("D6: the first event of a new life: %+v", ack)
		}
		s.RunUntilIdle()
		if len(b.flushed) != 2 {
			s.Errorf("D6: the flushes of two lives had the keys %v", b.flushed)
		}
	}, checks...)
}

// Proves D6: a flush, and a Clear, begin the time anew, and an object with an event has
// none.
func TestChangesMoveTheEnd(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		b := newBook(s, config{Quiet: seconds(5), Dedup: time.Hour})
		b.add("a")
		if at := b.purgeAt(); !at.IsZero() {
			s.Errorf("D6: an object with an event goes at %v", at)
		}
		s.Advance(seconds(5))
		at := s.Now().Add(time.Hour)
		b.until(at.Add(-1))
		if ack := b.add("b"); ack.Generation != 2 {
			s.Errorf("D6: an event just before the end: %+v", ack)
		}
		s.Advance(1)
		if !b.exists() {
			s.Errorf("D6: an object with an event is gone")
		}
		s.Advance(seconds(5) - 1) // it is flushed
		at = s.Now().Add(time.Hour)
		if got := b.purgeAt(); !got.Equal(at) {
			s.Errorf("D6: the object goes at %v after its second flush, want %v", got, at)
		}
		b.until(at.Add(-2))
		b.add("c")
		b.acked = slices.DeleteFunc(b.acked, func(id string) bool { return id == "c" }) // it is discarded
		s.Advance(1)
		_, err := b.job.Clear(s.Context(), s, name)
		s.OK(err)
		b.goesAt(s.Now().Add(time.Hour))
	}, checks...)
}

// Proves D6: an object that is paused, or has failed, stays for ever. A Resume begins
// the time anew.
func TestRestingObjectStays(t *testing.T) {
	for what, failing := range map[string]bool{"paused": false, "failed": true} {
		t.Run(what, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				b := newBook(s, config{Quiet: seconds(5), MaxEvents: 1, Dedup: time.Hour})
				b.work = func(context.Context, *flush) error {
					if failing {
						return errors.New("broken")
					}
					return nil
				}
				b.add("a")
				s.RunUntilIdle()
				if !failing {
					s.OK(b.job.Pause(s.Context(), s, name))
				}
				if !b.alarm().IsZero() || !b.purgeAt().IsZero() {
					s.Errorf("D6: a job that is %s has an alarm at %v", what, b.alarm())
				}
				s.Advance(1000 * time.Hour)
				if !b.exists() {
					s.Errorf("D6: a job that is %s is gone", what)
				}
				failing = false
				s.OK(b.job.Resume(s.Context(), s, name))
				s.RunUntilIdle()
				b.goesAt(s.Now().Add(time.Hour))
			}, checks...)
		})
	}
}

// Proves D6: while a flush runs, for longer than the dedup time too, the object stays.
func TestLongFlushKeepsTheObject(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		b := newBook(s, config{Quiet: seconds(5), MaxEvents: 1, Dedup: time.Minute})
		b.work = func(ctx context.Context, f *flush) error { return f.Sleep(ctx, 10*time.Minute) }
		begin := s.Now()
		b.add("a")
		s.Advance(5 * time.Minute)
		if at := b.purgeAt(); !at.IsZero() {
			s.Errorf("D6: an object that flushes goes at %v", at)
		}
		b.goesAt(begin.Add(11 * time.Minute))
	}, checks...)
}

// Proves D6: an object stays while it owes a call of OnExhausted, and for its dedup
// time after that.
func TestOwedHookKeepsTheObject(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		calls, over := 0, time.Time{}
		b := newBook(s, config{
			Quiet: seconds(5), MaxEvents: 1, Dedup: seconds(20), Exhausted: debounce.Drop,
			OnExhausted: func(context.Context, *jobs.Exhaustion) error {
				if calls++; calls < 9 { // the waits before the ninth call add up to 36 s
					return errors.New("not yet")
				}
				over = s.Now()
				return nil
			},
		})
		b.work = func(context.Context, *flush) error { return errors.New("broken") }
		b.add("a")
		s.Advance(seconds(30))
		if at := b.purgeAt(); !at.IsZero() || calls == 0 || !over.IsZero() {
			s.Errorf("D6: an object that owes a call goes at %v; %d calls were made", at, calls)
		}
		s.Advance(seconds(10))
		if over.IsZero() {
			s.Fatalf("%d calls were made and the last has failed", calls)
		}
		b.goesAt(over.Add(seconds(20)))
	}, checks...)
}

// Proves D6: with a crash at any point of its end, an idle object is either gone as a
// whole, or there as a whole and ends later. An event that comes after the end begins a
// new life. Case DB6.
func TestCrashIdleObjectGoes(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		b := newBook(s, config{Quiet: seconds(2), Dedup: seconds(20)})
		b.add("a")
		s.Advance(seconds(40))
		b.add("b")
		s.Finally("each life ended by itself", b.allGone)
	}, harness.Settle(time.Minute))
}

// allGone checks that the object has ended as often as it began, for idleness alone.
func (b *book) allGone() error {
	reasons, lives := b.ends()
	for _, r := range reasons {
		if r != jobs.IdleReason {
			return fmt.Errorf("D6: a life ended for %q", r)
		}
	}
	if b.exists() || len(reasons) != lives {
		return fmt.Errorf("D6: %d lives began and %d ended; there is one: %t", lives, len(reasons), b.exists())
	}
	return nil
}

// Proves D6 and D2: events that come at the very time of the end are in the old life or
// in a new one, and none is lost. Case DB7.
func TestCrashAddAtTheEnd(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		b := newBook(s, config{Quiet: seconds(2), Dedup: seconds(20)})
		b.add("a")
		for i, after := range []time.Duration{seconds(22) - 1, seconds(22), seconds(22), seconds(22) + 1} {
			s.Go(fmt.Sprint("client ", i), func() {
				s.Sleep(after)
				b.add(fmt.Sprint("late ", i))
			})
		}
		s.Advance(seconds(30))
		s.Finally("each life ended by itself", b.allGone)
	}, harness.Settle(time.Minute), harness.Seed(1), crashes.Budget(orderPlans))
}

// Proves D6: an alarm that is delivered twice ends the object once. Case DB7.
func TestCrashEndDeliveredTwice(t *testing.T) {
	exhaust(t, func(s *harness.Sim) {
		b := newBook(s, config{Quiet: seconds(2), Dedup: seconds(20)})
		b.add("a")
		s.Advance(seconds(40))
		b.add("b")
		s.Finally("each life ended by itself", b.allGone)
	}, harness.Settle(time.Minute), harness.AllowFaults(harness.Faults{DupAlarm: 2}), crashes.Budget(orderPlans))
}
