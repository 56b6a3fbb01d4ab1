package object

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// WorkLimit bounds how many routines of a class run in one host, and how often they start. It
// counts only routines with a permit; see Driver.TakePermit. The zero value is no limit.
type WorkLimit struct {
	// AtOnce is how many may run at a time. Zero: any number.
	AtOnce int
	// StartRate bounds how often they start. Zero: any number.
	StartRate StartRate
}

// StartRate spreads starts evenly: in any time t of one process at most
// Burst + Starts·t/Per routines start. For example, with 10 starts per second and a Burst of
// 1, a routine starts every 100 ms. It is the generic cell rate algorithm of ATM Forum TM 4.1,
// section 4.4.2. The zero value is no limit.
type StartRate struct {
	Starts int
	Per    time.Duration
	// Burst is how many may start at once after a pause. Zero: as many as start in
	// 100 ms, but at least one.
	Burst int
}

// defaultBurst gives the burst if StartRate.Burst is zero: the starts of this much time may
// come at once, so that a timer that rings late costs no throughput.
const defaultBurst = 100 * time.Millisecond

// interval returns the time between two starts, rounded up to whole nanoseconds; 0 without
// a limit.
func (r StartRate) interval() time.Duration {
	if r.Starts == 0 {
		return 0
	}
	return (r.Per-1)/time.Duration(r.Starts) + 1
}

// tolerance returns how much earlier a start may come than if all starts came evenly.
func (r StartRate) tolerance() time.Duration {
	interval := r.interval()
	if r.Burst > 0 {
		return time.Duration(r.Burst-1) * interval
	}
	return max(defaultBurst-interval, 0)
}

// none reports whether l is no limit.
func (l WorkLimit) none() bool { return l.AtOnce == 0 && l.StartRate.Starts == 0 }

// Validate reports the first mistake in l.
func (l WorkLimit) Validate() error {
	r := l.StartRate
	switch {
	case l.AtOnce < 0:
		return notNegative("AtOnce", l.AtOnce)
	case r.Starts < 0 || r.Per < 0 || r.Burst < 0:
		return fmt.Errorf("StartRate must not be negative: %d starts per %v, burst %d", r.Starts, r.Per, r.Burst)
	case (r.Starts == 0) != (r.Per == 0), r.Starts == 0 && r.Burst != 0:
		return fmt.Errorf("StartRate needs both Starts and Per: %d starts per %v, burst %d", r.Starts, r.Per, r.Burst)
	case r.Burst > 0 && r.tolerance()/r.interval() != time.Duration(r.Burst-1):
		return fmt.Errorf("StartRate has a burst of more than 292 years: %d starts per %v, burst %d", r.Starts, r.Per, r.Burst)
	}
	return nil
}

// permits holds the permits for the routines of one class in a host. The way of a permit:
//
//  1. A turn takes one by TakePermit for a routine that it begins. If none is free, take
//     notes the refusal, and the job type sets the object's alarm for now.
//  2. The scheduler fires the alarm, and enter puts it in line. The object may leave
//     memory: while it waits it costs no write, no activation and no slot of the
//     scheduler. A crash loses nothing, because the alarm is stored.
//  3. A routine that has returned gives its permit back. serve reserves it for the first
//     alarm in line, and fly has the alarm's handler run.
//  4. TakePermit in that turn takes the reserved permit. A turn that does not take it
//     gives it back by unreserve.
//
// The mutex guards all fields below it. It is held for a few instructions: enter reads the
// store, and fly starts alarms, without it.
type permits struct {
	host  *Host
	limit WorkLimit

	mu       sync.Mutex
	taken    int                     // permits that routines and turns have, or that are reserved
	next     time.Time               // steady: when the next routine would start if all started evenly
	reserved map[string]bool         // by object name: its alarm was let through with a permit
	refused  map[string]bool         // by object name: its alarm is to come; true: it goes first
	waiting  map[string]*alarm.Entry // by object name: the alarms in first and line
	first    []*alarm.Entry          // in line before the others: routines that go on with a run
	line     []*alarm.Entry
	timer    seam.Timer // nil unless the first in line waits for its time
	closed   bool       // the host ends: alarms are let through and no line is kept
}

// newPermits returns the permits of a class, or nil if it has no limit.
func newPermits(h *Host, l WorkLimit) *permits {
	if l.none() {
		return nil
	}
	return &permits{
		host: h, limit: l,
		reserved: make(map[string]bool), refused: make(map[string]bool), waiting: make(map[string]*alarm.Entry),
	}
}

// take takes a permit for a turn of the object: the one that is reserved for it, or a free
// one if no alarm waits in line. Otherwise it notes the refusal and returns false; with
// first, the object's alarm goes before the others.
func (p *permits) take(name string, first bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reserved[name] { // and not refused: see judge and put
		delete(p.reserved, name)
		return true
	}
	if now := p.host.seams.Steady(); len(p.waiting) == 0 && p.free(now) {
		p.grab(now)
		delete(p.refused, name)
		return true
	}
	if p.waiting[name] == nil {
		p.refused[name] = first
	}
	return false
}

// free reports whether a routine may start now: fewer than AtOnce have a permit, and the start
// rate allows a start. The caller holds the mutex.
func (p *permits) free(now time.Time) bool {
	return (p.limit.AtOnce == 0 || p.taken < p.limit.AtOnce) && !now.Before(p.startsAt())
}

// startsAt returns when the start rate allows the next start. The caller holds the mutex.
func (p *permits) startsAt() time.Time { return p.next.Add(-p.limit.StartRate.tolerance()) }

// grab takes a permit that is free, and moves the time of the next even start on. The
// caller holds the mutex.
func (p *permits) grab(now time.Time) {
	p.taken++
	if p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(p.limit.StartRate.interval())
}

// unused gives back n permits with which no routine has started, together with their part of
// the start rate.
func (p *permits) unused(n int) {
	p.fly(p.giveBack(n, time.Duration(n)*p.limit.StartRate.interval()))
}

// over gives back n permits of routines that have returned. Their starts stay counted in the
// start rate.
func (p *permits) over(n int) { p.fly(p.giveBack(n, 0)) }

// giveBack gives back n permits, and rate of the start rate. It returns the alarms that
// may run now, which the caller passes to fly without the mutex.
func (p *permits) giveBack(n int, rate time.Duration) []alarm.Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= n
	p.next = p.next.Add(-rate)
	return p.serve()
}

// unreserve gives back the permit that was reserved for an alarm, unless the alarm's turn,
// which is over, has taken it.
func (p *permits) unreserve(name string) {
	if p.unclaimed(name) {
		p.unused(1)
	}
}

// unclaimed ends the reservation of an object, and reports whether there was one.
func (p *permits) unclaimed(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	reserved := p.reserved[name]
	delete(p.reserved, name)
	return reserved
}

// enter reports whether a due alarm may be handled now; otherwise it stands in line when
// enter returns. Host.fire calls it. It reads the store only if the first judgement leaves
// the alarm undecided, and without the mutex.
func (p *permits) enter(e alarm.Entry) bool {
	v := p.judge(e, false)
	if v == undecided {
		if p.executing(e) {
			return true
		}
		v = p.judge(e, true)
	}
	return v == letThrough
}

// verdict is the decision of judge about a due alarm.
type verdict uint8

const (
	undecided  verdict = iota // the caller must find out whether the object idles
	letThrough                // its handler may run now
	inLine                    // it waits for a permit
)

// judge decides about a due alarm. It lets the alarm through if a permit is free or was
// reserved for it, and puts it in line if its object was refused one. Any other alarm has
// to wait only if idles says that its object has no open execution, because the alarm of
// an execution renews leases and must not be late.
func (p *permits) judge(e alarm.Entry, idles bool) verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.host.seams.Steady()
	first, refused := p.refused[e.Name]
	known := p.waiting[e.Name]
	switch {
	case p.closed, p.reserved[e.Name]:
		return letThrough
	case known != nil:
		*known = e
		return inLine
	case len(p.waiting) == 0 && p.free(now):
		p.grab(now)
		p.reserved[e.Name] = true
		delete(p.refused, e.Name)
		return letThrough
	case refused || idles:
		p.put(e, first)
		return inLine
	}
	return undecided
}

// executing reports whether an object has an open execution. Its alarm then renews leases
// or recovers a lost run, and begins no new work unless a turn was refused.
func (p *permits) executing(e alarm.Entry) bool {
	o := storage.Object{ID: storage.ID{Class: e.Class, Name: e.Name}, Shard: e.Shard, Number: storage.Number(e.Object)}
	_, open, err := p.host.store.OpenMark(o)
	return open || err != nil // the turn will meet the error too
}

// put adds an alarm to the line, or to first. The caller holds the mutex.
func (p *permits) put(e alarm.Entry, first bool) {
	delete(p.refused, e.Name)
	p.waiting[e.Name] = &e
	if first {
		p.first = append(p.first, &e)
	} else {
		p.line = append(p.line, &e)
	}
	p.arm()
}

// serve reserves the free permits for the first alarms in line, and returns those alarms.
// A host that ends serves no alarm, because none would be handled and give its permit back.
// The caller holds the mutex, and passes the alarms to fly after it has released it.
func (p *permits) serve() (due []alarm.Entry) {
	now := p.host.seams.Steady()
	for len(p.waiting) > 0 && !p.host.lifecycle.closing.Load() && p.free(now) {
		p.grab(now)
		e := p.shift()
		p.reserved[e.Name] = true
		due = append(due, *e)
	}
	if len(p.waiting) == 0 {
		clear(p.refused) // an alarm on its way in finds no line
	}
	p.arm()
	return due
}

// shift takes the first alarm out of the line. The caller holds the mutex.
func (p *permits) shift() *alarm.Entry {
	from := &p.line
	if len(p.first) > 0 {
		from = &p.first
	}
	e := (*from)[0]
	(*from)[0] = nil
	*from = (*from)[1:]
	delete(p.waiting, e.Name)
	return e
}

// arm sets the timer for the time at which the start rate lets the first in line go. It
// sets none if AtOnce routines have permits, because the next permit that is given back serves
// the line. The caller holds the mutex.
func (p *permits) arm() {
	if p.closed || p.timer != nil || len(p.waiting) == 0 || p.limit.AtOnce > 0 && p.taken >= p.limit.AtOnce {
		return
	}
	wait := p.startsAt().Sub(p.host.seams.Steady())
	p.timer = p.host.seams.Clock.AfterFunc(wait, p.ring)
}

// ring serves the line. The timer calls it, and so does RecheckAlarms, because a timer may
// be late or lost.
func (p *permits) ring() { p.fly(p.rung()) }

// rung stops the timer and returns the alarms that may run now. It takes the mutex.
func (p *permits) rung() []alarm.Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	return p.serve()
}

// fly has the handlers of alarms run that have stood in line, one flight after another. The
// scheduler has let go of these alarms, so they are loose. The caller does not hold the
// mutex, because a handler that ends may take it.
func (p *permits) fly(due []alarm.Entry) {
	for len(due) > 0 {
		n := min(len(due), flightSize)
		p.host.fly(due[:n:n], true)
		due = due[n:]
	}
}

// close forgets the line and stops the timer. The alarms stay stored, and fire after the
// next Open. Shutdown and fail call it.
func (p *permits) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed, p.first, p.line = true, nil, nil
	clear(p.waiting)
	if p.timer != nil {
		p.timer.Stop()
	}
}

// count returns how many permits are taken, and how many alarms wait for one.
func (p *permits) count() (taken, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken, len(p.waiting)
}

// awaited reports whether the object waits for a permit: its alarm is in line, or a turn of
// it was refused and its alarm is still to come.
func (p *permits) awaited(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, refused := p.refused[name]
	return refused || p.waiting[name] != nil
}

// place returns where the alarm of an object stands in line for a permit, 1 for the first,
// counted up to a bound; 0 if it is not in line.
func (p *permits) place(name string, most int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.waiting[name]
	if e == nil {
		return 0
	}
	for i := range min(most, len(p.waiting)) {
		line, at := p.first, i
		if i >= len(p.first) {
			line, at = p.line, i-len(p.first)
		}
		if line[at] == e {
			return i + 1
		}
	}
	return most
}

// TakePermit takes a permit for a routine, if ClassOptions.WorkLimit lets one more start. The
// next routine that the turn starts then has the permit, and gives it back when its function
// has returned. A turn that starts no routine, or fails, gives the permit back at its end. It
// is for authors of job types.
//
// If TakePermit reports false, the turn must not start the routine. It sets the object's alarm
// for a time that is not later than now, and the host calls the alarm's handler when a
// permit is free; TakePermit then reports true. The handlers run in the order in which the
// alarms came due, and those refused with first before the others. Meanwhile the object
// need not be in memory. The alarm of an object with an open execution is handled without
// a permit.
//
// A routine that is held back after crashes in a row keeps its permit; see StartSuspect.
// Without a limit TakePermit reports true.
func (d *Driver) TakePermit(ctx context.Context, first bool) (bool, error) {
	t, err := d.state.turn(ctx)
	if err != nil {
		return false, err
	}
	p := d.state.act.hosted.permits
	if p == nil || t.permit {
		return true, nil
	}
	if !p.take(d.state.act.object.ID.Name, first) {
		return false, nil
	}
	t.permit = true
	t.permits++
	return true, nil
}

// AwaitsPermit reports whether the object waits for a permit: a turn was refused one, or
// its alarm is due and stands in line. Any goroutine may call it.
func (d *Driver) AwaitsPermit() bool {
	p := d.state.act.hosted.permits
	return p != nil && p.awaited(d.state.act.object.ID.Name)
}

// giveUnused gives back the permits that the turn has taken for routines that it has not
// started, for example because it failed. It is called once, at the end of the turn.
func (t *turn) giveUnused() {
	if t.permits > 0 {
		t.act.hosted.permits.unused(t.permits)
	}
}

// closePermits closes the permits of all classes, when the host ends.
func (h *Host) closePermits() {
	for _, name := range h.names {
		if p := h.hosted[name].permits; p != nil {
			p.close()
		}
	}
}
