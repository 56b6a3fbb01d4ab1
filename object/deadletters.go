package object

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// DeadLetter is an alarm that is not tried any more.
type DeadLetter struct {
	ID        storage.ID `json:"-"`
	Seq       uint64     `json:"-"`         // tells it from other dead letters of the object
	Scheduled time.Time  `json:"scheduled"` // when the alarm was set to fire first
	Died      time.Time  `json:"died"`
	Attempts  int        `json:"attempts"`
	Crashes   int        `json:"crashes"` // attempts in a row that the end of a process cut off
	LastError string     `json:"lastError"`
	Reason    string     `json:"reason"` // why there are no further attempts
	// Stack is that of the last attempt if it panicked, at most MaxStackBytes.
	Stack string `json:"stack,omitempty"`
}

func encodeDead(d DeadLetter) []byte {
	b, err := json.Marshal(d)
	if err != nil {
		panic("object: encode a dead letter: " + err.Error()) // strings, times and numbers always encode
	}
	return b
}

func decodeDead(id storage.ID, seq uint64, b []byte) (DeadLetter, error) {
	d := DeadLetter{ID: id, Seq: seq}
	if err := json.Unmarshal(b, &d); err != nil {
		return d, fmt.Errorf("%w: dead letter of %s: %w", storage.ErrCorrupt, id, err)
	}
	return d, nil
}

// DeadLetters lists the alarms that are not tried any more, of all classes.
func (h *Host) DeadLetters(ctx context.Context) ([]DeadLetter, error) {
	if err := h.look(ctx, storage.ID{Class: "-", Name: "-"}); err != nil {
		return nil, err
	}
	defer h.life.leave()
	var out []DeadLetter
	err := h.store.AllDeadLetters(func(id storage.ID, seq uint64, value []byte) error {
		d, err := decodeDead(id, seq, value)
		out = append(out, d)
		return err
	})
	if err == nil {
		err = h.store.WaitSeen()
	}
	return out, h.storageError(storage.ID{}, err)
}

// ErrNoDeadLetter is returned for a dead letter that does not exist.
var ErrNoDeadLetter = errors.New("object: no such dead letter")

// ReplayDeadLetter makes a dead letter the object's alarm again, due now, with
// all its attempts before it. An alarm that the object has meanwhile is replaced.
func (h *Host) ReplayDeadLetter(ctx context.Context, id storage.ID, seq uint64) error {
	return h.takeDeadLetter(ctx, id, seq, func(t *turn, d DeadLetter) {
		t.replaceAlarm(&alarm.Row{
			Due: h.seams.Clock.Now().Round(0), Scheduled: d.Scheduled, Gen: h.store.NextSeq(), LastError: d.LastError,
		})
	})
}

// DiscardDeadLetter removes a dead letter for good. The class need not be registered.
func (h *Host) DiscardDeadLetter(ctx context.Context, id storage.ID, seq uint64) error {
	if h.hosted[id.Class] == nil {
		return h.discardParked(ctx, id, seq)
	}
	return h.takeDeadLetter(ctx, id, seq, func(*turn, DeadLetter) {})
}

// discardParked is DiscardDeadLetter for an object whose class is not registered: no
// turn of it can run.
func (h *Host) discardParked(ctx context.Context, id storage.ID, seq uint64) error {
	if err := h.look(ctx, id); err != nil {
		return err
	}
	defer h.life.leave()
	found := false
	err := h.store.DeadLetters(id, func(s uint64, _ []byte) error {
		found = found || s == seq
		return nil
	})
	switch {
	case err != nil:
		return h.storageError(id, err)
	case !found:
		return named(id, ErrNoDeadLetter)
	}
	o, err := h.store.Find(id)
	if err != nil {
		return h.storageError(id, err)
	}
	var b storage.Batch
	b.For(id)
	b.DropDead(o.Shard, id, seq)
	if _, err := h.store.Commit(&b); err != nil {
		return h.storageError(id, err)
	}
	return h.storageError(id, h.store.WaitSeen())
}

func (h *Host) takeDeadLetter(ctx context.Context, id storage.ID, seq uint64, use func(*turn, DeadLetter)) error {
	c, err := h.runnable(ctx, id)
	if err != nil {
		return err
	}
	return h.bare(ctx, c, id, func(t *turn) error {
		found := false
		err := h.store.DeadLetters(id, func(s uint64, value []byte) error {
			if s != seq {
				return nil
			}
			found = true
			d, err := decodeDead(id, seq, value)
			use(t, d)
			return err
		})
		if err != nil {
			return h.storageError(id, err)
		}
		if !found {
			return named(id, ErrNoDeadLetter)
		}
		t.events().DropDead(t.object.Shard, id, seq)
		return nil
	})
}

// died tells of a new dead letter, its hook when the letter is durable.
func (h *Host) died(c *hosted, d DeadLetter, cause error, at storage.Ticket) {
	c.counts.dead.Add(1)
	h.options.Logger.Error("alarm is a dead letter", telling(cause, "class", d.ID.Class, "object", d.ID.Name,
		"attempt", d.Attempts, "scheduled", d.Scheduled, "reason", d.Reason)...)
	if c.options.OnDeadLetter == nil {
		return
	}
	h.life.begin()
	h.durably.then(at, func(err error) {
		if err != nil {
			h.life.leave()
			return
		}
		h.crew.add(runFunc(func() { h.tellDead(c, d) }))
	})
}

// tellDead runs the hook for a dead letter.
func (h *Host) tellDead(c *hosted, d DeadLetter) {
	defer h.life.leave()
	log := func(err error) {
		h.options.Logger.Error("OnDeadLetter panicked", telling(err, "class", d.ID.Class, "object", d.ID.Name)...)
	}
	if err := guard(&d.ID, func() error { c.options.OnDeadLetter(h.life.ctx, d); return nil }, log); err != nil {
		log(err)
	}
}
