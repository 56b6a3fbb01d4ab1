package timers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/timers"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// thrice tries a timer three times, a minute apart.
var thrice = timers.Options{Retry: alarm.Retry{MaxAttempts: 3, Backoff: alarm.Constant(time.Minute)}}

// failing are the ways in which a handler fails.
var failing = map[string]func(ctx context.Context, b *box) error{
	"error": func(context.Context, *box) error { return errNo },
	"panic": func(context.Context, *box) error { panic(errNo) },
	"release": func(ctx context.Context, b *box) error {
		return b.st.Release(ctx, func(context.Context) error { return nil })
	},
	"writes too much": func(ctx context.Context, b *box) error {
		for i := range 1000 {
			if err := b.st.Storage().PutBytes(ctx, fmt.Sprint("large", i), make([]byte, 1<<20)); err != nil {
				return err
			}
		}
		return nil
	},
}

// Cases 44 and 47. Proves T2, T3: of timers that are due at once, one that fails keeps none of its writes and
// takes nothing away from the others. It is tried again, and is a dead letter in the end.
func TestOneThatFailsHoldsUpNoOther(t *testing.T) {
	for name, fail := range failing {
		uncounted := 0 // attempts
		if name == "writes too much" {
			uncounted = 1 // those before it might have taken the room
		}
		t.Run(name, func(t *testing.T) {
			run(t, thrice, nil, func(r *rig) {
				r.fire = func(ctx context.Context, b *box, t timers.Timer) error {
					if err := r.note(ctx, b, t); err != nil {
						return err
					}
					if t.Name == "3" {
						if t.LastError == "" != (t.Failures == 0) {
							r.Errorf("%+v", t)
						}
						return fail(ctx, b)
					}
					return nil
				}
				at := r.Now().Add(time.Minute)
				r.must(func(ctx context.Context, b *box) error {
					for i := range 6 {
						if err := b.timers.At(ctx, fmt.Sprint(i), at, nil); err != nil {
							return err
						}
					}
					return nil
				})
				r.Advance(time.Minute)
				for i := range 6 {
					n := 1
					if i == 3 {
						n = 0
					}
					r.want(fmt.Sprint(i), n)
					if got := r.World().Count(fmt.Sprint("fire/", i)); got != 1+(1-n)*uncounted {
						r.Errorf("timer %d had %d outside effects at its time", i, got)
					}
				}
				r.must(func(ctx context.Context, b *box) error {
					x, ok, err := b.timers.Get(ctx, "3")
					if err != nil || !ok || x.Failures != 1 || x.LastError == "" || !x.Scheduled.Equal(at) || !x.Due.Equal(at.Add(time.Minute)) {
						err = fmt.Errorf("%+v, %t, %w", x, ok, err)
					}
					return err
				})
				r.Advance(time.Hour)
				if got := r.World().Count("fire/3"); got != 3+uncounted {
					r.Errorf("the timer was tried %d times, want 3", got)
				}
				letters := r.letters()
				if len(letters) != 1 {
					r.Fatalf("dead letters %+v", letters)
				}
				d := letters[0]
				if d.Kind != timers.DeadTimer || d.Attempts != 3 || d.Crashes != 0 || d.Reason != "retries used up" || !d.Scheduled.Equal(at) || string(d.Data) != `{"timer":"3"}` || (d.Stack != "") != (name == "panic") {
					r.Errorf("dead letter %+v", d)
				}
			})
		})
	}
}

// Proves T3: the error of the turn names the timer and the attempt, and nothing of a failed
// turn stays in the memory of the object.
func TestFailedTimerResetsItsObject(t *testing.T) {
	type cell struct {
		st     *object.State
		memory int
	}
	harness.Run(t, func(s *harness.Sim) {
		runs := 0
		class := object.Define("cell", func(ctx context.Context, st *object.State) (*alarmed[cell], error) {
			c := &alarmed[cell]{v: cell{st: st}}
			var err error
			c.timers, err = timers.Attach(ctx, st, thrice, func(ctx context.Context, _ timers.Timer) error {
				runs++
				c.v.memory++
				if runs == 1 {
					return errNo // it has written nothing
				}
				return nil
			})
			return c, err
		}, timers.ClassOptions(object.ClassOptions{}))
		set := object.Handle(class, "set", func(c *alarmed[cell], ctx context.Context, _ struct{}) (int, error) {
			return c.v.memory, c.timers.At(ctx, "a", c.v.st.Now().Add(time.Minute), nil)
		})
		s.Host(class)
		s.Must(set.Call(s.Context(), s, "x", struct{}{}))
		s.Advance(time.Minute)
		n, err := set.Call(s.Context(), s, "x", struct{}{})
		if err != nil || n != 0 || runs != 1 {
			s.Errorf("after a failed timer the memory is %d, %v, in %d runs", n, err, runs)
		}
	})
}

// alarmed gives its alarm to timers.
type alarmed[T any] struct {
	timers *timers.Timers
	v      T
}

func (a *alarmed[T]) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return a.timers.Alarm(ctx, info)
}

// Proves T3: permanent errors, RetryAfter, RetryIf and MaxElapsed mean what they mean
// elsewhere, and the default is that of alarms.
func TestRetriesOfATimer(t *testing.T) {
	for _, c := range []struct {
		name   string
		retry  alarm.Retry
		err    error
		runs   int
		last   time.Duration // of the last attempt, after the first; with jitter at most a quarter more
		reason string
	}{
		{"default", alarm.Retry{}, errNo, 7, 126 * time.Second, "retries used up"},
		{"once", alarm.Retry{MaxAttempts: 1}, errNo, 1, 0, "retries used up"},
		{"permanent", alarm.Retry{}, object.Permanent(errNo), 1, 0, "permanent error"},
		{"retry after", alarm.Retry{MaxAttempts: 2}, object.RetryAfter(time.Hour, errNo), 2, time.Hour, "retries used up"},
		{"not retryable", alarm.Retry{RetryIf: func(error) bool { return false }}, errNo, 1, 0, "not retryable"},
		{"elapsed", alarm.Retry{MaxAttempts: 100, Backoff: alarm.Constant(time.Minute), MaxElapsed: 5 * time.Minute}, errNo, 6, 5 * time.Minute, "retries used up"},
	} {
		t.Run(c.name, func(t *testing.T) {
			run(t, timers.Options{Retry: c.retry}, nil, func(r *rig) {
				var at []time.Time
				r.fire = func(context.Context, *box, timers.Timer) error {
					at = append(at, r.Now())
					return c.err
				}
				r.at("a", time.Second)
				r.Advance(10 * time.Hour)
				letters := r.letters()
				if len(at) != c.runs || len(letters) != 1 || letters[0].Reason != c.reason || letters[0].Attempts != c.runs {
					r.Fatalf("%d runs, letters %+v", len(at), letters)
				}
				if last := at[len(at)-1].Sub(at[0]); last < c.last || last > c.last+c.last/4 {
					r.Errorf("the last attempt came %v after the first, want %v", last, c.last)
				}
			})
		})
	}
}

// letter is the one dead letter of the host.
func (r *rig) letter() object.DeadLetter {
	r.Helper()
	all := r.letters()
	if len(all) != 1 {
		r.Fatalf("%d dead letters: %+v", len(all), all)
	}
	return all[0]
}

// Proves T3, A11: Replay sets a timer again with its payload and all its attempts, Discard
// drops it, and each takes the letter away. The verbs of the host name both.
func TestDeadTimers(t *testing.T) {
	run(t, timers.Options{Retry: alarm.Retry{MaxAttempts: 1}}, nil, func(r *rig) {
		broken := true
		var seen []int
		r.fire = func(ctx context.Context, b *box, t timers.Timer) error {
			n := 0
			if err := t.Payload(&n); err != nil {
				return err
			}
			seen = append(seen, n)
			if broken {
				return errNo
			}
			return count(ctx, b, t.Name)
		}
		at := r.Now().Add(time.Second)
		r.must(func(ctx context.Context, b *box) error { return b.timers.At(ctx, "a", at, 42) })
		r.Advance(time.Minute)
		d := r.letter()
		for _, verb := range []func(ctx context.Context, h *object.Host) error{
			func(ctx context.Context, h *object.Host) error { return h.ReplayDeadLetter(ctx, d.ID, d.Seq) },
			func(ctx context.Context, h *object.Host) error { return h.DiscardDeadLetter(ctx, d.ID, d.Seq) },
		} {
			if err := r.WithHost(verb); !errors.Is(err, object.ErrUseVerb) || !strings.Contains(err.Error(), "Timers.Replay or Timers.Discard") {
				r.Errorf("a verb of the host: %v", err)
			}
		}
		replay := func(ctx context.Context, b *box) error { return b.timers.Replay(ctx, d.Seq) }

		r.at("a", time.Hour)
		if err := r.turn(replay); !errors.Is(err, timers.ErrExists) || !strings.Contains(err.Error(), `"a"`) {
			r.Errorf("Replay beside a timer of that name: %v", err)
		}
		r.must(func(ctx context.Context, b *box) error { _, err := b.timers.Cancel(ctx, "a"); return err })

		r.must(replay) // it fails again, and is another letter
		r.Advance(time.Minute)
		if e := r.letter(); e.Seq == d.Seq || !e.Scheduled.Equal(at) || e.Attempts != 1 {
			r.Errorf("the letter after a replay: %+v", e)
		}
		if err := r.turn(replay); !errors.Is(err, object.ErrNoDeadLetter) {
			r.Errorf("a second replay of a letter: %v", err)
		}
		d = r.letter()
		broken = false
		r.must(replay)
		r.Advance(time.Minute)
		r.want("a", 1)
		if len(r.letters()) != 0 || fmt.Sprint(seen) != "[42 42 42]" {
			r.Errorf("letters %+v, payloads %v", r.letters(), seen)
		}

		broken = true
		r.at("b", 0)
		r.Advance(time.Minute)
		d = r.letter()
		discard := func(ctx context.Context, b *box) error { return b.timers.Discard(ctx, d.Seq) }
		r.must(discard)
		if err := r.turn(discard); !errors.Is(err, object.ErrNoDeadLetter) || len(r.letters()) != 0 {
			r.Errorf("a second Discard: %v, letters %+v", err, r.letters())
		}
		r.Advance(time.Hour)
		r.want("b", 0)
	})
}

// Proves T3: a schedule goes on after a dead occurrence, and the letter brings that
// occurrence back before the next one.
func TestScheduleAfterADeadOccurrence(t *testing.T) {
	run(t, timers.Options{Retry: alarm.Retry{MaxAttempts: 2, Backoff: alarm.Constant(time.Minute)}}, nil, func(r *rig) {
		begin := r.Now()
		broken := true
		var at []time.Duration
		r.fire = func(ctx context.Context, b *box, t timers.Timer) error {
			at = append(at, t.Scheduled.Sub(begin))
			if broken {
				return errNo
			}
			return nil
		}
		r.must(func(ctx context.Context, b *box) error { return b.timers.On(ctx, "a", jobs.Rate(time.Hour), nil) })
		r.Advance(61*time.Minute + time.Second)
		d := r.letter()
		if want := fmt.Sprint([]time.Duration{time.Hour, time.Hour}); fmt.Sprint(at) != want || !d.Scheduled.Equal(begin.Add(time.Hour)) {
			r.Errorf("tried at %v, letter %+v", at, d)
		}
		broken = false
		at = nil
		replay := func(ctx context.Context, b *box) error { return b.timers.Replay(ctx, d.Seq) }
		r.must(replay)
		r.Advance(3 * time.Hour)
		if want := fmt.Sprint([]time.Duration{time.Hour, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour}); fmt.Sprint(at) != want {
			r.Errorf("after the replay it ran for %v, want %s", at, want)
		}

		// A replay while an occurrence is tried again would lose that one.
		broken = true
		r.Advance(58 * time.Minute) // 5:00 fails at 4:59:01+...
		r.Advance(62 * time.Second)
		r.must(func(ctx context.Context, b *box) error {
			if x, _, err := b.timers.Get(ctx, "a"); err != nil || x.Failures != 1 {
				return fmt.Errorf("%+v, %w", x, err)
			}
			return nil
		})
		r.Advance(2 * time.Minute)
		d = r.letter()
		r.Advance(58 * time.Minute) // 6:00 has failed once
		if err := r.turn(replay); !errors.Is(err, timers.ErrExists) {
			r.Errorf("Replay beside a retry: %v", err)
		}

		// The letter of a schedule that was cancelled comes back once.
		broken = false
		r.must(func(ctx context.Context, b *box) error { _, err := b.timers.Cancel(ctx, "a"); return err })
		at = nil
		r.must(replay)
		r.Advance(24 * time.Hour)
		if want := fmt.Sprint([]time.Duration{5 * time.Hour}); fmt.Sprint(at) != want {
			r.Errorf("after the cancel and a replay it ran for %v, want %s", at, want)
		}
	})
}

// Proves T2: handlers that write much, each within the limit of a turn, run over as many
// turns as they need, at no attempt.
func TestTimersThatWriteMuch(t *testing.T) {
	for _, sizes := range [][]int{{1 << 10}, {9 << 10}, {20 << 10}, {40 << 10}, {60 << 10}, {1 << 10, 63 << 10}} {
		harness.Run(t, func(s *harness.Sim) {
			r := newRig(s, timers.Options{Retry: alarm.Retry{MaxAttempts: 1}}, nil)
			r.fire = func(ctx context.Context, b *box, t timers.Timer) error {
				size := sizes[int(t.Name[len(t.Name)-1]-'0')%len(sizes)]
				if err := b.st.Storage().PutBytes(ctx, "large/"+t.Name, make([]byte, size)); err != nil {
					return err
				}
				return count(ctx, b, t.Name)
			}
			r.must(func(ctx context.Context, b *box) error {
				for i := range 20 {
					if err := b.timers.At(ctx, fmt.Sprint(i), b.st.Now().Add(time.Minute), nil); err != nil {
						return err
					}
				}
				return nil
			})
			r.Advance(time.Hour)
			for i := range 20 {
				r.want(fmt.Sprint(i), 1)
			}
			r.Always("no letter", len(r.letters()) == 0, sizes, r.letters())
		}, harness.EarliestTimer, harness.HostOptions(func(o *object.Options) { o.MaxBatchBytes, o.MaxValueBytes = 64<<10, 64<<10 }))
	}
}

// Proves T2: a handler that has its instance reset leaves no trace of its failure. It holds
// up others for a while, and then is a dead letter.
func TestTimerThatResetsItsInstance(t *testing.T) {
	run(t, timers.Options{}, nil, func(r *rig) {
		runs := 0
		r.fire = func(ctx context.Context, b *box, t timers.Timer) error {
			if t.Name == "2" {
				runs++
				return b.st.BlockConcurrencyWhile(ctx, func(context.Context) error { return errNo })
			}
			return count(ctx, b, t.Name)
		}
		for i := range 4 {
			r.at(fmt.Sprint(i), time.Minute)
		}
		r.Advance(10 * time.Minute)
		for i := range 4 {
			if i != 2 {
				r.want(fmt.Sprint(i), 1)
			}
		}
		if d := r.letter(); runs != 5 || d.Crashes != 4 || d.Reason != "crashes" || d.Attempts != 0 {
			r.Errorf("it ran %d times, letter %+v", runs, d)
		}
	})
}

// Proves T2: calls that set and cancel timers meanwhile do not keep a timer that leaves no trace
// from being found.
func TestTimersSetBesideOneWithoutATrace(t *testing.T) {
	run(t, timers.Options{}, nil, func(r *rig) {
		runs := 0
		r.fire = func(ctx context.Context, b *box, t timers.Timer) error {
			if t.Name == "a" {
				runs++
				return b.st.BlockConcurrencyWhile(ctx, func(context.Context) error { return errNo })
			}
			return count(ctx, b, t.Name)
		}
		r.at("a", time.Minute)
		r.at("b", time.Minute)
		r.Advance(time.Minute)
		for range 600 {
			r.at("idle", time.Second)
			r.Advance(time.Second / 2)
		}
		r.want("b", 1)
		if d := r.letter(); runs != 5 || d.Crashes != 4 || d.Reason != "crashes" {
			r.Errorf("it ran %d times, letter %+v", runs, d)
		}
	})
}

// Proves T1 and T4: if the turn of an alarm fails after its timers have fired, they fire again
// at the retry of the alarm, and not at the time of the next timer.
func TestAlarmThatFailsAfterItsTimers(t *testing.T) {
	run(t, timers.Options{}, nil, func(r *rig) {
		fails := true
		r.after = func() error {
			if fails {
				fails = false
				return errNo
			}
			return nil
		}
		r.at("a", time.Minute)
		r.at("b", 1000*time.Hour)
		r.Advance(2 * time.Minute)
		r.want("a", 1)
		if n := r.World().Count("fire/a"); n != 2 {
			r.Errorf("the timer has fired %d times, want 2", n)
		}
		r.Advance(1000 * time.Hour)
		r.want("b", 1)
	})
}

// Proves T2: a timer that kills its process each time is found and stopped, and the others
// of its object fire.
func TestTimerThatKillsItsProcess(t *testing.T) {
	run(t, timers.Options{}, nil, func(r *rig) {
		runs, begun := 0, false
		r.fire = func(ctx context.Context, b *box, t timers.Timer) error {
			if t.Name == "2" {
				runs++
				begun = true
				return b.st.Driver().Seams().Sleep(ctx, time.Hour) // the process dies here
			}
			return count(ctx, b, t.Name)
		}
		for i := range 4 {
			r.at(fmt.Sprint(i), time.Minute)
		}
		r.Advance(time.Minute)
		for range 10 {
			for i := 0; i < 60 && !begun; i++ {
				r.Advance(time.Second)
			}
			if !begun {
				break
			}
			begun = false
			r.Crash(harness.Kill)
			r.Restart()
		}
		r.Advance(time.Hour)
		for i := range 4 {
			if i != 2 {
				r.want(fmt.Sprint(i), 1)
			}
		}
		if d := r.letter(); runs != 5 || d.Crashes != 4 || d.Reason != "crashes" || d.Attempts != 0 {
			r.Errorf("it ran %d times, letter %+v", runs, d)
		}
	})
}

// The data of a letter is JSON, whatever the name of its timer is.
func TestLetterDataIsJSON(t *testing.T) {
	run(t, timers.Options{Retry: alarm.Retry{MaxAttempts: 1}}, nil, func(r *rig) {
		r.fire = func(context.Context, *box, timers.Timer) error { return errNo }
		name := "quote \" and \x00"
		r.at(name, 0)
		r.Advance(time.Minute)
		var data struct{ Timer string }
		if err := json.Unmarshal(r.letter().Data, &data); err != nil || data.Timer != name {
			r.Errorf("%s: %v", r.letter().Data, err)
		}
	})
}

// Proves T4: after the last timer has become a dead letter the object has no alarm.
func TestAlarmAfterTheLastTimerDied(t *testing.T) {
	run(t, timers.Options{Retry: alarm.Retry{MaxAttempts: 1}}, nil, func(r *rig) {
		r.fire = func(context.Context, *box, timers.Timer) error { return errNo }
		r.at("a", time.Minute)
		r.Advance(time.Minute + time.Second)
		if at := r.alarmAt(); !at.IsZero() || len(r.letters()) != 1 || r.alarms != 1 {
			r.Errorf("the alarm is at %v, after %d alarms, letters %+v", at, r.alarms, r.letters())
		}
		r.Advance(time.Hour)
		if r.alarms != 1 {
			r.Errorf("%d alarms for one timer", r.alarms)
		}
	})
}

// Proves T2: a handler that ends its goroutine is an attempt that failed, as a panic is. A
// simulation reports such a handler, so this host has a clock of package synctest.
func TestHandlerThatEndsItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs, others atomic.Int32 // of the handler's goroutines
		class := object.Define("box", func(ctx context.Context, st *object.State) (*alarmed[*object.State], error) {
			a := &alarmed[*object.State]{v: st}
			var err error
			a.timers, err = timers.Attach(ctx, st, thrice, func(_ context.Context, t timers.Timer) error {
				if t.Name == "b" {
					runs.Add(1)
					runtime.Goexit()
				}
				others.Add(1)
				return nil
			})
			return a, err
		}, timers.ClassOptions(object.ClassOptions{}))
		set := object.Handle(class, "set", func(a *alarmed[*object.State], ctx context.Context, name string) (int, error) {
			return 0, a.timers.At(ctx, name, a.v.Now().Add(time.Minute), nil)
		})
		h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, class)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", "c"} {
			if _, err := set.Call(t.Context(), h, "x", name); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute + time.Second)
		if runs.Load() != 1 || others.Load() != 2 {
			t.Errorf("a second after their time: %d runs of the one that ends its goroutine, %d of the others", runs.Load(), others.Load())
		}
		time.Sleep(time.Hour)
		letters, err := lettersOf(h.DeadLetters(t.Context(), object.DeadLettersOptions{Limit: object.MaxPage}))
		if err != nil || runs.Load() != 3 || others.Load() != 2 || len(letters) != 1 || letters[0].Attempts != 3 || letters[0].Stack == "" {
			t.Errorf("%d runs, %d others, letters %+v, %v", runs.Load(), others.Load(), letters, err)
		}
		if err := h.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
