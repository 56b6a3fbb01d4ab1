package harness

import (
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// World is everything outside of the process: an effect stays done, even if the process
// that did it dies.
type World struct {
	s       *Sim
	log     []Effect
	counts  map[string]int
	answers map[keyed]any // of DoOnce: a *T
}

// Effect is something that was done to the outside.
type Effect struct {
	Key     string // of Do; the effect of DoOnce, without its idempotency key
	Time    time.Time
	Start   int  // of the process that did it, counted from 1; 0: the scenario or a client
	Crashes int  // crashes before its process did it
	Late    bool // its process had died when it came to pass: a zombie
}

// World is the outside of s.
func (s *Sim) World() *World { return s.world }

// ErrLostAnswer is the error of World.Do and DoOnce for an effect that was done, with an
// answer that got lost. See Faults.LostAnswer.
var ErrLostAnswer = errors.New("harness: the effect was done, and its answer was lost")

// Do does something to the outside, in a handler, in work, or in a client: it
// notes key and runs fn, which may be nil, between the points effect/before and
// effect/after. A dead process does nothing. Do returns nil, or ErrLostAnswer if a fault
// says so: the effect is done all the same, and the caller cannot know.
func (w *World) Do(key string, fn func()) error {
	return w.request(key, func(e Effect) { w.note(e, fn) })
}

// DoOnce is World.Do for an outside that knows idempotency keys, such as a payment server:
// the first request for an effect under a key is done, and each later one only gets the
// answer of the first. Both pass the points effect/before and effect/after. Keys of
// different effects are independent.
//
// Log, Count and the checkers see the effect, and only when it is done. So
// NoDoubleEffect("charge/") finds a client that asks for the effect "charge/lunch" again
// under a new key. do makes the answer and must not wait; if it is nil, the answer is the
// zero T. The error is nil or ErrLostAnswer, as that of Do. DoOnce ends the run as failed if
// the T of a repeat is not that of the first request.
func DoOnce[T any](w *World, effect, key string, do func() T) (T, error) {
	var answer T
	err := w.request(effect, func(e Effect) {
		id := keyed{effect, key}
		first, repeat := w.answers[id]
		if !repeat {
			w.note(e, func() {
				if do != nil {
					answer = do()
				}
			})
			if w.answers == nil {
				w.answers = make(map[keyed]any)
			}
			w.answers[id] = &answer
			return
		}
		given, ok := first.(*T)
		if !ok {
			w.s.Fatalf("DoOnce: the effect %q was answered by a %T under the key %q, and is now to be answered by a %T: give its first answer a key of its own", effect, first, key, &answer)
		}
		answer = *given
	})
	if err != nil {
		var none T
		return none, err
	}
	return answer, nil
}

// keyed is an effect under an idempotency key.
type keyed struct{ effect, key string }

// request has an effect arrive at the outside, unless its process dies before. The error is
// that of its caller.
func (w *World) request(key string, arrive func(e Effect)) error {
	e := Effect{Key: key, Time: w.s.m.Now(), Crashes: w.s.crashes}
	p := w.s.m.Current()
	if p == nil {
		arrive(e)
		return nil
	}
	p.At(seam.Point{Name: "effect/before", Object: key})
	e.Time, e.Crashes, e.Start = w.s.m.Now(), w.s.crashes, p.Number()
	w.s.haunts(p, atLateDone, key, func() {
		e.Time, e.Late = w.s.m.Now(), true
		arrive(e)
	})
	arrive(e)
	p.At(seam.Point{Name: "effect/after", Object: key})
	if _, lost := w.s.strikes(lostAnswer, atAnswer, key); lost {
		return ErrLostAnswer
	}
	return nil
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
