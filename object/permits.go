package object

import (
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// WorkLimit bounds the works of a class that have a permit, in one host; see
// State.TakePermit. The zero value is no limit.
type WorkLimit struct {
	// AtOnce is how many may run at a time. Zero: any number.
	AtOnce int
	// StartRate bounds how often they start. Zero: any number.
	StartRate StartRate
}

// StartRate spreads starts evenly: in any time t of one process at most
// Burst + Starts·t/Per works start. It is the generic cell rate algorithm of ATM
// Forum TM 4.1, section 4.4.2. The zero value is no limit.
type StartRate struct {
	Starts int
	Per    time.Duration
	// Burst is how many may start at once after a pause. Zero: as many as start in
	// 100 ms, but at least one.
	Burst int
}

// defaultBurst is the time of which all starts may come at once, so that a timer that rings
// late costs no throughput.
const defaultBurst = 100 * time.Millisecond

// interval is the time between two starts, rounded up to whole nanoseconds.
func (r StartRate) interval() time.Duration {
	if r.Starts == 0 {
		return 0
	}
	return (r.Per-1)/time.Duration(r.Starts) + 1
}

// tolerance is how much earlier than evenly a start may come.
func (r StartRate) tolerance() time.Duration {
	interval := r.interval()
	if r.Burst > 0 {
		return time.Duration(r.Burst-1) * interval
	}
	return max(defaultBurst-interval, 0)
}

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

// permits are those of the works of one class in a host. A turn takes one for a work
// that it begins, and the work gives it back when it has returned. A turn that is
// refused arms the object's alarm for now. Alarms that are due wait in line until a
// permit is reserved for each, so an object that waits costs no write, no activation
// and no slot of the scheduler. A crash loses nothing, because the alarms are stored.
type permits struct {
	host  *Host
	limit WorkLimit

	mu       sync.Mutex
	taken    int             // by works and turns, and reserved
	next     time.Time       // steady: when the next work would start if all started evenly
	reserved map[string]bool // by name: the object's alarm was let through with a permit
	refused  map[string]bool // by name: the object's alarm is to come; true: it goes first
	waiting  map[string]*alarm.Entry
	first    []*alarm.Entry // in line before the others: works that go on with a run
	line     []*alarm.Entry
	timer    seam.Timer // nil unless the first in line waits for its time
	closed   bool
}

func newPermits(h *Host, l WorkLimit) *permits {
	if l.none() {
		return nil
	}
	return &permits{
		host: h, limit: l,
		reserved: make(map[string]bool), refused: make(map[string]bool), waiting: make(map[string]*alarm.Entry),
	}
}

// take takes a permit for a turn of the object, or notes that it was refused. One
// that is refused first goes before the others.
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

// free reports whether a work may start now. The caller holds the mutex.
func (p *permits) free(now time.Time) bool {
	return (p.limit.AtOnce == 0 || p.taken < p.limit.AtOnce) && !now.Before(p.startsAt())
}

// startsAt is when the start rate allows the next start. The caller holds the mutex.
func (p *permits) startsAt() time.Time { return p.next.Add(-p.limit.StartRate.tolerance()) }

// grab takes a permit that is free. The caller holds the mutex.
func (p *permits) grab(now time.Time) {
	p.taken++
	if p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(p.limit.StartRate.interval())
}

// unused gives back n permits with which no work has started.
func (p *permits) unused(n int) {
	p.fly(p.giveBack(n, time.Duration(n)*p.limit.StartRate.interval()))
}

// over gives back n permits.
func (p *permits) over(n int) { p.fly(p.giveBack(n, 0)) }

// giveBack gives back n permits, and their part of the start rate. It returns the
// alarms that may fly now.
func (p *permits) giveBack(n int, rate time.Duration) []alarm.Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken -= n
	p.next = p.next.Add(-rate)
	return p.serve()
}

// unreserve gives back the permit that was reserved for an alarm whose turn is over,
// unless the turn has taken it.
func (p *permits) unreserve(name string) {
	if p.unclaimed(name) {
		p.unused(1)
	}
}

// unclaimed reports whether a permit was reserved for an alarm, and ends that.
func (p *permits) unclaimed(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	reserved := p.reserved[name]
	delete(p.reserved, name)
	return reserved
}

// enter reports whether a due alarm may be handled now. Else it waits in line.
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

// verdict is the decision about a due alarm.
type verdict uint8

const (
	undecided verdict = iota
	letThrough
	inLine
)

// judge lets an alarm through if a permit is free or was reserved for it, and puts it
// in line if its object was refused one. Any other waits only if it idles: its object
// has no open execution.
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

// executing reports whether an object has an open execution: its alarm renews leases
// or recovers what was lost, and is not for a new work unless a turn was refused.
func (p *permits) executing(e alarm.Entry) bool {
	o := storage.Object{ID: storage.ID{Class: e.Class, Name: e.Name}, Shard: e.Shard, Number: storage.Number(e.Object)}
	_, open, err := p.host.store.Open(o)
	return open || err != nil // the turn will meet the error too
}

// put adds an alarm to the line. The caller holds the mutex.
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

// serve reserves permits for the first in line. The caller holds the mutex, and lets
// the alarms fly that it returns.
func (p *permits) serve() (due []alarm.Entry) {
	now := p.host.seams.Steady()
	for len(p.waiting) > 0 && p.free(now) {
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

// arm has the line served when the start rate lets the first of it go. Without that,
// the next permit that is given back serves it. The caller holds the mutex.
func (p *permits) arm() {
	if p.closed || p.timer != nil || len(p.waiting) == 0 || p.limit.AtOnce > 0 && p.taken >= p.limit.AtOnce {
		return
	}
	wait := p.startsAt().Sub(p.host.seams.Steady())
	p.timer = p.host.seams.Clock.AfterFunc(wait, p.ring)
}

// ring serves the line.
func (p *permits) ring() { p.fly(p.rung()) }

func (p *permits) rung() []alarm.Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	return p.serve()
}

// fly has alarms handled that the scheduler has let go of.
func (p *permits) fly(due []alarm.Entry) {
	for len(due) > 0 {
		n := min(len(due), flightSize)
		p.host.fly(due[:n:n], true)
		due = due[n:]
	}
}

// close forgets the line. The alarms stay stored, and fire after the next Open.
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

// awaited reports whether the object waits for a permit.
func (p *permits) awaited(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, refused := p.refused[name]
	return refused || p.waiting[name] != nil
}
