package object

import "context"

// TakePermit takes a permit for a work, if ClassOptions.Works lets one more start. The
// next Start of the turn then has the permit, and gives it back when its function
// has returned. A turn that starts no work, or fails, gives it back at its end. It is
// for authors of job types.
//
// If it reports false, the turn begins no such work and sets the object's alarm for a
// time that is not later than now: the host calls the alarm's handler when a permit is
// free, in the order in which the alarms came due, and those refused with first before
// the others. Then TakePermit reports true. Meanwhile the object need not be in memory.
// The alarm of an object with an open execution is handled without a permit.
//
// A work that is held back after crashes in a row keeps its permit; see StartSuspect.
// Without a limit TakePermit reports true.
func (s *State) TakePermit(ctx context.Context, first bool) (bool, error) {
	t, err := s.turn(ctx)
	if err != nil {
		return false, err
	}
	p := s.act.hosted.permits
	if p == nil || t.permit {
		return true, nil
	}
	if !p.take(s.act.id.Name, first) {
		return false, nil
	}
	t.permit = true
	t.permits++
	return true, nil
}

// AwaitsPermit reports whether the object was refused a permit, or its alarm is due,
// and it waits for a permit that another work has to give back.
func (s *State) AwaitsPermit() bool {
	p := s.act.hosted.permits
	return p != nil && p.awaited(s.act.id.Name)
}

// giveUnused gives back the permits that the turn has taken for works that it has not
// started. It is called once, at the end of the turn.
func (t *turn) giveUnused() {
	if t.permits > 0 {
		t.act.hosted.permits.unused(t.permits)
	}
}

// closePermits has nothing more wait in line.
func (h *Host) closePermits() {
	for _, name := range h.names {
		if p := h.hosted[name].permits; p != nil {
			p.close()
		}
	}
}
