package machine

import (
	"container/heap"
	"time"
)

// timer runs a function of a process at a time. It is in the heap while its
// index is not negative.
type timer struct {
	m     *Machine
	proc  *Process
	at    time.Time
	seq   uint64
	f     func()
	index int
	late  bool // it has been made late

	// wall is the time of the wall clock at which a timer of AtFunc rings; zero for any other.
	wall time.Time
	set  time.Time     // when AtFunc set it, by Now
	look time.Duration // how often its owner would look at the wall clock
}

// after adds a timer. Its time is never in the past.
func (m *Machine) after(p *Process, d time.Duration, f func()) *timer {
	m.seq++
	t := &timer{m: m, proc: p, at: m.now.Add(max(d, 0)), seq: m.seq, f: f}
	heap.Push(&m.timers, t)
	return t
}

// AfterFunc runs f once, as a task outside of every process, when d has passed.
func (m *Machine) AfterFunc(d time.Duration, f func()) { m.after(nil, d, f) }

// afterWall adds a timer that rings when the wall clock of processes shows at.
func (m *Machine) afterWall(p *Process, at time.Time, look time.Duration, f func()) *timer {
	t := m.after(p, at.Sub(m.now.Add(m.skew)), f)
	t.wall, t.set, t.look = at, m.now, look
	return t
}

// follow moves a timer of AtFunc after a jump of the wall clock: to the moment at which
// that shows its time, or to the next look of its owner if the clock has jumped beyond it.
func (t *timer) follow() {
	if t.wall.IsZero() || t.late {
		return
	}
	now := t.m.now
	if at := t.wall.Add(-t.m.skew); at.After(now) {
		t.at = at
		return
	}
	looks := now.Sub(t.set) / t.look // until now
	if next := t.set.Add((looks + 1) * t.look); next.Before(t.at) {
		t.at = next
	}
}

// Stop implements seam.Timer.
func (t *timer) Stop() bool {
	t.m.Own()
	if t.index < 0 {
		return false
	}
	heap.Remove(&t.m.timers, t.index)
	return true
}

// fire makes a task of each timer that is due, in the order of time.
func (m *Machine) fire() {
	for len(m.timers) > 0 && !m.timers[0].at.After(m.now) {
		t := heap.Pop(&m.timers).(*timer)
		if m.lags(t) {
			continue
		}
		m.ready = append(m.ready, &task{name: "timer", proc: t.proc, f: t.f})
	}
}

// lags puts a timer that is due back, once, if it is to be late.
func (m *Machine) lags(t *timer) bool {
	if t.proc == nil || t.late || m.cfg.OnTimer == nil {
		return false
	}
	by := m.cfg.OnTimer(t.proc)
	if by <= 0 {
		return false
	}
	t.late, t.at = true, m.now.Add(by)
	heap.Push(&m.timers, t)
	return true
}

// timerHeap orders timers by time, then by when they were set.
type timerHeap []*timer

func (h timerHeap) next() (time.Time, bool) {
	if len(h) == 0 {
		return time.Time{}, false
	}
	return h[0].at, true
}

// drop removes the timers of p.
func (h *timerHeap) drop(p *Process) {
	kept := (*h)[:0]
	for _, t := range *h {
		if t.proc == p {
			t.index = -1
			continue
		}
		t.index = len(kept)
		kept = append(kept, t)
	}
	clear((*h)[len(kept):])
	*h = kept
	heap.Init(h)
}

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].seq < h[j].seq
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.index = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	t := (*h)[len(*h)-1]
	(*h)[len(*h)-1] = nil
	*h = (*h)[:len(*h)-1]
	t.index = -1
	return t
}
