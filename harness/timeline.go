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
	at       time.Duration // since the simulation began
	unsynced int           // commits that a crash here could lose
	booting  bool          // the process was not ready yet
}

// note is an event between two hits that is no point.
type note struct {
	before int           // the hit it comes before
	at     time.Duration // negative: none
	text   string
}

// reset empties the timeline for the next run and keeps its memory.
func (l *timeline) reset() {
	if l.counts == nil {
		l.counts = make(map[seam.Point]int)
	}
	clear(l.counts)
	clear(l.hits)
	l.hits, l.notes, l.end = l.hits[:0], nil, -1
}

func (l *timeline) pass(at seam.Point, s *Sim) hit {
	n := l.counts[at] + 1
	l.counts[at] = n
	h := hit{place{at, n}, s.elapsed(), s.disk.unsynced(), s.up != nil}
	l.hits = append(l.hits, h)
	return h
}

func (l *timeline) note(at time.Duration, text string) {
	l.notes = append(l.notes, note{len(l.hits), at, text})
}

// close ends the part of the run in which a plan may crash.
func (l *timeline) close() {
	l.end = len(l.hits)
	l.notes = append(l.notes, note{l.end, -1, "the scenario ends, and settles without crashes"})
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

func since(at time.Duration) string {
	if at < 0 {
		return ""
	}
	return at.String()
}

// elapsed is the virtual time since the simulation began.
func (s *Sim) elapsed() time.Duration { return s.m.Now().Sub(machine.Epoch) }
