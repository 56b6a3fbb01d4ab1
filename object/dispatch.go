package object

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// flights is the alarms under way. Before the handlers of a flight run, a row of
// the store tells which they are, durably. If the process dies, the next one
// finds the row and knows whose handlers were cut off (A8). One row and one sync
// serve a whole flight.
type flights struct {
	mu    sync.Mutex
	next  uint64
	ended []uint64 // flights that are over and whose rows are still stored
	// suspects are objects whose alarm was cut off before. They fly one at a
	// time, so that an alarm that kills the process is soon cut off alone, and
	// the others are counted once or twice at most.
	suspects map[storage.ID]bool
	lane     []alarm.Entry // suspects that wait for the one that flies
	laneBusy bool
}

const (
	flightRow = "flight/" // then the epoch and the number of the flight
	// flightSize bounds the alarms of one flight.
	flightSize = 128
)

func flightName(epoch, n uint64) string { return fmt.Sprintf("%s%d/%d", flightRow, epoch, n) }

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
	var many []alarm.Entry
	for _, e := range h.delivered(due) {
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

// fly runs the handlers of alarms that are due, as tasks, and calls landed when
// all have ended.
func (h *Host) fly(entries []alarm.Entry, landed func()) {
	if h.life.enter(false) != nil {
		for _, e := range entries {
			h.alarms.Done(e)
		}
		return
	}
	h.seams.Executor.Go("alarms", func() {
		defer h.life.leave()
		n, err := h.announce(entries)
		if err != nil {
			h.options.Logger.Error("alarms wait: flight not stored", "error", err)
			h.postpone(entries)
			landed()
			return
		}
		left := int64(len(entries))
		var mu sync.Mutex
		for _, e := range entries {
			h.land(e, func() {
				mu.Lock()
				left--
				last := left == 0
				mu.Unlock()
				if last {
					h.flights.over(n)
					landed()
				}
			})
		}
	})
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

// announce stores which alarms are about to be handled, and waits until it is
// durable. Rows of flights that are over go in the same batch.
func (h *Host) announce(entries []alarm.Entry) (n uint64, err error) {
	f := &h.flights
	f.mu.Lock()
	f.next++
	n = f.next
	ended := f.ended
	f.ended = nil
	f.mu.Unlock()

	var b storage.Batch
	for _, old := range ended {
		b.DeleteMeta(flightName(h.Epoch(), old))
	}
	b.SetMeta(flightName(h.Epoch(), n), encodeFlight(entries))
	t, err := h.store.Commit(&b)
	if err != nil {
		f.over(ended...) // their rows are still there
		return 0, err
	}
	return n, h.store.WaitDurable(t)
}

// land sends an alarm to its object and frees its place when its turn has ended.
func (h *Host) land(e alarm.Entry, done func()) {
	if h.seams.Probe != nil {
		h.seams.At("alarm/dispatch", e.Class+"/"+e.Name)
	}
	f := &firing{gen: e.Gen}
	r := &Request{id: storage.ID{Class: e.Class, Name: e.Name}, op: f, exempt: true}
	h.task("alarm", func() {
		returned := false
		defer func() {
			if v := recover(); v != nil {
				panic(v)
			}
			if !returned { // the handler ended its goroutine, and this one goes with it
				h.task("alarm", func() { h.landed(e, f, r, &PanicError{ID: r.id}, done) })
			}
		}()
		err := h.hosted[e.Class].deliver(context.Background(), r)
		returned = true
		h.landed(e, f, r, err, done)
	})
}

// task starts f as a task that Shutdown waits for.
func (h *Host) task(name string, f func()) {
	if h.life.enter(true) != nil {
		return
	}
	h.seams.Executor.Go(name, func() {
		defer h.life.leave()
		f()
	})
}

// landed frees the place of an alarm whose turn has ended. An alarm is over when
// that is durable, not before: else its handler would run again after a crash at
// any later time. One that is stored as it was fires again a little later.
func (h *Host) landed(e alarm.Entry, f *firing, r *Request, cause error, done func()) {
	ticket := r.ticket
	if cause != nil && !f.settled {
		// What follows a failure is stored by the turn itself, unless its
		// activation has ended under it. Then another turn does that.
		after := &Request{id: r.id, exempt: true, op: bare(func(t *turn) error { return f.failed(t, cause) })}
		_ = h.hosted[e.Class].deliver(context.Background(), after) // settled tells what came of it
		ticket = max(ticket, after.ticket)
	}
	if err := h.store.WaitDurable(ticket); err != nil {
		_ = h.storageError(r.id, err) // it ends the host
		return
	}
	done()
	if !f.settled {
		h.postpone([]alarm.Entry{e})
		return
	}
	h.flights.clear(r.id)
	h.alarms.Done(e)
}

// over notes that every handler of some flights has ended.
func (f *flights) over(n ...uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, n...)
}

func (f *flights) isSuspect(id storage.ID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.suspects[id]
}

func (f *flights) clear(id storage.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.suspects, id)
}

// countCutOff finds the flights of earlier processes and counts, in the alarms
// that were not settled, that an attempt was cut off.
func (h *Host) countCutOff() error {
	f := &h.flights
	f.suspects = make(map[storage.ID]bool)
	var names []string
	var cut []alarm.Entry
	err := h.store.Metas(flightRow, func(name string, value []byte) error {
		entries, err := decodeFlight(value)
		names, cut = append(names, name), append(cut, entries...)
		return err
	})
	if err != nil || len(names) == 0 {
		return err
	}
	var b storage.Batch
	if !h.store.Previous().Clean {
		for _, e := range cut {
			if err := h.countCrash(&b, e); err != nil {
				return err
			}
		}
	}
	for _, name := range names {
		b.DeleteMeta(name)
	}
	t, err := h.store.Commit(&b)
	if err != nil {
		return err
	}
	return h.store.WaitDurable(t)
}

// countCrash adds one to the crashes of an alarm, if it is still the one whose
// handler ran. Its generation stays, so that a second flight row that names it
// counts too; its due time stays as well.
func (h *Host) countCrash(b *storage.Batch, e alarm.Entry) error {
	o, err := h.store.Find(storage.ID{Class: e.Class, Name: e.Name})
	if err != nil || uint64(o.Number) != e.Object {
		return err
	}
	value, ok, err := h.store.Alarm(o)
	if err != nil || !ok {
		return err
	}
	row, err := alarm.DecodeRow(value)
	if err != nil || row.Gen != e.Gen {
		return err
	}
	row.Crashes++
	h.flights.suspects[o.ID] = true
	h.metrics.recoveries.WithLabelValues("alarm cut off").Inc()
	old := row
	moveAlarm(b, o, &old, &row)
	return nil
}

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
}

// encodeFlight lists alarms: shard, number and generation, class, name.
func encodeFlight(entries []alarm.Entry) []byte {
	var b []byte
	for _, e := range entries {
		b = binary.AppendUvarint(b, uint64(e.Shard))
		b = binary.AppendUvarint(b, e.Object)
		index := alarm.AppendIndex(nil, e.Gen, e.Class, e.Name)
		b = binary.AppendUvarint(b, uint64(len(index)))
		b = append(b, index...)
	}
	return b
}

func decodeFlight(b []byte) (entries []alarm.Entry, err error) {
	bad := fmt.Errorf("%w: flight row %x", storage.ErrCorrupt, b)
	for len(b) > 0 {
		var field [3]uint64
		for i := range field {
			v, n := binary.Uvarint(b)
			if n <= 0 {
				return nil, bad
			}
			field[i], b = v, b[n:]
		}
		if field[2] > uint64(len(b)) {
			return nil, bad
		}
		gen, class, name, err := alarm.DecodeIndex(b[:field[2]])
		if err != nil {
			return nil, errors.Join(bad, err)
		}
		b = b[field[2]:]
		entries = append(entries, alarm.Entry{Shard: int(field[0]), Object: field[1], Gen: gen, Class: class, Name: name})
	}
	return entries, nil
}
