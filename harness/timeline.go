package harness

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/harness/internal/machine"
	"github.com/holdfast-dev/holdfast/seam"
)

// timeline is the list of points that a run passed, in order. The points before the
// scenario has settled are where a schedule may crash.
type timeline struct {
	hits    []hit
	notes   []note
	chances []chance // places where a fault could have struck
	counts  map[seam.Point]int
	end     int // hits of the scenario itself; later ones belong to its settling
}

// hit is a point as a run passed it.
type hit struct {
	place
	at       time.Duration // since the simulation began
	start    int           // of the process that passed it, counted from 1
	unsynced int           // commits that a crash here could lose
	booting  bool          // the process was not ready yet
}

// note is an event between two hits that is no point.
type note struct {
	before int           // the hit it comes before
	at     time.Duration // negative: none
	kind   noteKind
	text   string
}

type noteKind int

const (
	noteEvent noteKind = iota // of the simulation: a fault, a shutdown
	noteLog                   // of the test: Logf
	noteCrash
	noteFailure
)

// reset empties the timeline for the next run and keeps its memory.
func (l *timeline) reset() {
	if l.counts == nil {
		l.counts = make(map[seam.Point]int)
	}
	clear(l.counts)
	clear(l.hits)
	clear(l.chances)
	l.hits, l.chances, l.notes, l.end = l.hits[:0], l.chances[:0], nil, -1
}

func (l *timeline) pass(at seam.Point, s *Sim) hit {
	n := l.counts[at] + 1
	l.counts[at] = n
	h := hit{place{at, n}, s.elapsed(), s.starts, s.disk.unsynced(), s.up != nil}
	l.hits = append(l.hits, h)
	return h
}

// note adds an event of the simulation, such as a fault.
func (l *timeline) note(at time.Duration, text string) { l.add(at, noteEvent, text) }

func (l *timeline) log(at time.Duration, text string) { l.add(at, noteLog, text) }

func (l *timeline) fail(at time.Duration, text string) { l.add(at, noteFailure, text) }

func (l *timeline) add(at time.Duration, kind noteKind, text string) {
	l.notes = append(l.notes, note{len(l.hits), at, kind, text})
}

// crash adds the death of a process, at the point that was passed last or by
// hand, and how many of the unsynced commits survive it.
func (l *timeline) crash(s *Sim, kept, unsynced int) {
	left := "nothing unsynced"
	if unsynced > 0 {
		left = fmt.Sprintf("%d of %d unsynced survive", kept, unsynced)
	}
	where := "by hand"
	if s.m.InTask() && len(l.hits) > 0 {
		h := l.hits[len(l.hits)-1]
		where = "at " + h.place.String()
	}
	l.add(s.elapsed(), noteCrash, fmt.Sprintf("CRASH %d: start %d dies %s; %s", s.crashes, s.starts, where, left))
}

// close ends the part of the run in which a schedule may crash.
func (l *timeline) close() {
	l.end = len(l.hits)
	l.add(-1, noteEvent, "the scenario ends; no more crashes, and time to settle")
}

// candidates are the points at which a schedule may crash.
func (l *timeline) candidates() []hit {
	if l.end < 0 {
		return l.hits
	}
	return l.hits[:l.end]
}

// elapsed is the virtual time since the simulation began.
func (s *Sim) elapsed() time.Duration { return s.m.Now().Sub(machine.Epoch) }
