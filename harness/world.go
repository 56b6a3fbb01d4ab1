package harness

import (
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// World is what lies outside of the process: effects that were done stay done
// whatever becomes of the process that did them.
type World struct {
	s      *Sim
	log    []Effect
	counts map[string]int
}

// Effect is something that was done to the outside.
type Effect struct {
	Key     string
	Time    time.Time
	Start   int  // of the process that did it, counted from 1; 0: the scenario or a client
	Crashes int  // crashes before its process did it
	Late    bool // its process had died when it came to pass: a zombie
}

// World is the outside of s.
func (s *Sim) World() *World { return s.world }

// Do does something to the outside, in a handler, in work, or in a client: it
// notes key and runs fn, which may be nil, between the points effect/before and
// effect/after. A dead process does nothing.
func (w *World) Do(key string, fn func()) {
	p := w.s.m.Current()
	if p != nil {
		p.At(seam.Point{Name: "effect/before", Object: key})
	}
	e := Effect{Key: key, Time: w.s.m.Now(), Crashes: w.s.crashes}
	if p != nil {
		e.Start = p.Number()
		w.s.haunts(p, atLateDone, key, func() {
			e.Time, e.Late = w.s.m.Now(), true
			w.note(e, fn)
		})
	}
	w.note(e, fn)
	if p != nil {
		p.At(seam.Point{Name: "effect/after", Object: key})
	}
}

func (w *World) note(e Effect, fn func()) {
	w.log = append(w.log, e)
	if w.counts == nil {
		w.counts = make(map[string]int)
	}
	w.counts[e.Key]++
	if fn != nil {
		fn()
	}
}

// Count is how many times key was done.
func (w *World) Count(key string) int { return w.counts[key] }

// Log is all that was done, in order.
func (w *World) Log() []Effect { return w.log }
