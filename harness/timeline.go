package harness

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/harness/internal/machine"
	"github.com/holdfast-dev/holdfast/seam"
)

// timeline is what a run passed, in order. The points before the scenario has
// settled are where a plan may crash.
type timeline struct {
	hits   []hit
	notes  []note
	counts map[seam.Point]int
	end    int // hits of the scenario itself; later ones belong to its settling
}

// hit is a point as a run passed it.
type hit struct {
	place
	at       time.Time
	unsynced int // commits that a crash here could lose
	start    int // of the process, counted from 1
	booting  bool
}

// note is an event between two hits that is no point.
type note struct {
	before int // the hit it comes before
	at     time.Time
	text   string
}

func (l *timeline) init() {
	l.counts = make(map[seam.Point]int)
	l.end = -1
}

func (l *timeline) pass(at seam.Point, s *Sim) hit {
	n := l.counts[at] + 1
	l.counts[at] = n
	h := hit{place{at, n}, s.m.Now(), s.disk.unsynced(), s.starts, s.up != nil}
	l.hits = append(l.hits, h)
	return h
}

func (l *timeline) note(at time.Time, text string) {
	l.notes = append(l.notes, note{len(l.hits), at, text})
}

// close ends the part of the run in which a plan may crash.
func (l *timeline) close() {
	l.end = len(l.hits)
	l.notes = append(l.notes, note{l.end, time.Time{}, "the scenario ends, and settles without crashes"})
}

// candidates are the points at which a plan may crash.
func (l *timeline) candidates() []hit {
	if l.end < 0 {
		return l.hits
	}
	return l.hits[:l.end]
}

// text is the last n points and the notes among them.
func (l *timeline) text(n int) string {
	var b strings.Builder
	from := max(0, len(l.hits)-n)
	if from > 0 {
		fmt.Fprintf(&b, "  ... %d points before\n", from)
	}
	notes := l.notes
	for i := 0; i <= len(l.hits); i++ {
		for len(notes) > 0 && notes[0].before == i {
			fmt.Fprintf(&b, "  %10s  ---- %s\n", since(notes[0].at), notes[0].text)
			notes = notes[1:]
		}
		if i >= from && i < len(l.hits) {
			fmt.Fprintf(&b, "  %10s  %s\n", since(l.hits[i].at), l.hits[i].place)
		}
	}
	return b.String()
}

// since is a time of the simulation, counted from its beginning.
func since(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Sub(machine.Epoch).String()
}
