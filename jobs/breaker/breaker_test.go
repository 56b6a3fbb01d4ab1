package breaker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/leaks"
	_ "github.com/holdfast-dev/holdfast/internal/testing/seeds" // the tests draw the same inputs in each run
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/breaker"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var errDown = errors.New("the bank is down")

// try makes a call through the breaker that ends with err, and reports whether it ran.
func try(s *harness.Sim, b *breaker.Breaker, err error) (ran bool, got error) {
	got = b.Do(s.Context(), s, "eu", func(context.Context) error {
		ran = true
		return err
	})
	return ran, got
}

// fail makes n calls that fail.
func fail(s *harness.Sim, b *breaker.Breaker, n int) {
	for range n {
		ran, err := try(s, b, errDown)
		s.Always("the call goes through", ran && errors.Is(err, errDown), err)
	}
}

// goes and refused say whether a call that succeeds goes through.
func goes(s *harness.Sim, b *breaker.Breaker) {
	ran, err := try(s, b, nil)
	s.Always("the call goes through", ran && err == nil, err)
}

func refused(s *harness.Sim, b *breaker.Breaker) {
	ran, err := try(s, b, nil)
	s.Always("the call is refused", !ran && errors.Is(err, breaker.ErrOpen), err)
}

func stateOf(s *harness.Sim, b *breaker.Breaker) breaker.Status {
	st, err := b.Status(s.Context(), s, "eu")
	s.OK(err)
	return st
}

// is checks the state.
func is(s *harness.Sim, b *breaker.Breaker, state string) {
	s.Always("the state", stateOf(s, b).State == state, stateOf(s, b), " is not ", state)
}

// run runs a scenario with a breaker and no crashes.
func run(t *testing.T, c breaker.Config, scenario func(s *harness.Sim, b *breaker.Breaker)) {
	t.Helper()
	harness.Run(t, func(s *harness.Sim) {
		c.Name = "bank"
		b := breaker.New(c)
		s.Host(b)
		scenario(s, b)
	})
}

// Proves K1: the count, on both sides, and the defaults.
func TestOpensAtFailures(t *testing.T) {
	for _, c := range []struct {
		config breaker.Config
		n      int
	}{{breaker.Config{}, 5}, {breaker.Config{Failures: 1}, 1}, {breaker.Config{Failures: 1000}, 1000}} {
		run(t, c.config, func(s *harness.Sim, b *breaker.Breaker) {
			fail(s, b, c.n-1)
			goes(s, b)
			st := stateOf(s, b)
			s.Always("counted", st.State == breaker.Closed && st.Failures == c.n-1, st)
			fail(s, b, 1)
			refused(s, b)
			st = stateOf(s, b)
			s.Always("open", st.State == breaker.Open && st.Failures == c.n && st.Cause == errDown.Error() &&
				st.Since.Equal(s.Now()) && st.Until.Equal(s.Now().Add(30*time.Second)), st)
		})
	}
}

// Proves K1: the edges of the window.
func TestFailuresCountForTheWindow(t *testing.T) {
	for _, c := range []struct {
		window, late time.Duration
		want         string
	}{{time.Minute, -1, breaker.Open}, {time.Minute, 0, breaker.Closed}, {0, -1, breaker.Open}, {0, 0, breaker.Closed}} { // a minute by default
		run(t, breaker.Config{Failures: 3, Window: c.window}, func(s *harness.Sim, b *breaker.Breaker) {
			fail(s, b, 1)
			s.Advance(time.Second)
			fail(s, b, 1)
			s.Advance(time.Minute - time.Second + c.late)
			fail(s, b, 1)
			is(s, b, c.want)
			if c.want == breaker.Closed {
				s.Always("two count", stateOf(s, b).Failures == 2, stateOf(s, b))
				fail(s, b, 1)
				is(s, b, breaker.Open)
			}
		})
	}
}

// Proves K1: open for OpenFor, on both sides, and what follows a probe.
func TestOpenEnds(t *testing.T) {
	c := breaker.Config{Failures: 1, OpenFor: time.Minute}
	run(t, c, func(s *harness.Sim, b *breaker.Breaker) {
		fail(s, b, 1)
		s.Advance(time.Minute - 1)
		refused(s, b)
		is(s, b, breaker.Open)
		s.Advance(1)
		is(s, b, breaker.HalfOpen)
		fail(s, b, 1) // the probe
		is(s, b, breaker.Open)
		s.Advance(time.Minute - 1)
		refused(s, b)
		s.Advance(1)
		goes(s, b)
		is(s, b, breaker.Closed)
		goes(s, b)
	})
}

// Proves K1: the time ends without a call, as the event of the change tells.
func TestHalfOpenWithoutACall(t *testing.T) {
	run(t, breaker.Config{Failures: 1, OpenFor: time.Minute}, func(s *harness.Sim, b *breaker.Breaker) {
		fail(s, b, 1)
		for _, c := range []struct {
			wait time.Duration
			want int
		}{{time.Minute - 1, 1}, {1, 2}} {
			s.Advance(c.wait)
			s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
				events, err := h.Events(ctx, b.ID("eu"), 0, 10)
				s.Always("the events", len(events) == c.want && (c.want == 1 || events[1].Kind == breaker.HalfOpen), events)
				return err
			}))
		}
	})
}

// Proves K1: as many probes at a time as the Config says, and as many that must succeed.
func TestProbes(t *testing.T) {
	run(t, breaker.Config{Failures: 1, OpenFor: time.Minute, Probes: 3}, func(s *harness.Sim, b *breaker.Breaker) {
		fail(s, b, 1)
		s.Advance(time.Minute)
		goes(s, b)
		probes := 0
		for range 5 { // two of them are let through beside the one that succeeded
			s.Go("client", func() {
				err := b.Do(s.Context(), s, "eu", func(context.Context) error {
					probes++
					s.Sleep(time.Second)
					return nil
				})
				s.Always("through or refused", err == nil || errors.Is(err, breaker.ErrOpen), err)
			})
		}
		s.RunUntilIdle()
		s.Always("probes", probes == 2, probes)
		is(s, b, breaker.HalfOpen)
		s.Advance(time.Second)
		is(s, b, breaker.Closed)
	})
}

// Proves K1: a probe that does not end within OpenFor is a failure, and its late end
// counts for nothing.
func TestProbeThatHangs(t *testing.T) {
	run(t, breaker.Config{Failures: 1, OpenFor: time.Minute}, func(s *harness.Sim, b *breaker.Breaker) {
		fail(s, b, 1)
		s.Advance(time.Minute)
		s.Go("client", func() {
			s.OK(b.Do(s.Context(), s, "eu", func(context.Context) error {
				s.Sleep(3 * time.Minute)
				return nil
			}))
		})
		s.Advance(time.Minute - 1)
		refused(s, b)
		is(s, b, breaker.HalfOpen)
		s.Advance(1)
		refused(s, b)
		st := stateOf(s, b)
		s.Always("open again", st.State == breaker.Open && st.Cause == "a probe did not end within 1m0s", st)
		s.Advance(2 * time.Minute) // the late end comes while the breaker is half open again
		is(s, b, breaker.HalfOpen)
		goes(s, b)
		is(s, b, breaker.Closed)
	})
}

// Proves K1: a probe that succeeds after OpenFor is a failure, also if no call came meanwhile.
func TestProbeThatIsLate(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		want  string
	}{{time.Minute - 1, breaker.Closed}, {time.Minute, breaker.Open}} {
		run(t, breaker.Config{Failures: 1, OpenFor: time.Minute}, func(s *harness.Sim, b *breaker.Breaker) {
			fail(s, b, 1)
			s.Advance(time.Minute)
			s.OK(b.Do(s.Context(), s, "eu", func(context.Context) error {
				s.Sleep(c.takes)
				return nil
			}))
			is(s, b, c.want)
		})
	}
}

// Proves K2: outcomes of calls that began before the present state count for nothing.
func TestLateOutcomes(t *testing.T) {
	run(t, breaker.Config{Failures: 2, OpenFor: time.Minute}, func(s *harness.Sim, b *breaker.Breaker) {
		for _, late := range []time.Duration{90 * time.Second, 2 * time.Minute, 2 * time.Minute} {
			s.Go("client", func() {
				_ = b.Do(s.Context(), s, "eu", func(context.Context) error {
					s.Sleep(late)
					return errDown
				})
			})
		}
		s.RunUntilIdle()
		fail(s, b, 2)
		s.Advance(90 * time.Second) // a failure comes while it is half open
		is(s, b, breaker.HalfOpen)
		goes(s, b)
		s.Advance(30 * time.Second) // and two when it is closed again
		st := stateOf(s, b)
		s.Always("no failure counts", st.State == breaker.Closed && st.Failures == 0, st)
	})
}

// Proves K1: which errors are failures.
func TestWhichErrorsCount(t *testing.T) {
	for _, c := range []struct {
		err    error
		counts bool
	}{
		{errDown, true}, {context.DeadlineExceeded, true}, {nil, false}, {jobs.Permanent(errDown), false},
	} {
		run(t, breaker.Config{Failures: 1}, func(s *harness.Sim, b *breaker.Breaker) {
			ran, err := try(s, b, c.err)
			s.Always("the error goes on", ran && errors.Is(err, c.err), err)
			s.Always("counts", (stateOf(s, b).State == breaker.Open) == c.counts, c.err, stateOf(s, b))
		})
	}
	own := breaker.Config{Failures: 1, Failure: func(err error) bool { return strings.Contains(err.Error(), "503") }}
	run(t, own, func(s *harness.Sim, b *breaker.Breaker) {
		fail(s, b, 1)
		is(s, b, breaker.Closed)
		_, _ = try(s, b, errors.New("status 503"))
		is(s, b, breaker.Open)
	})
	run(t, breaker.Config{Failures: 1}, func(s *harness.Sim, b *breaker.Breaker) {
		func() {
			defer func() { s.Always("the panic goes on", recover() == "boom") }()
			_ = b.Do(s.Context(), s, "eu", func(context.Context) error { panic("boom") })
		}()
		is(s, b, breaker.Open)
	})
}

// Proves K1: a call that its caller gave up is neither a failure nor a success, also where its
// error is the cause of its context, as that of net/http is.
func TestCallsThatWereGivenUp(t *testing.T) {
	cause := errors.New("the run was cancelled")
	for _, c := range []struct {
		err    error
		ended  bool // the context has ended with the cause
		counts bool
	}{{context.Canceled, false, false}, {cause, true, false}, {cause, false, true}, {errDown, true, true}} {
		run(t, breaker.Config{Failures: 1, OpenFor: time.Minute}, func(s *harness.Sim, b *breaker.Breaker) {
			call := func() {
				ctx, cancel := context.WithCancelCause(s.Context())
				defer cancel(nil)
				err := b.Do(ctx, s, "eu", func(context.Context) error {
					if c.ended {
						cancel(cause)
					}
					return c.err
				})
				s.Always("the error goes on", errors.Is(err, c.err), err)
			}
			call()
			s.Always("closed", (stateOf(s, b).State == breaker.Open) == c.counts, c, stateOf(s, b))
			if !c.counts {
				fail(s, b, 1)
			}
			s.Advance(time.Minute)
			call() // the probe
			want := breaker.HalfOpen
			if c.counts {
				want = breaker.Open
			}
			is(s, b, want)
			s.Advance(time.Minute)
			goes(s, b) // its place is free
			is(s, b, breaker.Closed)
		})
	}
}

// Each dependency has a breaker of its own, and Reset closes one by hand.
func TestReset(t *testing.T) {
	run(t, breaker.Config{Failures: 1}, func(s *harness.Sim, b *breaker.Breaker) {
		fail(s, b, 1)
		s.OK(b.Do(s.Context(), s, "us", func(context.Context) error { return nil }))
		s.OK(b.Reset(s.Context(), s, "eu", "the bank called"))
		goes(s, b)
		is(s, b, breaker.Closed)
		s.OK(s.WithHost(func(ctx context.Context, h *object.Host) error {
			all, err := h.Objects(ctx, "bank", object.ObjectsOptions{Limit: 10})
			s.Always("a closed breaker has no rows", err == nil && len(all) == 0, all, err)
			events, err := h.Events(ctx, b.ID("eu"), 0, 10)
			s.Always("the events", err == nil && len(events) == 2 && events[0].Kind == breaker.Open && events[1].Kind == breaker.Closed, events, err)
			return nil
		}))
	})
	run(t, breaker.Config{Failures: 2}, func(s *harness.Sim, b *breaker.Breaker) {
		fail(s, b, 1)
		s.OK(b.Reset(s.Context(), s, "eu", ""))
		fail(s, b, 1)
		is(s, b, breaker.Closed)
	})
}

// Proves K2: a closed breaker writes nothing.
func TestClosedWritesNothing(t *testing.T) {
	run(t, breaker.Config{}, func(s *harness.Sim, b *breaker.Breaker) {
		before := commits(s)
		fail(s, b, 4)
		for range 20 {
			goes(s, b)
		}
		s.Advance(time.Hour) // the object leaves memory
		s.Always("no commit", commits(s) == before, before, commits(s))
		fail(s, b, 5)
		s.Always("one commit", commits(s) == before+1, before, commits(s))
	})
}

// commits is how many commits the host has made.
func commits(s *harness.Sim) (n storage.Ticket) {
	s.OK(s.WithHost(func(_ context.Context, h *object.Host) error {
		n = h.Store().Applied()
		return nil
	}))
	return n
}

// The error of a refused call says until when, and why.
func TestErrorOfARefusedCall(t *testing.T) {
	run(t, breaker.Config{Failures: 1}, func(s *harness.Sim, b *breaker.Breaker) {
		fail(s, b, 1)
		_, err := try(s, b, nil)
		want := "breaker: bank/eu: the breaker is open until " + s.Now().Add(30*time.Second).UTC().Format(time.RFC3339) +
			", because the last failure was: the bank is down"
		s.Always("the text", err.Error() == want, err, " is not ", want)
	})
}

func TestMistakesInConfig(t *testing.T) {
	for _, c := range []struct {
		config breaker.Config
		want   string
	}{
		{breaker.Config{Failures: -1}, "Failures is -1: it must be from 1 to 1000"},
		{breaker.Config{Failures: 1001}, "Failures is 1001: it must be from 1 to 1000"},
		{breaker.Config{Probes: 1001}, "Probes is 1001: it must be from 1 to 1000"},
		{breaker.Config{Window: -1}, "Window is -1ns: it must be positive"},
		{breaker.Config{OpenFor: -1}, "OpenFor is -1ns: it must be positive"},
	} {
		c.config.Name = "bank"
		_, err := object.Open(object.Options{Dir: t.TempDir()}, breaker.New(c.config))
		if !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v is not %q", err, c.want)
		}
	}
	if err := (breaker.Config{Name: "bank", Failures: 1000, Probes: 1000}).Validate(); err != nil {
		t.Error(err)
	}
}

// Proves K1 and K2. A breaker goes as its model does, for random outcomes and waits. A crash
// makes it forget failures and probes, so then the calls go on without the model.
func TestRandomOutcomes(t *testing.T) {
	harness.Check(t, func(s *harness.Sim, rt *rapid.T) {
		c := breaker.Config{
			Name: "bank", Failures: rapid.IntRange(1, 4).Draw(rt, "failures"), Probes: rapid.IntRange(1, 3).Draw(rt, "probes"),
			Window: 10 * time.Second, OpenFor: 5 * time.Second,
		}
		b := breaker.New(c)
		s.Host(b)
		m := model{Config: c, state: breaker.Closed}
		for range rapid.IntRange(1, 30).Draw(rt, "calls") {
			s.Advance(time.Duration(rapid.IntRange(0, 6).Draw(rt, "wait")) * time.Second)
			var err error
			if rapid.Bool().Draw(rt, "fails") {
				err = errDown
			}
			want := m.call(s.Now(), err != nil)
			ran, _ := try(s, b, err)
			st := stateSeen(s, b)
			s.Always("it goes through as in the model", s.Crashes() > 0 || ran == want && st.State == m.state, ran, want, st, m.state)
		}
	}, checks...)
}

// model is a breaker in a few lines.
type model struct {
	breaker.Config
	state    string
	until    time.Time
	failures []time.Time
	good     int
}

// call makes a call that fails or not, and reports whether it goes through.
func (m *model) call(now time.Time, fails bool) bool {
	if m.state == breaker.Open && now.Before(m.until) {
		return false
	}
	if m.state == breaker.Open {
		m.state, m.good = breaker.HalfOpen, 0
	}
	if fails {
		m.failures = append(m.failures, now)
	} else {
		m.good++
	}
	count := 0
	for _, f := range m.failures {
		if now.Sub(f) < m.Window {
			count++
		}
	}
	switch {
	case fails && (m.state == breaker.HalfOpen || count >= m.Failures):
		m.state, m.until = breaker.Open, now.Add(m.OpenFor)
	case m.state == breaker.HalfOpen && m.good == m.Probes:
		m.state, m.failures = breaker.Closed, nil
	}
	return true
}
