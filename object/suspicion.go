package object

import "context"

// Suspicion is what a host knows about an execution that crashes have cut off. Job
// types ask for it; see State.StartSuspect.
type Suspicion struct {
	// Charges counts the crashes in a row that came while it ran and no other
	// suspect did.
	Charges int
	// Tried says that it ran when the process before died, although it had been
	// held back at first.
	Tried bool
	// Cleared is the newest opening of the store whose crash counts against no
	// execution, and neither do those before it.
	Cleared uint64

	listed bool // by an earlier process
	found  *inquiry
}

// Held reports whether the execution must be started by State.StartSuspect, because
// it may be what kills the process. cuts crashes have cut it off in a row since
// Cleared, the last one that of the opening epoch.
func (s Suspicion) Held(cuts int, epoch uint64) bool {
	return s.listed || s.found.suspected(cuts, epoch)
}

// Suspicion returns what is known about the execution of this object with the
// given key. It may be called at any time.
func (s *State) Suspicion(key string) Suspicion {
	q := &s.act.hosted.host.suspects
	x := subject{id: s.act.id, key: key}
	known := Suspicion{Charges: q.charged(x), Tried: q.tried[x], Cleared: q.found.cleared, found: &q.found}
	_, known.listed = q.setOf(x, 0, 0)
	return known
}

// StartSuspect is Start for the work of the execution with the given key, if its
// Suspicion says that it is held. fn begins once the suspects before it have been
// cleared: seconds after Open, or minutes if they run long, or up to an hour after
// Open if crashes are charged to it. If the activation ends, or the host shuts down,
// before that, fn never runs.
func (s *State) StartSuspect(ctx context.Context, w *Work, key, name string, fn func(context.Context)) error {
	if err := s.Start(ctx, w, name, fn); err != nil {
		return err
	}
	x := subject{id: s.act.id, key: key}
	set, listed := s.act.hosted.host.suspects.setOf(x, 0, 0)
	if !listed {
		set = freshSet
	}
	w.suspect = &suspect{subject: x, set: set, work: w}
	return nil
}

// holdWorks holds back those of works that are suspects, and returns the others.
func (s *suspects) holdWorks(works []runner) []runner {
	if !s.some.Load() {
		return works
	}
	var free []runner
	for _, r := range works {
		w, ok := r.(*Work)
		if !ok || w.suspect == nil || w.ended() != nil || !s.holdWork(w) {
			free = append(free, r)
		}
	}
	return free
}

// holdWork holds w back until its trial, its cancellation, or the end of its
// activation, and reports whether it did.
func (s *suspects) holdWork(w *Work) bool {
	x := w.suspect
	if !s.hold(x) {
		return false
	}
	w.life.onEnd(&x.ending, func(error) {
		if s.remove(x) {
			w.over()
		}
	})
	if w.ended() != nil { // it was cancelled meanwhile
		x.release()
	}
	return true
}

// release starts the work of x if it is held.
func (x *suspect) release() {
	h := x.work.life.act.hosted.host
	if h.suspects.remove(x) {
		x.ending.forget()
		h.crew.add(x.work)
	}
}
