package debounce

import "time"

// Mode is what the waiting time is counted from.
type Mode uint8

const (
	// Trailing waits until no event has come for Config.Quiet.
	Trailing Mode = iota
	// Window waits Config.Window from the first event on.
	Window
)

// Reason is why a generation was closed.
type Reason string

// The reasons of a flush. The one that was true first is stored when the
// generation closes, and every attempt to flush it tells the same (D4).
const (
	ReasonQuiet     Reason = "quiet"     // no event for Config.Quiet
	ReasonMaxWait   Reason = "maxWait"   // Config.Window or Config.MaxWait since the first event
	ReasonMaxEvents Reason = "maxEvents" // Config.MaxEvents were there
	ReasonManual    Reason = "manual"    // FlushNow
)

// limits are the settings that say when a generation is due. A zero field is no
// limit.
type limits struct {
	quiet     time.Duration // after the last event
	maxWait   time.Duration // after the first event
	maxEvents int
}

// due returns when a generation is to be closed, and why: the earliest of its
// causes. It is a function of what is stored and never of the present, so a long
// stop changes neither. The zero time says that nothing is to be flushed.
func (l limits) due(g generation) (at time.Time, why Reason) {
	if g.count == 0 {
		return time.Time{}, ""
	}
	consider := func(t time.Time, r Reason) {
		if at.IsZero() || t.Before(at) {
			at, why = t, r
		}
	}
	if !g.manual.IsZero() {
		consider(g.manual, ReasonManual)
	}
	if full := l.fullAt(g); !full.IsZero() {
		consider(full, ReasonMaxEvents)
	}
	if l.quiet > 0 {
		consider(g.last.Add(l.quiet), ReasonQuiet)
	}
	if l.maxWait > 0 {
		consider(g.first.Add(l.maxWait), ReasonMaxWait)
	}
	return at, why
}

// fullAt is when the generation had its greatest number of events; zero if it
// has not yet. A limit that was lowered since makes it full with its last event.
func (l limits) fullAt(g generation) time.Time {
	switch {
	case l.maxEvents == 0 || g.count < l.maxEvents:
		return time.Time{}
	case g.full.IsZero():
		return g.last
	}
	return g.full
}

// with returns g after one more event.
func (l limits) with(g generation, now time.Time) generation {
	if g.count == 0 {
		g.first = now
	}
	g.count++
	g.last = now
	if g.count == l.maxEvents {
		g.full = now
	}
	return g
}
