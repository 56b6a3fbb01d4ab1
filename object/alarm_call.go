package object

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object/internal/crew"
	"github.com/holdfast-dev/holdfast/seam"
)

// alarmCall is one alarm on its way to its object and back. It has the request, the turn
// and the operation in one piece, so that all calls of a flight are one allocation. It has no
// copy of the alarm's entry, because entry makes one from the other fields.
type alarmCall struct {
	flight  *flight
	due     time.Time
	shard   int
	object  uint64
	request Request
	turn    turn
	firing  firing
}

// entry returns the alarm as the scheduler has it.
func (c *alarmCall) entry() alarm.Entry {
	id := c.request.id
	return alarm.Entry{Due: c.due, Shard: c.shard, Object: c.object, Gen: c.firing.gen, Class: id.Class, Name: id.Name}
}

// Run sends the alarm to its object, waits until its turn has ended, and calls landed. A
// goroutine of the crew runs it. A handler that ends its goroutine (runtime.Goexit) ends
// that one too, so another goroutine of the crew calls landed then.
func (c *alarmCall) Run() {
	h := c.flight.host
	if h.seams.Probe != nil {
		h.seams.At("alarm/dispatch", c.request.id.String())
	}
	deliver := func() error { return h.hosted[c.request.id.Class].deliver(context.Background(), &c.request) }
	c.landed(seam.Guard(deliver, func(p *seam.PanicError) error {
		if !p.Exited() {
			panic(p.Value) // the turn guards user code, so this is a mistake of the runtime
		}
		// The handler has ended its goroutine, and this one goes with it.
		err := &PanicError{ID: c.request.id}
		h.crew.Add(crew.Func(func() { c.landed(err) }))
		return err
	}))
}

// landed is called when the turn of the alarm has ended with cause. It has over called
// when the commits of the turn are durable, and not before, because a crash could lose
// the commits after over has released the row in the flight log: then the handler would
// run again, and the next process would not count the crash.
//
// The turn itself stores the alarm that follows a failure. If it could not, because its
// instance was gone, landed runs another turn that stores it.
func (c *alarmCall) landed(cause error) {
	h, r := c.flight.host, &c.request
	h.unreserve(c.entry())
	ticket := r.ticket
	if cause != nil && !c.firing.settled {
		after := &Request{id: r.id, exempt: true, op: bare(func(t *turn) error { return c.firing.failed(t, cause) })}
		_ = h.hosted[r.id.Class].deliver(context.Background(), after) // c.firing.settled tells the result
		ticket = max(ticket, after.ticket)
	}
	h.afterDurable.Do(ticket, c.over)
}

// over frees the slot of the alarm in the scheduler, and with the last alarm of the
// flight its row in the flight log. An alarm that was not settled fires again later. It
// runs when the commits of the turn are durable, or with the error of the store.
func (c *alarmCall) over(err error) {
	f, h := c.flight, c.flight.host
	defer h.lifecycle.leave()
	if err != nil {
		_ = h.storageError(c.request.id, err) // it ends the host
		return
	}
	if f.left.Add(-1) == 0 {
		h.flightLog.over(f.number)
	}
	h.back(c.entry(), f.loose, c.firing.settled)
}

// back returns an alarm after its turn, or after its flight could not be stored. A
// settled one is Done. One that was not settled fires again after retryWait.
func (h *Host) back(e alarm.Entry, loose, settled bool) {
	if loose {
		h.flightLog.suspects.ended(subjectOf(e))
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

// retryWait is how long an alarm that could not be handled waits for the next try, so
// that, for example, a full disk makes no loop that takes a whole processor.
const retryWait = time.Second

// rearm hands the alarm of an object to the scheduler again after retryWait. It does so
// in a turn of the object, because a turn that replaces the alarm tells the scheduler
// too, and the older row must not arrive last. It serves alarms that the scheduler has
// let go of; postpone serves the others.
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
		if h.lifecycle.enter(false) != nil {
			return
		}
		defer h.lifecycle.leave()
		if err := h.hosted[id.Class].deliver(context.Background(), &Request{id: id, exempt: true, op: bare(again)}); err != nil {
			h.options.Logger.Error("alarm waits for the next open", "class", id.Class, "object", id.Name, "error", err)
		}
	})
}

// postpone returns alarms that could not be handled to the scheduler after retryWait.
// They keep their slots until then.
func (h *Host) postpone(entries []alarm.Entry) {
	h.seams.Clock.AfterFunc(retryWait, func() {
		for _, e := range entries {
			h.alarms.Return(e)
		}
	})
}

// unreserve gives back the permit that was reserved for an alarm, unless its turn has
// taken it.
func (h *Host) unreserve(e alarm.Entry) {
	if p := h.hosted[e.Class].permits; p != nil {
		p.unreserve(e.Name)
	}
}
