package timers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/timers"
)

// Proves T1: a timer fires at its time, in order, and then it is gone, with its object.
func TestTimersFireOnce(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		var order []string
		r := newRig(s, timers.Options{}, func(_ context.Context, _ *box, t timers.Timer) error {
			order = append(order, fmt.Sprint(t.Name, t.Scheduled.Sub(s.Now())))
			return nil
		})
		r.at("b", 2*time.Second)
		r.at("a", 3*time.Second)
		r.at("now", -time.Second)
		r.at("c", 2*time.Second)
		r.Advance(1999 * time.Millisecond)
		if len(order) != 1 {
			r.Errorf("before their time: %v", order)
		}
		r.Advance(time.Hour)
		if got := strings.Join(order, " "); got != "now-1s b0s c0s a0s" {
			r.Errorf("fired %s", got)
		}
		r.OK(r.WithHost(func(ctx context.Context, h *object.Host) error {
			in, err := h.Inspect(ctx, r.class.ID("a"))
			if err == nil && in.Exists {
				err = fmt.Errorf("the object exists after its last timer: %+v", in)
			}
			return err
		}))
	}, harness.OneAlarm, harness.EarliestTimer, harness.NoLostAck)
}

// alarmAt is the time of the stored alarm of the box "a"; zero if it has none.
func (r *rig) alarmAt() (at time.Time) {
	r.must(func(ctx context.Context, b *box) (err error) {
		at, _, err = b.st.Alarm(ctx)
		return err
	})
	return at
}

// Proves T4: a name has one timer, and the alarm follows the earliest one.
func TestReplaceAndCancel(t *testing.T) {
	run(t, timers.Options{}, nil, func(r *rig) {
		begin := r.Now()
		in := func(d time.Duration) {
			r.Helper()
			want := time.Time{}
			if d != 0 {
				want = begin.Add(d)
			}
			if got := r.alarmAt(); !got.Equal(want) {
				r.Errorf("the alarm is at %v, want %v", got, want)
			}
		}
		r.at("a", time.Hour)
		in(time.Hour)
		r.at("b", 2*time.Hour)
		in(time.Hour)
		r.at("a", 3*time.Hour) // the earliest moves behind another
		in(2 * time.Hour)
		r.at("a", time.Minute)
		in(time.Minute)
		cancel := func(name string, want bool) {
			r.Helper()
			r.must(func(ctx context.Context, b *box) error {
				was, err := b.timers.Cancel(ctx, name)
				if err == nil && was != want {
					err = fmt.Errorf("Cancel(%q) is %t", name, was)
				}
				return err
			})
		}
		cancel("a", true)
		in(2 * time.Hour)
		cancel("a", false)
		cancel("b", true)
		in(0)
		r.Advance(5 * time.Hour)
		r.want("a", 0)
		r.want("b", 0)
	})
}

// Proves T4: a turn, or a transaction, that fails has set, moved and cancelled nothing.
func TestTimersOfAFailedTurn(t *testing.T) {
	run(t, timers.Options{}, nil, func(r *rig) {
		r.at("kept", time.Minute)
		change := func(ctx context.Context, b *box) error {
			at := b.st.Now().Add(time.Second)
			_, err := b.timers.Cancel(ctx, "kept")
			return errors.Join(err, b.timers.At(ctx, "new", at, nil), errNo)
		}
		if err := r.turn(change); !errors.Is(err, errNo) {
			r.Errorf("the turn: %v", err)
		}
		r.must(func(ctx context.Context, b *box) error {
			err := b.st.Storage().Transaction(ctx, func(ctx context.Context, _ *object.Storage) error { return change(ctx, b) })
			if !errors.Is(err, errNo) {
				r.Errorf("the transaction: %v", err)
			}
			return nil
		})
		r.Advance(time.Hour)
		r.want("kept", 1)
		r.want("new", 0)
	})
}

// Proves T4: a mistake is refused before anything is written, and named. Each limit is
// tried on both sides.
func TestRefusedTimers(t *testing.T) {
	last := time.Unix(0, 1<<63-1)
	long := strings.Repeat("x", timers.MaxName)
	const most = 1 << 10
	payload := func(name string) string { return strings.Repeat("p", most-80-len(name)-2) } // JSON adds two quotes
	cron := jobs.Cron("0 0 9 1 * *", "Europe/Paris")
	cases := []struct {
		name string
		set  func(ctx context.Context, b *box) error
		want error // nil: it is taken
	}{
		{"", func(ctx context.Context, b *box) error { return b.timers.At(ctx, "", last, nil) }, jobs.ErrInvalid},
		{"xx", func(ctx context.Context, b *box) error { return b.timers.At(ctx, long+"x", last, nil) }, jobs.ErrInvalid},
		{`\xff`, func(ctx context.Context, b *box) error { return b.timers.At(ctx, "\xff", last, nil) }, jobs.ErrInvalid},
		{"xx", func(ctx context.Context, b *box) error { return b.timers.At(ctx, long, last, nil) }, nil},
		{"nul\x00", func(ctx context.Context, b *box) error { return b.timers.At(ctx, "nul\x00", last, nil) }, nil},
		{"old", func(ctx context.Context, b *box) error { return b.timers.At(ctx, "old", time.Unix(0, 0), nil) }, object.ErrBadAlarmTime},
		{"old", func(ctx context.Context, b *box) error { return b.timers.At(ctx, "old", time.Time{}, nil) }, object.ErrBadAlarmTime},
		{"first", func(ctx context.Context, b *box) error { return b.timers.At(ctx, "first", time.Unix(0, 1), nil) }, nil},
		{"far", func(ctx context.Context, b *box) error { return b.timers.At(ctx, "far", last.Add(1), nil) }, object.ErrBadAlarmTime},
		{"large", func(ctx context.Context, b *box) error { return b.timers.At(ctx, "large", last, payload("large")+"p") }, object.ErrValueTooLarge},
		{"fits", func(ctx context.Context, b *box) error { return b.timers.At(ctx, "fits", last, payload("fits")) }, nil},
		{"func", func(ctx context.Context, b *box) error { return b.timers.At(ctx, "func", last, func() {}) }, errors.ErrUnsupported},
		{"none", func(ctx context.Context, b *box) error { return b.timers.On(ctx, "none", jobs.Schedule{}, nil) }, jobs.ErrInvalid},
		{"short", func(ctx context.Context, b *box) error { return b.timers.On(ctx, "short", jobs.Every(1), nil) }, jobs.ErrInvalid},
		{"never", func(ctx context.Context, b *box) error {
			return b.timers.On(ctx, "never", jobs.Cron("0 0 30 2 *", ""), nil)
		}, jobs.ErrInvalid},
		{"far", func(ctx context.Context, b *box) error {
			return b.timers.On(ctx, "far", jobs.Every(250*365*24*time.Hour), nil)
		}, object.ErrBadAlarmTime},
		{"monthly", func(ctx context.Context, b *box) error { return b.timers.On(ctx, "monthly", cron, nil) }, nil},
		{"limit", func(ctx context.Context, b *box) error {
			_, err := b.timers.All(ctx, timers.Timer{}, 0)
			return err
		}, jobs.ErrInvalid},
	}
	harness.Run(t, func(s *harness.Sim) {
		r := newRig(s, timers.Options{}, nil)
		for _, c := range cases {
			err := r.turn(c.set)
			switch {
			case c.want == nil && err != nil, c.want != nil && err == nil:
				r.Errorf("%q: %v, want %v", c.name, err, c.want)
			case c.want == nil:
				continue
			case !errors.Is(err, c.want) && c.want != errors.ErrUnsupported || !strings.Contains(err.Error(), c.name) || !strings.Contains(err.Error(), "box/a"):
				r.Errorf("%q: %v, want %v with both names", c.name, err, c.want)
			}
		}
		r.must(func(ctx context.Context, b *box) error {
			// All in one turn, which swallows the errors: nothing of the refused ones is there.
			for _, c := range cases {
				if c.want != nil {
					_ = c.set(ctx, b)
				}
			}
			all, err := b.timers.All(ctx, timers.Timer{}, 100)
			if err == nil && len(all) != 4 { // "first" has fired
				err = fmt.Errorf("%d timers: %v", len(all), all)
			}
			return err
		})
	}, harness.EarliestTimer, harness.HostOptions(func(o *object.Options) { o.MaxValueBytes = most }))
}

// Proves T4, S7: a timer that does not fit in the turn is refused whole, wherever the
// limit lies.
func TestTimersBeyondTheBatch(t *testing.T) {
	for room := range 30 {
		harness.Run(t, func(s *harness.Sim) {
			r := newRig(s, timers.Options{}, nil)
			r.at("moved", time.Hour)
			r.must(func(ctx context.Context, b *box) error {
				if err := b.st.Storage().PutBytes(ctx, "fill", make([]byte, 64<<10-100-room*10)); err != nil {
					return err
				}
				if err := b.timers.At(ctx, "moved", b.st.Now().Add(time.Minute), nil); err != nil && !errors.Is(err, object.ErrBatchTooLarge) {
					return err
				}
				if _, err := b.timers.Cancel(ctx, "moved"); err != nil && !errors.Is(err, object.ErrBatchTooLarge) {
					return err
				}
				return nil
			})
		}, harness.EarliestTimer, harness.HostOptions(func(o *object.Options) { o.MaxBatchBytes, o.MaxValueBytes = 64<<10, 64<<10 }))
	}
}

// Proves T5: a list is in order, and goes on behind any timer of it.
func TestListOfTimers(t *testing.T) {
	run(t, timers.Options{}, nil, func(r *rig) {
		begin := r.Now()
		r.must(func(ctx context.Context, b *box) error {
			for i := range 25 {
				if err := b.timers.At(ctx, fmt.Sprintf("t%02d", i), begin.Add(time.Duration(100-i/2)*time.Minute), i); err != nil {
					return err
				}
			}
			return nil
		})
		for _, limit := range []int{1, 2, 7, 25, 26} {
			var names []string
			last := timers.Timer{}
			for range 30 {
				var page []timers.Timer
				r.must(func(ctx context.Context, b *box) (err error) {
					page, err = b.timers.All(ctx, last, limit)
					return err
				})
				if len(page) == 0 {
					break
				}
				if len(page) > limit {
					r.Fatalf("a page of %d, the limit is %d", len(page), limit)
				}
				for _, x := range page {
					n := -1
					if err := x.Payload(&n); err != nil || x.Name != fmt.Sprintf("t%02d", n) || !x.Due.Equal(begin.Add(time.Duration(100-n/2)*time.Minute)) {
						r.Errorf("%+v with payload %d, %v", x, n, err)
					}
					names = append(names, x.Name)
				}
				last = page[len(page)-1]
			}
			if got := strings.Join(names, " "); got != "t24 t22 t23 t20 t21 t18 t19 t16 t17 t14 t15 t12 t13 t10 t11 t08 t09 t06 t07 t04 t05 t02 t03 t00 t01" {
				r.Errorf("limit %d: %s", limit, got)
			}
		}
	})
}

// Proves T4: Get finds a timer as it was set, and none after it has gone.
func TestGetOfATimer(t *testing.T) {
	run(t, timers.Options{}, nil, func(r *rig) {
		at := r.Now().Add(time.Hour)
		r.must(func(ctx context.Context, b *box) error {
			return errors.Join(b.timers.At(ctx, "a", at, map[string]int{"n": 7}), b.timers.On(ctx, "b", jobs.Rate(time.Minute), nil))
		})
		r.must(func(ctx context.Context, b *box) error {
			x, ok, err := b.timers.Get(ctx, "a")
			var p map[string]int
			if err = errors.Join(err, x.Payload(&p)); err != nil || !ok || !x.Due.Equal(at) || !x.Scheduled.Equal(at) || x.Schedule.String() != "manual" || p["n"] != 7 {
				return fmt.Errorf("%+v, %t, %v, payload %v", x, ok, err, p)
			}
			if err := x.Payload(new(int)); err == nil || !strings.Contains(err.Error(), `"a"`) {
				return fmt.Errorf("a payload of another type: %v", err)
			}
			x, ok, err = b.timers.Get(ctx, "b")
			n := 5
			if err = errors.Join(err, x.Payload(&n)); err != nil || !ok || x.Schedule.String() != "rate 1m0s" || !x.Scheduled.IsZero() || n != 5 {
				return fmt.Errorf("%+v, %t, %v, payload %d", x, ok, err, n)
			}
			if x, ok, err = b.timers.Get(ctx, "c"); ok || err != nil {
				return fmt.Errorf("no timer: %+v, %v", x, err)
			}
			return nil
		})
	})
}

// Case 45. Proves T1, T4: a handler replaces or cancels its own timer, and those beside it.
func TestTimersChangedInTheirHandler(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(ctx context.Context, b *box, t timers.Timer) error
		a, b int // how often they fire in an hour
	}{
		{"later", func(ctx context.Context, b *box, t timers.Timer) error {
			if t.Failures == 0 && t.Due.Second() == 1 {
				return b.timers.At(ctx, "a", t.Due.Add(time.Minute+time.Second), nil)
			}
			return nil
		}, 2, 1},
		{"at the same instant", func(ctx context.Context, b *box, t timers.Timer) error {
			var again bool
			if err := t.Payload(&again); err != nil || again {
				return err
			}
			return b.timers.At(ctx, "a", t.Due, true)
		}, 2, 1},
		{"cancelled", func(ctx context.Context, b *box, t timers.Timer) error {
			was, err := b.timers.Cancel(ctx, "a")
			if err == nil && !was {
				err = errors.New("it is gone already")
			}
			return err
		}, 1, 1},
		{"the next cancelled", func(ctx context.Context, b *box, t timers.Timer) error {
			_, err := b.timers.Cancel(ctx, "b")
			return err
		}, 1, 0},
		{"the next put off", func(ctx context.Context, b *box, t timers.Timer) error {
			return b.timers.At(ctx, "b", t.Due.Add(2*time.Hour), nil)
		}, 1, 0},
		{"all deleted", func(ctx context.Context, b *box, t timers.Timer) error {
			return errors.Join(b.st.Storage().DeleteAll(ctx), count(ctx, b, t.Name))
		}, 2, 0}, // the handler's own count, and the one of the rig
		{"replaced in a transaction that fails", func(ctx context.Context, b *box, t timers.Timer) error {
			_ = b.st.Storage().Transaction(ctx, func(ctx context.Context, _ *object.Storage) error {
				return errors.Join(b.timers.At(ctx, "a", t.Due.Add(time.Minute), nil), errNo)
			})
			return nil
		}, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			harness.Run(t, func(s *harness.Sim) {
				r := newRig(s, timers.Options{}, nil)
				r.fire = func(ctx context.Context, b *box, t timers.Timer) error {
					if t.Name == "a" {
						if err := c.do(ctx, b, t); err != nil {
							return err
						}
					}
					return count(ctx, b, t.Name)
				}
				r.must(func(ctx context.Context, b *box) error {
					at := b.st.Now().Truncate(time.Minute).Add(61 * time.Second)
					return errors.Join(b.timers.At(ctx, "a", at, nil), b.timers.At(ctx, "b", at, nil))
				})
				r.Advance(time.Hour)
				r.want("a", c.a)
				r.want("b", c.b)
				r.Always("no letter", len(r.letters()) == 0, r.letters())
			}, harness.EarliestTimer, harness.OneAlarm)
		})
	}
}

// Proves T2: an alarm runs up to 64 timers in one turn, and the rest in the next.
func TestTimersOfOneTurn(t *testing.T) {
	for _, c := range []struct{ timers, alarms int }{{63, 1}, {64, 1}, {65, 2}, {130, 3}} {
		run(t, timers.Options{}, nil, func(r *rig) {
			at := r.Now().Add(time.Minute)
			r.must(func(ctx context.Context, b *box) error {
				for i := range c.timers {
					if err := b.timers.At(ctx, fmt.Sprint(i), at, nil); err != nil {
						return err
					}
				}
				return nil
			})
			r.Advance(time.Hour)
			if n := r.World().Count("fire/" + fmt.Sprint(c.timers-1)); n != 1 || r.alarms != c.alarms {
				r.Errorf("%d timers: the last fired %d times, in %d alarms, want %d", c.timers, n, r.alarms, c.alarms)
			}
		})
	}
}

// Case 43. Proves A2, T4: an alarm has one owner.
func TestOneOwnerOfTheAlarm(t *testing.T) {
	run(t, timers.Options{}, nil, func(r *rig) {
		r.at("a", time.Hour)
		for name, by := range map[string]func(ctx context.Context, b *box) error{
			"SetAlarm":    func(ctx context.Context, b *box) error { return b.st.SetAlarm(ctx, b.st.Now()) },
			"DeleteAlarm": func(ctx context.Context, b *box) error { return b.st.DeleteAlarm(ctx) },
			"Attach": func(ctx context.Context, b *box) error {
				_, err := timers.Attach(ctx, b.st, timers.Options{}, func(context.Context, timers.Timer) error { return nil })
				return err
			},
		} {
			err := r.turn(by)
			if !errors.Is(err, object.ErrAlarmOwned) || !strings.Contains(err.Error(), "box/a") || !strings.Contains(err.Error(), "the timers of the object") {
				r.Errorf("%s: %v", name, err)
			}
		}
		r.must(func(ctx context.Context, b *box) error { return b.st.Storage().DeleteAll(ctx) })
		if at := r.alarmAt(); !at.IsZero() {
			r.Errorf("after DeleteAll there is an alarm at %v", at)
		}
		r.at("b", time.Minute)
		r.Advance(2 * time.Hour)
		r.want("a", 0)
		r.want("b", 1)
	})
}

// Proves A2: Attach refuses a class without an Alarm method, before a timer can be set.
func TestAttachWithoutAlarm(t *testing.T) {
	harness.Run(t, func(s *harness.Sim) {
		class := object.Define("deaf", func(ctx context.Context, st *object.State) (*deaf, error) {
			timers, err := timers.Attach(ctx, st, timers.Options{}, func(context.Context, timers.Timer) error { return nil })
			return &deaf{timers}, err
		})
		set := object.Handle(class, "set", func(d *deaf, ctx context.Context, at time.Time) (int, error) {
			_ = d.timers.At(ctx, "t", at, nil) // its rows are written before it sets the alarm
			return 0, nil
		})
		s.Host(class)
		_, err := set.Call(s.Context(), s, "x", s.Now())
		s.Always("refused", errors.Is(err, object.ErrNoAlarmHandler) && strings.Contains(err.Error(), "deaf/x"), err)
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			in, err := h.Inspect(ctx, class.ID("x"))
			s.Always("nothing is stored", err != nil || !in.Exists, in, err)
			return nil
		}))
	})
}

// deaf is an object with timers and without an Alarm method.
type deaf struct{ timers *timers.Timers }

// Proves A2: timers in a job are refused, because the engine owns the alarm of a job.
func TestMistakesOfAttach(t *testing.T) {
	ok := func(context.Context, timers.Timer) error { return nil }
	bad := timers.Options{}
	bad.Retry.MaxAttempts = -1
	for name, c := range map[string]struct {
		o    timers.Options
		fire timers.Handler
		text string
	}{
		"no handler": {timers.Options{}, nil, "handler is nil"},
		"retry":      {bad, ok, "MaxAttempts"},
		"missed":     {timers.Options{Missed: 9}, ok, "Missed is 9"},
	} {
		harness.Run(t, func(s *harness.Sim) {
			class := object.Define("bad", func(ctx context.Context, st *object.State) (*box, error) {
				_, err := timers.Attach(ctx, st, c.o, c.fire)
				return &box{}, err
			})
			call := object.Handle(class, "call", func(*box, context.Context, struct{}) (int, error) { return 0, nil })
			s.Host(class)
			_, err := call.Call(s.Context(), s, "x", struct{}{})
			if !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), "bad/x") {
				s.Errorf("%s: %v", name, err)
			}
		})
	}
}
