package object

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
)

const (
	// lapseRetry is when an object is looked at again that could not be looked at
	// after the removal of its marks.
	lapseRetry = time.Minute
	// lapseWait bounds the wait for the turn of an object that is busy, because the
	// removals of other objects come after it.
	lapseWait = time.Second
)

// endLapses looks at the objects whose marks the expiry has removed, and ends those
// that have nothing left (O1). It reports whether it has looked at all.
func (x *expiry) endLapses(lapses []storage.Lapse) bool {
	h, all := x.host, true
	var seen storage.Batch
	for _, l := range lapses {
		over, err := x.endLapse(&seen, l)
		if err != nil {
			h.options.Logger.Debug("object whose marks have expired is looked at again later",
				"class", l.Object.ID.Class, "object", l.Object.ID.Name, "error", err)
		}
		if over {
			seen.EndLapse(l)
		}
		all = all && err == nil
	}
	if !seen.Empty() {
		if _, err := h.store.Commit(&seen); err != nil {
			_ = h.storageError(storage.ID{}, err)
			return false
		}
	}
	return all
}

// endLapse looks at one object. It reports whether the lapse's entry is still to be
// removed: the turn that ends an object removes it in its own batch.
func (x *expiry) endLapse(seen *storage.Batch, l storage.Lapse) (over bool, err error) {
	h := x.host
	o, err := h.store.Find(l.Object.ID)
	if err != nil || o.Number != l.Object.Number { // that life has ended
		return err == nil, err
	}
	c := h.hosted[o.ID.Class]
	var live *activation
	if c != nil {
		// This look comes before that at the rows, because a turn that begins after it
		// finds no marks, and ends the object itself.
		live, _ = c.live.Load(o.ID.Name)
	}
	switch rest, err := h.hasRest(o); {
	case err != nil || rest && live == nil:
		return err == nil, err
	case c == nil: // no turn of it can run
		seen.DropEmpty(o, nil)
		return true, nil
	}
	return x.lapseTurn(c, l, live == nil)
}

// hasRest reports whether anything is stored that lets the object exist (O1).
func (h *Host) hasRest(o storage.Object) (bool, error) {
	if rows, err := h.store.HasRows(nil, o); rows || err != nil {
		return rows, err
	}
	if _, ok, err := h.store.Alarm(o); ok || err != nil {
		return ok, err
	}
	_, ok, err := h.store.Open(o)
	return ok, err
}

// lapseTurn looks at the object in a turn, which runs no user code, and takes it out
// of memory again if it was not there.
func (x *expiry) lapseTurn(c *hosted, l storage.Lapse, evict bool) (over bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	defer x.host.seams.Clock.AfterFunc(lapseWait, cancel).Stop()
	var ends bool
	err = c.deliver(ctx, &Request{id: l.Object.ID, exempt: true, op: bare(func(t *turn) (err error) {
		ends, err = t.lapse(l)
		return err
	})})
	if a, ok := c.live.Load(l.Object.ID.Name); ok && evict {
		a.evict()
	}
	return err == nil && !ends, err
}

// lapse ends the object if it has nothing left, and reports whether it does.
func (t *turn) lapse(l storage.Lapse) (ends bool, err error) {
	if t.object.Number != l.Object.Number {
		return false, nil
	}
	row, err := t.act.alarm()
	if err != nil {
		return false, err
	}
	t.writes.removes = true
	exists, err := t.exists(row)
	if exists || err != nil {
		t.writes.removes = false
		return false, err
	}
	t.write().EndLapse(l)
	return true, nil
}
