package object

import (
	"context"
	"sync"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// flight is alarms whose handlers run together, by tasks that take one alarm
// after another. A task that takes one makes sure first that another task is on
// its way to take the next, so a handler that waits holds up no other, and
// handlers that do not wait need no task each:
//
//	next < len(calls)  implies  spare, or nobody has been called yet
type flight struct {
	host   *Host
	number uint64      // of its row
	calls  []alarmCall // in the order in which they are due
	landed func()      // called when all have ended

	mu    sync.Mutex
	next  int  // the first call that nobody has taken
	spare bool // a task is on its way to take the next call
	left  int  // calls that have not landed
}

// alarmCall is one alarm on its way to its object and back.
type alarmCall struct {
	flight  *flight
	entry   alarm.Entry
	request Request
	firing  firing
	ticket  storage.Ticket // what must be durable before the alarm is over
}

// fly runs the handlers of alarms that are due, and calls landed when all have
// ended.
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
		newFlight(h, n, entries, landed).serve(false)
	})
}

func newFlight(h *Host, number uint64, entries []alarm.Entry, landed func()) *flight {
	f := &flight{host: h, number: number, calls: make([]alarmCall, len(entries)), landed: landed, left: len(entries)}
	for i, e := range entries {
		c := &f.calls[i]
		c.flight, c.entry, c.firing.gen = f, e, e.Gen
		c.request.id = storage.ID{Class: e.Class, Name: e.Name}
		c.request.op, c.request.exempt = &c.firing, true
	}
	return f
}

// serve takes calls until none is left. spare says that the task was called for.
func (f *flight) serve(spare bool) {
	for c := f.take(spare); c != nil; {
		c.run()
		next := f.take(false)
		f.host.land(c, next == nil)
		c = next
	}
}

// take returns the next call, or nil.
func (f *flight) take(spare bool) *alarmCall {
	f.mu.Lock()
	if spare {
		f.spare = false
	}
	if f.next == len(f.calls) {
		f.mu.Unlock()
		return nil
	}
	c := &f.calls[f.next]
	f.next++
	call := !f.spare && f.next < len(f.calls)
	f.spare = f.spare || call
	f.mu.Unlock()
	if call {
		f.host.task("alarms", func() { f.serve(true) })
	}
	return c
}

// run sends the alarm to its object and returns when its turn has ended. If the
// handler ends its goroutine, another task goes on in its place.
func (c *alarmCall) run() {
	h := c.flight.host
	returned := false
	defer func() {
		if v := recover(); v != nil {
			panic(v)
		}
		if !returned {
			h.task("alarms", func() {
				c.ended(&PanicError{ID: c.request.id})
				h.land(c, false)
				c.flight.serve(false)
			})
		}
	}()
	if h.seams.Probe != nil {
		h.seams.At("alarm/dispatch", c.request.id.String())
	}
	err := h.hosted[c.entry.Class].deliver(context.Background(), &c.request)
	returned = true
	c.ended(err)
}

// ended sees to what follows a turn that ended with cause.
func (c *alarmCall) ended(cause error) {
	r := &c.request
	c.ticket = r.ticket
	if cause == nil || c.firing.settled {
		return
	}
	// What follows a failure is stored by the turn itself, unless its activation
	// has ended under it. Then another turn does that.
	after := &Request{id: r.id, exempt: true, op: bare(func(t *turn) error { return c.firing.failed(t, cause) })}
	_ = c.flight.host.hosted[r.id.Class].deliver(context.Background(), after) // settled tells what came of it
	c.ticket = max(c.ticket, after.ticket)
}

// landing is the alarms whose turns have ended, and which are not over before
// that is durable: else a handler would run again after a crash at any later
// time. One wait serves all that have come.
type landing struct {
	mu    sync.Mutex
	calls []*alarmCall
	busy  bool // a task serves calls
}

// land lets the alarm be over as soon as its turn's commit is durable. The
// caller waits for that only if it has nothing else to do.
func (h *Host) land(c *alarmCall, idle bool) {
	l := &h.flights.landing
	l.mu.Lock()
	l.calls = append(l.calls, c)
	serve := !l.busy
	l.busy = true
	l.mu.Unlock()
	switch {
	case !serve:
	case idle:
		h.landAll()
	default:
		h.task("alarms/land", h.landAll)
	}
}

// landAll ends what lands until nothing does.
func (h *Host) landAll() {
	l := &h.flights.landing
	var calls []*alarmCall
	for {
		l.mu.Lock()
		calls, l.calls = l.calls, calls[:0]
		l.busy = len(calls) > 0
		l.mu.Unlock()
		if len(calls) == 0 {
			return
		}
		var ticket storage.Ticket
		for _, c := range calls {
			ticket = max(ticket, c.ticket)
		}
		if err := h.store.WaitDurable(ticket); err != nil {
			_ = h.storageError(calls[0].request.id, err) // it ends the host
			return
		}
		for _, c := range calls {
			c.over()
		}
		clear(calls)
	}
}

// over frees the place of the alarm. One that is stored as it was fires again a
// little later.
func (c *alarmCall) over() {
	f, h := c.flight, c.flight.host
	f.mu.Lock()
	f.left--
	last := f.left == 0
	f.mu.Unlock()
	if last {
		h.flights.over(f.number)
		f.landed()
	}
	if !c.firing.settled {
		h.postpone([]alarm.Entry{c.entry})
		return
	}
	h.flights.clear(c.request.id)
	h.alarms.Done(c.entry)
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
