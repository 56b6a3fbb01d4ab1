package breaker

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object"
)

// States of a breaker, which are also the kinds of the events of its changes.
const (
	Closed   = "closed"   // calls go through
	Open     = "open"     // calls are refused
	HalfOpen = "halfOpen" // a few calls go through as probes
)

// Status is the state of a breaker, and the payload of its events.
type Status struct {
	State    string    `json:"state"`              // Closed, Open or HalfOpen
	Since    time.Time `json:"since,omitzero"`     // when the state began; zero: it was never left
	Until    time.Time `json:"until,omitzero"`     // of Open: when probes are let through
	Failures int       `json:"failures,omitempty"` // of Closed: how many count at present; else how many opened it
	Cause    string    `json:"cause,omitempty"`    // the last failure, cut to 1 KiB, or the reason of a Reset
}

// stateKey is the key of the row: the Status. A closed breaker has none.
const stateKey = "breaker"

// maxCauseBytes is how much of the text of a failure is stored.
const maxCauseBytes = 1 << 10

// circuit is the instance of a breaker.
type circuit struct {
	st     *object.State
	c      *Config
	stored Status

	term      uint64      // of this state in this instance: outcomes of calls from another count for nothing
	failures  []time.Time // of a closed breaker, oldest first, at most Failures
	last      string      // the text of the last of them
	probes    []probe     // under way, oldest first
	succeeded int         // probes that did
}

// probe is a call that a half open breaker has let through.
type probe struct {
	number uint64
	began  time.Time
}

// pass is the answer to a call that wants to go through.
type pass struct {
	Ticket  ticket
	Refused bool
	Until   time.Time     // of a refused one: when to try again
	Wait    time.Duration // until then
	Cause   string
}

// ticket names a call that went through.
type ticket struct{ Term, Number uint64 }

// outcome is the end of a call that went through.
type outcome struct {
	Ticket ticket
	Failed bool
	Void   bool // it is neither a failure nor a success
	Error  string
}

func load(ctx context.Context, st *object.State, c *Config) (*circuit, error) {
	b := &circuit{st: st, c: c, stored: Status{State: Closed}, term: st.Driver().NextSequence()}
	_, err := st.Storage().GetInto(ctx, stateKey, &b.stored)
	return b, err
}

// enter decides whether a call goes through.
func (b *circuit) enter(ctx context.Context, _ none) (pass, error) {
	now := b.st.Now()
	if b.stored.State == HalfOpen && len(b.probes) > 0 && now.Sub(b.probes[0].began) >= b.c.OpenFor {
		if err := b.open(ctx, now, b.hung()); err != nil {
			return pass{}, err
		}
	}
	if b.stored.State == Open && !now.Before(b.stored.Until) {
		if err := b.halfOpen(ctx, now); err != nil {
			return pass{}, err
		}
	}
	switch b.stored.State {
	case Open:
		return b.refuse(b.stored.Until, now), nil
	case HalfOpen:
		if b.succeeded+len(b.probes) >= b.c.Probes {
			return b.refuse(now.Add(b.c.OpenFor), now), nil
		}
		p := probe{b.st.Driver().NextSequence(), now}
		b.probes = append(b.probes, p)
		return pass{Ticket: ticket{b.term, p.number}}, nil
	}
	return pass{Ticket: ticket{Term: b.term}}, nil
}

func (b *circuit) refuse(until, now time.Time) pass {
	return pass{Refused: true, Until: until, Wait: until.Sub(now), Cause: b.stored.Cause}
}

// report counts the end of a call.
func (b *circuit) report(ctx context.Context, o outcome) (none, error) {
	if o.Ticket.Term != b.term {
		return none{}, nil // it began before the present state
	}
	now := b.st.Now()
	if b.stored.State == HalfOpen {
		return none{}, b.probed(ctx, o, now)
	}
	if !o.Failed {
		return none{}, nil
	}
	kept := append(b.counting(now), now)
	if len(kept) >= b.c.Failures {
		return none{}, b.open(ctx, now, o.Error)
	}
	b.failures, b.last = kept, alarm.Cut(o.Error, maxCauseBytes)
	return none{}, nil
}

// probed counts the end of a probe.
func (b *circuit) probed(ctx context.Context, o outcome, now time.Time) error {
	i := 0
	for i < len(b.probes) && b.probes[i].number != o.Ticket.Number {
		i++
	}
	switch {
	case i == len(b.probes):
		return nil
	case now.Sub(b.probes[i].began) >= b.c.OpenFor:
		return b.open(ctx, now, b.hung())
	case o.Failed:
		return b.open(ctx, now, o.Error)
	case !o.Void && b.succeeded+1 >= b.c.Probes:
		return b.close(ctx, now, "")
	}
	b.probes = append(b.probes[:i:i], b.probes[i+1:]...)
	if !o.Void {
		b.succeeded++
	}
	return nil
}

// hung is the cause if a probe has not ended in time.
func (b *circuit) hung() string { return "a probe did not end within " + b.c.OpenFor.String() }

// counting returns the failures that count now, in a slice of its own.
func (b *circuit) counting(now time.Time) []time.Time {
	from := 0
	for from < len(b.failures) && now.Sub(b.failures[from]) >= b.c.Window {
		from++
	}
	return append([]time.Time(nil), b.failures[from:]...)
}

// open refuses calls for OpenFor. The alarm ends that time.
func (b *circuit) open(ctx context.Context, now time.Time, cause string) error {
	failures := b.c.Failures
	if b.stored.State == HalfOpen {
		failures = b.stored.Failures
	}
	s := Status{State: Open, Since: now, Until: now.Add(b.c.OpenFor), Failures: failures, Cause: alarm.Cut(cause, maxCauseBytes)}
	if err := b.st.SetAlarm(ctx, s.Until); err != nil {
		return err
	}
	return b.change(ctx, s)
}

// halfOpen lets probes through.
func (b *circuit) halfOpen(ctx context.Context, now time.Time) error {
	if err := b.st.DeleteAlarm(ctx); err != nil {
		return err
	}
	return b.change(ctx, halfOpened(b.stored, now))
}

// halfOpened is the open state s after its time.
func halfOpened(s Status, at time.Time) Status {
	s.State, s.Since, s.Until = HalfOpen, at, time.Time{}
	return s
}

// close lets all calls through. Nothing is left stored.
func (b *circuit) close(ctx context.Context, now time.Time, reason string) error {
	if err := b.st.DeleteAlarm(ctx); err != nil {
		return err
	}
	return b.change(ctx, Status{State: Closed, Since: now, Cause: alarm.Cut(reason, maxCauseBytes)})
}

// change stores s, tells of it, and begins the state in memory.
func (b *circuit) change(ctx context.Context, s Status) error {
	rows := b.st.Storage()
	if s.State == Closed {
		if err := rows.Remove(ctx, stateKey); err != nil {
			return err
		}
	} else if err := rows.Put(ctx, stateKey, s); err != nil {
		return err
	}
	if err := b.st.Emit(ctx, s.State, s); err != nil {
		return err
	}
	level := slog.LevelInfo
	if s.State == Open {
		level = slog.LevelWarn
	}
	b.st.Log().Log(ctx, level, "breaker changed", "state", s.State, "until", s.Until, "cause", s.Cause)
	b.stored, b.term = s, b.st.Driver().NextSequence()
	b.failures, b.last, b.probes, b.succeeded = nil, "", nil, 0
	return nil
}

// Alarm ends the time for which the breaker is open.
func (b *circuit) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	now := b.st.Now()
	if b.stored.State != Open {
		return nil
	}
	if now.Before(b.stored.Until) { // the clock was set back
		return b.st.SetAlarm(ctx, b.stored.Until)
	}
	return b.halfOpen(ctx, now)
}

func (b *circuit) status(context.Context, none) (Status, error) {
	s, now := b.stored, b.st.Now()
	switch {
	case s.State == Closed:
		s.Failures, s.Cause = len(b.counting(now)), b.last
	case s.State == Open && !now.Before(s.Until): // the alarm is late
		s = halfOpened(s, s.Until)
	}
	return s, nil
}

func (b *circuit) reset(ctx context.Context, reason string) (none, error) {
	if b.stored.State == Closed {
		b.failures, b.last = nil, ""
		return none{}, nil
	}
	return none{}, b.close(ctx, b.st.Now(), reason)
}
