package pglog

import (
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// hand is a clock that only the test moves, so no statement is late before the test says so. Its time is far in the future, because the
// network compares deadlines with the time of the machine.
type hand struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*ring]bool
}

// ring is a timer of a hand.
type ring struct {
	clock *hand
	at    time.Time
	f     func()
}

func newHand() *hand {
	return &hand{now: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), timers: make(map[*ring]bool)}
}

func (h *hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) Steady() time.Time { return h.Now() }

func (h *hand) AfterFunc(d time.Duration, f func()) seam.Timer {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &ring{h, h.now.Add(d), f}
	h.timers[r] = true
	return r
}

// Stop implements seam.Timer.
func (r *ring) Stop() bool {
	r.clock.mu.Lock()
	defer r.clock.mu.Unlock()
	waits := r.clock.timers[r]
	delete(r.clock.timers, r)
	return waits
}

// pass moves the clock on and rings the timers that are due.
func (h *hand) pass(d time.Duration) {
	h.mu.Lock()
	h.now = h.now.Add(d)
	var due []*ring
	for r := range h.timers {
		if !r.at.After(h.now) {
			due = append(due, r)
			delete(h.timers, r)
		}
	}
	h.mu.Unlock()
	for _, r := range due {
		r.f()
	}
}

// handTimers is the clock of the machine, but its timers ring by a hand.
type handTimers struct {
	seam.Clock
	hand *hand
}

func (h handTimers) AfterFunc(d time.Duration, f func()) seam.Timer { return h.hand.AfterFunc(d, f) }
