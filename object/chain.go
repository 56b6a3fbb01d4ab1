package object

import "context"

// wait is a call for which a turn waits. The zero value is none.
type wait struct {
	turn *turn
	on   awaited
}

// turnBehind returns the turn of this host from whose context a call is made, and the
// turn's activation; nil if there is none or it has ended.
func (h *Host) turnBehind(ctx context.Context) (*turn, *activation) {
	t := turnOf(ctx)
	if t == nil || t.life == nil || t.life.act.hosted.host != h || t.phase.Load() == phaseOver {
		return nil, nil
	}
	return t, t.life.act
}

// link puts a call that a turn makes among the waits. It returns ErrDeadlock if the
// call would close a circle.
func (h *Host) link(t *turn, a *activation, r *Request) (wait, error) {
	if t == nil {
		return wait{}, nil
	}
	if r.turn == nil {
		r.turn = new(turn)
	}
	r.turn.phase.Store(phaseQueued)
	w := wait{t, awaited{turn: r.turn, id: r.id}}
	if err := h.waits.begin(t, a, w.on); err != nil {
		return wait{}, err
	}
	return w, nil
}

// unlink takes back link.
func (h *Host) unlink(w wait) {
	if w.turn != nil {
		h.waits.end(w.turn, w.on)
	}
}

// callFrom runs a call that a turn which holds its object makes to another. It returns
// as soon as the other's turn has ended; what the answer depends on, this object depends
// on too.
func (h *Host) callFrom(ctx context.Context, t *turn, a *activation, c *hosted, r *Request) error {
	w, err := h.link(t, a, r)
	if err != nil {
		return err
	}
	defer h.unlink(w)
	err = c.deliver(ctx, r)
	if !r.left {
		a.depend(r.ticket)
	}
	return err
}
