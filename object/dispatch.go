package object

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// alarmIndex is the store's alarm index as the scheduler reads it.
type alarmIndex struct{ host *Host }

// Scan returns up to limit entries of a shard after a position.
func (x alarmIndex) Scan(shard int, after alarm.Position, limit int) ([]alarm.Entry, error) {
	var due int64
	if !after.Due.IsZero() {
		due = alarm.Nanos(after.Due)
	}
	raw, err := x.host.store.ScanAlarms(shard, due, storage.Number(after.Object), limit)
	if err != nil {
		return nil, err
	}
	entries := make([]alarm.Entry, 0, len(raw))
	for _, e := range raw {
		gen, class, name, err := alarm.DecodeIndex(e.Value)
		if err != nil {
			return nil, err
		}
		entries = append(entries, alarm.Entry{
			Due: time.Unix(0, e.Due), Shard: shard, Object: uint64(e.Number), Gen: gen, Class: class, Name: name,
		})
	}
	return entries, nil
}

func (h *Host) schedulerConfig() alarm.Config {
	return alarm.Config{
		Seams:    h.seams,
		Shards:   h.store.Shards(),
		Source:   alarmIndex{h},
		InFlight: h.options.AlarmsInFlight,
		Batch:    flightSize,
		Fire:     h.fire,
		OnError:  func(err error) { _ = h.storageError(storage.ID{}, err) },
	}
}

// tellScheduler passes on a change of an object's alarm that has been committed.
func (h *Host) tellScheduler(old, o storage.Object, row *alarm.Row) {
	if old.Number != 0 && (row == nil || old.Number != o.Number) {
		h.alarms.Clear(old.Shard, uint64(old.Number))
	}
	if row != nil {
		h.alarms.Set(entryOf(o, row))
	}
}

func entryOf(o storage.Object, row *alarm.Row) alarm.Entry {
	return alarm.Entry{
		Due: row.Due, Shard: o.Shard, Object: uint64(o.Number), Gen: row.Gen, Class: o.ID.Class, Name: o.ID.Name,
	}
}

// fire takes alarms that are due from the scheduler.
func (h *Host) fire(due []alarm.Entry) {
	due = h.delivered(due)
	many := make([]alarm.Entry, 0, len(due))
	for _, e := range due {
		switch {
		case h.hosted[e.Class] == nil:
			h.alarms.Done(e) // it stays stored, and fires when its class is back (J12)
		case h.holdAlarm(e):
		case !h.permitted(e):
			h.alarms.Done(e) // its object may have another alarm meanwhile
		default:
			many = append(many, e)
		}
	}
	if len(many) > 0 {
		h.fly(many, false)
	}
}

// permitted reports whether a due alarm may be handled now, or waits for a permit of
// its class.
func (h *Host) permitted(e alarm.Entry) bool {
	p := h.hosted[e.Class].permits
	return p == nil || p.enter(e)
}

// unreserve gives back the permit that was reserved for an alarm, unless its turn has
// taken it.
func (h *Host) unreserve(e alarm.Entry) {
	if p := h.hosted[e.Class].permits; p != nil {
		p.unreserve(e.Name)
	}
}

// delivered is what is due, with what a simulation delivers twice.
func (h *Host) delivered(due []alarm.Entry) []alarm.Entry {
	if h.seams.Probe == nil {
		return due
	}
	out := due
	for _, e := range due {
		if h.seams.Fault(seam.FaultAlarmTwice, e.Class+"/"+e.Name) {
			out = append(slices.Clip(out), e)
		}
	}
	return out
}

// RecheckAlarms looks at the clock now and fires the alarms that are due, also if
// a timer was lost or is late. A scrubber does this at each walk.
func (h *Host) RecheckAlarms() {
	h.alarms.Recheck()
	for _, name := range h.names {
		if p := h.hosted[name].permits; p != nil {
			p.ring()
		}
	}
}

// holdAlarm holds a due alarm back if it is a suspect that may still run. The
// scheduler lets go of it, so that it takes no slot, and the object may have
// another alarm meanwhile.
func (h *Host) holdAlarm(e alarm.Entry) bool {
	x := subjectOf(e)
	set, suspected := h.suspects.setOf(x, 0, 0)
	if !suspected || h.suspects.charged(x) >= h.hosted[e.Class].options.MaxAlarmCrashes {
		return false
	}
	h.suspects.hold(&suspect{subject: x, set: set, entry: e})
	h.alarms.Done(e)
	return true
}

func subjectOf(e alarm.Entry) subject {
	return subject{id: storage.ID{Class: e.Class, Name: e.Name}, gen: e.Gen}
}

// retryWait is when alarms are tried again that could not be handled, so that a
// lack of space makes no hot loop.
const retryWait = time.Second

// rearm hands the alarm of an object to the scheduler again, a little later, in a
// turn, so that no other change of it comes between.
func (h *Host) rearm(e alarm.Entry) {
	id := subjectOf(e).id
	again := func(t *turn) error {
		row, err := t.act.alarm()
		if err == nil && row != nil && row.Gen == e.Gen {
			h.alarms.Set(entryOf(t.act.object, row))
		}
		return err
	}
	h.seams.Clock.AfterFunc(retryWait, func() {
		if h.life.enter(false) != nil {
			return
		}
		defer h.life.leave()
		if err := h.hosted[id.Class].deliver(context.Background(), &Request{id: id, exempt: true, op: bare(again)}); err != nil {
			h.options.Logger.Error("alarm waits for the next open", "class", id.Class, "object", id.Name, "error", err)
		}
	})
}

// postpone gives alarms back that could not be handled, a little later.
func (h *Host) postpone(entries []alarm.Entry) {
	h.seams.Clock.AfterFunc(retryWait, func() {
		for _, e := range entries {
			h.alarms.Return(e)
		}
	})
}
