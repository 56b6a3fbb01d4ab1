package debounce

import "time"

// Mode says from which event the waiting time of a flush counts.
type Mode uint8

const (
	// Trailing waits until no event has come for Config.Quiet.
	Trailing Mode = iota
	// Window waits for Config.Window after the first event.
	Window
)

// Reason says why a generation was flushed when it was.
type Reason string

// The reasons of a flush. The earliest one is stored when the generation
// closes, so each attempt to flush it has the same reason (D4).
const (
	ReasonQuiet     Reason = "quiet"     // no event for Config.Quiet
	ReasonMaxWait   Reason = "maxWait"   // Config.MaxWait or Config.Window after the first event
	ReasonMaxEvents Reason = "maxEvents" // the generation had Config.MaxEvents
	ReasonManual    Reason = "manual"    // FlushNow was called
)

// limits decide when a generation is due. A zero field sets no limit.
type limits struct {
	quiet     time.Duration // after the last event
	maxWait   time.Duration // after the first event
	maxEvents int
}

// due returns when a generation is due and why: the earliest of its causes. The
// zero time means that it has no events. The result depends only on stored
// values and not on the present, so a stop of the process changes neither.
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

// fullAt is when the generation reached maxEvents; zero if it has fewer. If a
// new definition lowered the limit, it is the time of the last event.
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
