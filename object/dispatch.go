package object

import (
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
		case h.flights.isSuspect(storage.ID{Class: e.Class, Name: e.Name}):
			h.flySuspect(e)
		default:
			many = append(many, e)
		}
	}
	if len(many) > 0 {
		h.fly(many, func() {})
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
func (h *Host) RecheckAlarms() { h.alarms.Recheck() }

// flySuspect runs the handler of one suspect when no other suspect's runs.
func (h *Host) flySuspect(e alarm.Entry) {
	f := &h.flights
	f.mu.Lock()
	wait := f.laneBusy
	if wait {
		f.lane = append(f.lane, e)
	}
	f.laneBusy = true
	f.mu.Unlock()
	if !wait {
		h.fly([]alarm.Entry{e}, h.nextSuspect)
	}
}

func (h *Host) nextSuspect() {
	f := &h.flights
	f.mu.Lock()
	var next []alarm.Entry
	if f.laneBusy = len(f.lane) > 0; f.laneBusy {
		next, f.lane = f.lane[:1:1], f.lane[1:]
	}
	f.mu.Unlock()
	if next != nil {
		h.fly(next, h.nextSuspect)
	}
}

// postpone gives alarms back that could not be handled, a little later, so that
// a lack of space makes no hot loop.
func (h *Host) postpone(entries []alarm.Entry) {
	const wait = time.Second
	h.seams.Clock.AfterFunc(wait, func() {
		for _, e := range entries {
			h.alarms.Return(e)
		}
	})
}
