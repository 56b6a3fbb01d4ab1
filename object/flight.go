package object

import (
	"context"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// flight is alarms that are due and whose handlers run together.
type flight struct {
	host   *Host
	number uint64 // of its row
	loose  bool   // the scheduler has let go of them: they were held back
	left   atomic.Int64
}

// alarmCall is one alarm on its way to its object and back.
type alarmCall struct {
	flight  *flight
	entry   alarm.Entry
	request Request
	turn    turn
	firing  firing
}

// fly runs the handlers of alarms that are due. Loose ones are no longer in the
// scheduler.
func (h *Host) fly(entries []alarm.Entry, loose bool) {
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
			for _, e := range entries {
				h.unreserve(e)
				h.back(e, loose, false)
			}
			return
		}
		h.depart(&flight{host: h, number: n, loose: loose}, entries)
	})
}

// back gives an alarm back that has flown. One that was not settled fires again a
// little later.
func (h *Host) back(e alarm.Entry, loose, settled bool) {
	if loose {
		h.suspects.ended(subjectOf(e))
	}
	switch {
	case settled:
		h.alarms.Done(e)
	case loose:
		h.rearm(e)
	default:
		h.postpone([]alarm.Entry{e})
	}
}

// depart sends the alarms of a flight on their way.
func (h *Host) depart(f *flight, entries []alarm.Entry) {
	f.left.Store(int64(len(entries)))
	calls := make([]alarmCall, len(entries))
	runners := make([]runner, len(entries))
	for i, e := range entries {
		c := &calls[i]
		c.flight, c.entry, c.firing.gen = f, e, e.Gen
		c.request.id = storage.ID{Class: e.Class, Name: e.Name}
		c.request.op, c.request.turn, c.request.exempt, c.request.what = &c.firing, &c.turn, true, &whatAlarm
		runners[i] = c
		h.life.begin()
	}
	h.runway.add(runners)
}

// run sends the alarm to its object and sees to what follows when its turn has
// ended.
func (c *alarmCall) run() {
	h := c.flight.host
	returned := false
	defer func() {
		if v := recover(); v != nil {
			panic(v)
		}
		if !returned { // the handler ended its goroutine, and this one goes with it
			h.crew.add(runFunc(func() { c.ended(&PanicError{ID: c.request.id}) }))
		}
	}()
	if h.seams.Probe != nil {
		h.seams.At("alarm/dispatch", c.request.id.String())
	}
	err := h.hosted[c.entry.Class].deliver(context.Background(), &c.request)
	returned = true
	c.ended(err)
}

// ended sees to what follows a turn that ended with cause. The alarm is over when
// that is durable, not before: else its handler would run again after a crash at
// any later time.
func (c *alarmCall) ended(cause error) {
	h, r := c.flight.host, &c.request
	h.unreserve(c.entry)
	ticket := r.ticket
	if cause != nil && !c.firing.settled {
		// What follows a failure is stored by the turn itself, unless its
		// activation has ended under it. Then another turn does that.
		after := &Request{id: r.id, exempt: true, op: bare(func(t *turn) error { return c.firing.failed(t, cause) })}
		_ = h.hosted[r.id.Class].deliver(context.Background(), after) // settled tells what came of it
		ticket = max(ticket, after.ticket)
	}
	h.durably.then(ticket, c.over)
}

// over frees the place of the alarm. One that is stored as it was fires again a
// little later.
func (c *alarmCall) over(err error) {
	f, h := c.flight, c.flight.host
	defer h.life.leave()
	if err != nil {
		_ = h.storageError(c.request.id, err) // it ends the host
		return
	}
	if f.left.Add(-1) == 0 {
		h.flights.over(f.number)
	}
	h.back(c.entry, f.loose, c.firing.settled)
}
