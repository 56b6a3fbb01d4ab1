package object_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// logOf is a log that a test reads.
type logOf struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logOf) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logOf) lines(of string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, of) {
			lines = append(lines, line)
		}
	}
	return lines
}

const toldHeld = "holds its object for long"

// holdFor is an action that holds its object. Its name is looked for in a stack.
func holdFor(d time.Duration) action {
	return func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().Seams().Sleep(ctx, d) }
}

// Case OB2: a turn that holds its object beyond the limit is logged once, with method,
// age and stack, and counted. A turn that ends before the limit is neither logged nor
// counted. Proves O8.
func TestTurnHeldTooLong(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log logOf
		f := newFixture(t, object.ClassOptions{HoldLimit: time.Minute})
		f.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
		f.open()
		defer f.end()
		f.must("short", holdFor(time.Minute-time.Nanosecond))
		pass(time.Hour)
		if lines := log.lines(toldHeld); len(lines) > 0 {
			t.Errorf("O8: a turn that ended before the limit is told of: %s", lines)
		}
		f.must("long", holdFor(10*time.Minute))
		f.must("long", nothing)
		lines := log.lines(toldHeld)
		if len(lines) != 1 {
			t.Fatalf("O8: a turn that held its object for ten minutes is told of %d times, want once: %s", len(lines), lines)
		}
		for _, want := range []string{"class=thing", "object=long", "method=do", "age=1m0s", "holdFor", "level=WARN"} {
			if !strings.Contains(lines[0], want) {
				t.Errorf("O8: the log does not say %s: %s", want, lines[0])
			}
		}
		wantValues(t, f, map[string]float64{"holdfast_turns_stuck_total": 1})
	})
}

// A turn that begins while the watch looks after others is reported within a quarter of
// the limit after its own. A turn that is lent out holds no object. Proves O8.
func TestHeldTurnsAreToldApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log logOf
		f := newFixture(t)
		f.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
		f.open()
		defer f.end()
		var wg sync.WaitGroup
		wg.Go(func() { f.must("lent", released(holdFor(time.Hour))) })
		pass(time.Second)
		for range 3 { // one after the other, none for too long
			wg.Go(func() { f.must("busy", holdFor(20*time.Second)) })
		}
		f.handleAlarm(func(th *thing, ctx context.Context, _ object.AlarmInfo) error {
			_, err := holdFor(time.Minute)(th, ctx)
			return err
		})
		f.must("alarmed", setAlarm(0))
		pass(38 * time.Second)
		if lines := log.lines(toldHeld); len(lines) != 1 || !strings.Contains(lines[0], "object=alarmed method=alarm") {
			t.Errorf("O8: %d turns are told of, want that of the alarm: %s", len(lines), lines)
		}
		wg.Wait()
	})
}

// Case OB2: a call that is refused behind a turn that is stuck says so. Proves O8, O11.
func TestOverloadNamesTheTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, object.ClassOptions{MailboxLimit: 2, MailboxAge: 40 * time.Second}).open()
		defer f.end()
		gate := make(chan struct{})
		var wg sync.WaitGroup
		wait := func() { f.must("a", func(*thing, context.Context) (any, error) { <-gate; return nil, nil }) }
		wg.Go(wait)
		pass(0)
		wg.Go(wait)
		pass(42 * time.Second)
		_, err := f.call("a", nothing)
		want := "thing/a: overloaded: a call has waited for 42s behind a turn of thing.do that has held the object for 42s"
		if !errors.Is(err, object.ErrOverloaded) || err.Error() != want {
			t.Errorf("O11: got  %v\nwant %s", err, want)
		}
		close(gate)
		wg.Wait()
	})
}

// countingClock counts the timers that a host arms.
type countingClock struct {
	seam.Clock
	timers atomic.Int64
}

func (c *countingClock) AfterFunc(d time.Duration, f func()) seam.Timer {
	c.timers.Add(1)
	return c.Clock.AfterFunc(d, f)
}

// The watch rests while nothing runs, and wakes with the next turn. Proves O8, O10.
func TestHoldWatchRests(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log logOf
		clock := &countingClock{Clock: seam.Seams{}.WithDefaults().Clock}
		f := newFixture(t)
		f.options.Logger, f.options.Seams.Clock = slog.New(slog.NewTextHandler(&log, nil)), clock
		f.open()
		defer f.end()
		f.must("a", nothing)
		pass(time.Hour)
		before := clock.timers.Load()
		pass(24 * time.Hour)
		if n := clock.timers.Load() - before; n != 0 {
			t.Errorf("O10: %d timers were armed in a day without a turn", n)
		}
		f.must("a", holdFor(time.Hour))
		if lines := log.lines(toldHeld); len(lines) != 1 {
			t.Errorf("O8: a turn after a rest is told of %d times, want once", len(lines))
		}
	})
}

// A class without a limit has no watch.
func TestHoldLimitOfNone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log logOf
		clock := &countingClock{Clock: seam.Seams{}.WithDefaults().Clock}
		f := newFixture(t, object.ClassOptions{HoldLimit: -1, IdleAfter: 100 * time.Hour})
		f.options.Seams.Clock = clock
		f.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
		f.open()
		defer f.end()
		f.must("a", holdFor(time.Hour))
		before := clock.timers.Load()
		f.must("a", nothing)
		if n := clock.timers.Load() - before; n != 0 {
			t.Errorf("O8: a turn of a class without a limit arms %d timers", n)
		}
		if lines := log.lines(toldHeld); len(lines) > 0 {
			t.Errorf("O8: a turn of a class without a limit is told of: %s", lines)
		}
	})
}
