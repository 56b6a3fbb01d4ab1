package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves K1. A call at the very end of OpenFor, before the alarm of that time has fired, is a
// probe: its failure opens the breaker again.
func TestCallBeforeTheAlarm(t *testing.T) {
	run(t, breaker.Config{Failures: 1, OpenFor: time.Minute}, func(s *harness.Sim, b *breaker.Breaker) {
		var until time.Time
		s.Go("client", func() {
			s.Sleep(time.Minute) // before the breaker sets its alarm to the same instant
			ran, err := try(s, b, errDown)
			s.Always("the probe runs", ran && errors.Is(err, errDown) && s.Now().Equal(until), err)
		})
		s.RunUntilIdle()
		fail(s, b, 1)
		until = stateOf(s, b).Until
		s.Advance(time.Minute)
		st := stateOf(s, b)
		s.Always("open again", st.State == breaker.Open && st.Since.Equal(until), st)
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			events, err := h.Events(ctx, b.ID("eu"), 0, 10)
			s.Always("the events", len(events) == 3 && events[1].Kind == breaker.HalfOpen, events)
			return err
		}))
	})
}

// Proves K1. By default a failure is remembered for Window although no call comes meanwhile.
func TestFailuresOutliveAnIdleObject(t *testing.T) {
	run(t, breaker.Config{Failures: 2, Window: time.Hour}, func(s *harness.Sim, b *breaker.Breaker) {
		fail(s, b, 1)
		s.Advance(50 * time.Minute)
		fail(s, b, 1)
		is(s, b, breaker.Open)
	})
}

// The text of a failure, and the reason of a Reset, are kept up to 1 KiB, and not a byte more.
func TestCauseIsCut(t *testing.T) {
	for _, c := range []struct{ bytes, kept int }{{1023, 1023}, {1024, 1024}, {1025, 1024}} {
		run(t, breaker.Config{Failures: 2}, func(s *harness.Sim, b *breaker.Breaker) {
			down := errors.New(strings.Repeat("x", c.bytes))
			for _, state := range []string{breaker.Closed, breaker.Open} {
				_, _ = try(s, b, down)
				st := stateOf(s, b)
				s.Always("the cause", st.State == state && len(st.Cause) == c.kept, c, st.State, len(st.Cause))
			}
			s.OK(b.Reset(s.Context(), s, "eu", down.Error()))
			s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
				events, err := h.Events(ctx, b.ID("eu"), 0, 10)
				s.Always("the reason", strings.Count(string(events[len(events)-1].Data), "x") == c.kept, c, events)
				return err
			}))
		})
	}
}

// A Reset that does not reach the object says so.
func TestResetFails(t *testing.T) {
	run(t, breaker.Config{Failures: 1}, func(s *harness.Sim, b *breaker.Breaker) {
		fail(s, b, 1)
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		err := b.Reset(ctx, s, "eu", "the bank called")
		s.Always("the error", errors.Is(err, context.Canceled), err)
		is(s, b, breaker.Open)
	})
}

// Each change is a line of the log: at WARN if the breaker opens.
func TestChangesAreLogged(t *testing.T) {
	var log loglines.Recorder
	b := breaker.New(breaker.Config{Name: "bank", Failures: 1, OpenFor: time.Minute})
	harness.Run(t, func(s *harness.Sim) {
		s.Host(b)
		fail(s, b, 1)
		s.Advance(time.Minute)
		goes(s, b)
	}, harness.HostOptions(func(o *object.Options) { o.Logger = log.Logger() }))
	var got []string
	for _, l := range log.From(slog.LevelInfo) {
		if l.Text == "breaker changed" {
			got = append(got, fmt.Sprintf("%s %s %s/%s: %s", l.Level, l.Attrs["state"], l.Attrs["class"], l.Attrs["object"], l.Attrs["cause"]))
		}
	}
	want := []string{"WARN open bank/eu: the bank is down", "INFO halfOpen bank/eu: the bank is down", "INFO closed bank/eu: "}
	if !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
}

// Proves K2. A change that does not fit into the store has not happened: neither in the rows, nor
// in memory, nor as an alarm. A closed breaker then stays closed, and one whose time is over
// stays as it was and lets no call through until a change fits.
func TestChangeThatDoesNotFit(t *testing.T) {
	limit := 20 // bytes of a value: fewer than a row needs
	b := breaker.New(breaker.Config{Name: "bank", Failures: 1, OpenFor: time.Minute})
	harness.Run(t, func(s *harness.Sim) {
		s.Host(b)
		fail(s, b, 1)
		is(s, b, breaker.Closed)
		s.Always("nothing is stored", !rowsOf(s, b).Exists, rowsOf(s, b))

		limit = 0 // the default
		s.Restart()
		fail(s, b, 1)
		is(s, b, breaker.Open)
		limit = 20
		s.Restart()
		s.Advance(time.Minute)
		in := rowsOf(s, b)
		s.Always("the alarm is tried again", in.Alarm != nil, in)
		err := b.Reset(s.Context(), s, "eu", "the bank called")
		s.Always("the error of a Reset", errors.Is(err, object.ErrValueTooLarge), err)
		in = rowsOf(s, b)
		s.Always("the alarm is still there", in.Alarm != nil, in)
		ran, err := try(s, b, nil)
		s.Always("the call does not run", !ran && errors.Is(err, object.ErrValueTooLarge), err)
		limit = 0
		s.Restart()
		goes(s, b)
		is(s, b, breaker.Closed)

		fail(s, b, 1)
		s.Advance(time.Minute)
		limit = 20
		s.Restart()
		fail(s, b, 1) // the probe
		is(s, b, breaker.HalfOpen)
		in = rowsOf(s, b)
		s.Always("no alarm of a change that has not happened", in.Alarm == nil, in)
	}, harness.HostOptions(func(o *object.Options) { o.MaxValueBytes = limit }))
}

func rowsOf(s *harness.Sim, b *breaker.Breaker) (in object.Inspection) {
	s.OK(s.WithHost(func(ctx context.Context, h *object.Host) (err error) {
		in, err = h.Inspect(ctx, b.ID("eu"))
		return err
	}))
	return in
}

// Proves K1. The probes may end in any order, and as many must succeed as the Config says, not one fewer.
func TestProbesEndInAnyOrder(t *testing.T) {
	run(t, breaker.Config{Failures: 1, OpenFor: time.Minute, Probes: 3}, func(s *harness.Sim, b *breaker.Breaker) {
		fail(s, b, 1)
		s.Advance(time.Minute)
		for _, takes := range []time.Duration{3 * time.Second, 2 * time.Second, time.Second} {
			s.Go("client", func() {
				s.OK(b.Do(s.Context(), s, "eu", func(context.Context) error {
					s.Sleep(takes)
					return nil
				}))
			})
		}
		s.RunUntilIdle()
		for _, want := range []string{breaker.HalfOpen, breaker.HalfOpen, breaker.Closed} {
			s.Advance(time.Second)
			is(s, b, want)
		}
	})
	// The last of three fails, and the first hangs: the breaker opens by the end of the last.
	run(t, breaker.Config{Failures: 1, OpenFor: time.Minute, Probes: 2}, func(s *harness.Sim, b *breaker.Breaker) {
		fail(s, b, 1)
		s.Advance(time.Minute)
		s.Go("client", func() {
			s.OK(b.Do(s.Context(), s, "eu", func(context.Context) error {
				s.Sleep(time.Hour)
				return nil
			}))
		})
		s.RunUntilIdle()
		fail(s, b, 1)
		st := stateOf(s, b)
		s.Always("open", st.State == breaker.Open && st.Cause == errDown.Error(), st)
	})
}

// The methods of a breaker cannot be called by name, because calls by name must not open or close it.
func TestMethodsAreInternal(t *testing.T) {
	run(t, breaker.Config{Failures: 1}, func(s *harness.Sim, b *breaker.Breaker) {
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			for _, method := range []string{"enter", "report", "status", "reset"} {
				_, err := h.CallBytes(ctx, "bank", "eu", method, []byte(`""`))
				s.Always("refused", errors.Is(err, object.ErrInternalMethod), method, err)
			}
			return nil
		}))
	})
}

// A row that cannot be decoded keeps the breaker from being used, and the error names it.
func TestDamagedRow(t *testing.T) {
	type box struct{ st *object.State }
	class := object.Define("bank", func(_ context.Context, st *object.State) (*box, error) { return &box{st}, nil })
	put := object.Handle(class, "put", func(x *box, ctx context.Context, text string) (int, error) {
		return 0, x.st.Storage().PutBytes(ctx, "breaker", []byte(text))
	})
	b := breaker.New(breaker.Config{Name: "bank"})
	harness.Run(t, func(s *harness.Sim) {
		s.Host(class)
		_, err := put.Call(s.Context(), s, "eu", "no JSON")
		s.OK(err)
		s.Restart(harness.WithCode(b))
		ran, err := try(s, b, nil)
		s.Always("the call does not run", !ran && errors.Is(err, object.ErrConstructor) && strings.Contains(err.Error(), "bank/eu"), err)
	})
}

// Proves K2. The probes of a half open breaker end while the store has no room for a change: it stays half open in
// memory, in the rows and in the alarm, and a Reset says so. So it is with room for no byte, and with room for the row
// and none for the event.
func TestEndsThatDoNotFit(t *testing.T) {
	for _, batch := range []int{3, 40} {
		limit := 0
		b := breaker.New(breaker.Config{Name: "bank", Failures: 1, OpenFor: time.Minute})
		harness.Run(t, func(s *harness.Sim) {
			s.Host(b)
			fail(s, b, 1)
			s.Advance(time.Minute)
			before := rowsOf(s, b)
			limit = batch
			s.Restart()
			goes(s, b) // the probe
			err := b.Reset(s.Context(), s, "eu", "the bank called")
			s.Always("the error of a Reset", errors.Is(err, object.ErrBatchTooLarge), batch, err)
			is(s, b, breaker.HalfOpen)
			after := rowsOf(s, b)
			s.Always("the rows", len(after.Keys) == 1 && len(before.Keys) == 1 && after.Alarm == nil, batch, after)
			limit = 0
			s.Restart()
			goes(s, b)
			is(s, b, breaker.Closed)
		}, harness.HostOptions(func(o *object.Options) { o.MaxBatchBytes = limit }))
	}
}

// Proves K2. A probe hangs while the store has no room for a change: neither its end nor a call after OpenFor opens
// the breaker, and the call does not run.
func TestHungProbeWithoutRoom(t *testing.T) {
	for _, calls := range []int{0, 1} {
		limit := 0
		b := breaker.New(breaker.Config{Name: "bank", Failures: 1, OpenFor: time.Minute})
		harness.Run(t, func(s *harness.Sim) {
			s.Host(b)
			fail(s, b, 1)
			s.Advance(time.Minute)
			limit = 20 // bytes of a value: fewer than a row needs
			s.Restart()
			s.OK(b.Do(s.Context(), s, "eu", func(context.Context) error {
				s.Sleep(time.Minute)
				for range calls {
					ran, err := try(s, b, nil)
					s.Always("the call does not run", !ran && errors.Is(err, object.ErrValueTooLarge), err)
				}
				return nil
			}))
			is(s, b, breaker.HalfOpen)
			in := rowsOf(s, b)
			s.Always("no alarm of a change that has not happened", in.Alarm == nil, calls, in)
		}, harness.HostOptions(func(o *object.Options) { o.MaxValueBytes = limit }))
	}
}

// Proves K1. A call that ends because its time is over counts as a failure, because the dependency was too slow.
func TestCallOutOfTimeCounts(t *testing.T) {
	run(t, breaker.Config{Failures: 1}, func(s *harness.Sim, b *breaker.Breaker) {
		ctx := &late{Context: context.WithoutCancel(s.Context())} // so its cause is its own
		err := b.Do(ctx, s, "eu", func(context.Context) error {
			ctx.over = true
			return ctx.Err()
		})
		s.Always("the error goes on", errors.Is(err, context.DeadlineExceeded), err)
		is(s, b, breaker.Open)
	})
}

// late is a context that is out of time when a test says so.
type late struct {
	context.Context
	over bool
}

func (l *late) Err() error {
	if l.over {
		return context.DeadlineExceeded
	}
	return l.Context.Err()
}

// FORMAT.md has the key and the values of the row that the code writes, and the message of a Reset.
func TestLayout(t *testing.T) {
	format, err := os.ReadFile("../../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	b := breaker.New(breaker.Config{Name: "bank"})
	type desk struct{ st *object.State }
	class := object.Define("desk", func(_ context.Context, st *object.State) (*desk, error) { return &desk{st}, nil })
	reset := object.Handle(class, "reset", func(d *desk, ctx context.Context, reason string) (int, error) {
		return 0, b.Reset(ctx, d.st.Outbox(object.After(time.Hour)), "eu", reason)
	})
	harness.Run(t, func(s *harness.Sim) {
		s.Host(b, class)
		look := func() (in object.Inspection) {
			s.OK(s.WithHost(func(ctx context.Context, h *object.Host) (err error) {
				if in, err = h.Inspect(ctx, b.ID("eu")); err != nil {
					return err
				}
				page, err := h.Keys(ctx, b.ID("eu"), object.KeysOptions{Values: true})
				in.Keys = page.Keys
				return err
			}))
			return in
		}
		s.Always("the time of the rows", s.Now().Equal(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), s.Now())
		fail(s, b, 5)
		for _, state := range []string{"open", "half open"} {
			in := look()
			s.Always("one row", len(in.Keys) == 1 && in.Keys[0].Key == "breaker", in)
			row := fmt.Sprintf("| %s | `%s` |", state, in.Keys[0].Value)
			s.Always("FORMAT.md has the row", strings.Contains(string(format), row), row)
			s.Advance(30 * time.Second)
		}
		_, err := reset.Call(s.Context(), s, "d", "the bank is back")
		s.OK(err)
		in := look()
		s.Always("one message", len(in.Messages) == 1, in)
		text := fmt.Sprintf("the method `%s` and the reason as its argument, for example `%q`", in.Messages[0].Method, "the bank is back")
		s.Always("FORMAT.md has the message", strings.Contains(string(format), text), text)
		s.Advance(2 * time.Hour)
		s.Always("a closed breaker has no row", !look().Exists, look())
	})
}
