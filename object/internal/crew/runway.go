package crew

import (
	"sync"

	"github.com/holdfast-dev/holdfast/storage"
)

// Runway lets alarms that are due go to the crew in portions, one when the one
// before has begun. While a call from outside is under way, a sync of the log
// passes first: so a call waits for the handlers of a portion or two and not for
// those of all alarms that are due, and alarms go on at each sync, however busy
// the calls are. With no call under way nothing is waited for.
//
// A portion has begun when each of its alarms was taken by a goroutine of the crew. The
// next one does not wait for their ends, so a handler that waits holds up no other.
type Runway struct {
	crew  *Crew
	log   Log
	calls func() int64 // how many calls from outside are under way

	mu      sync.Mutex
	waiting queue // alarms in no portion yet; guarded by mu
	open    bool  // a portion is in the crew's queue, and the runway behind it; guarded by mu

	// The latest portion. The goroutine that opens the runway owns these fields, and
	// after it the one that runs the runway behind the portion.
	portion []Runner
	before  storage.Ticket // the newest commit before it
}

// portionSize is the most alarms of a portion. They take about a third of a millisecond
// of two processors, if their objects must be read first.
const portionSize = 16

// Log is the part of the store that a Runway and AfterDurable need.
type Log interface {
	// Applied is the ticket of the newest commit.
	Applied() storage.Ticket
	// Durable reports whether a commit is durable.
	Durable(storage.Ticket) bool
	// WaitDurable returns when a commit is durable.
	WaitDurable(storage.Ticket) error
}

// NewRunway returns a closed runway. calls tells how many calls from outside are under
// way.
func NewRunway(c *Crew, log Log, calls func() int64) *Runway {
	return &Runway{crew: c, log: log, calls: calls}
}

// Add puts alarms at the end of those that wait, and opens the runway if it is closed.
// Any goroutine may call it.
func (w *Runway) Add(rs []Runner) {
	w.mu.Lock()
	w.waiting.runners = append(w.waiting.runners, rs...)
	closed := !w.open
	w.open = true
	w.mu.Unlock()
	if closed {
		w.release()
	}
}

// Run is called by the crew when all of a portion have begun.
func (w *Runway) Run() {
	if w.calls() > 0 && w.more() {
		_ = w.log.WaitDurable(w.before) // a dead store ends the alarms by themselves
	}
	w.release()
}

// more reports whether alarms wait. Run asks, because without them it need not wait.
func (w *Runway) more() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.waiting.empty()
}

// release gives the next portion to the crew, and the runway behind it, so that the crew
// calls Run when the portion has begun.
func (w *Runway) release() {
	if w.next() {
		w.before = w.log.Applied()
		w.portion = append(w.portion, w)
		w.crew.addAlarms(w.portion)
	}
}

// next takes the next portion from those that wait. If there is none it closes
// the runway and reports false.
func (w *Runway) next() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.portion)
	w.portion = w.portion[:0]
	for len(w.portion) < portionSize && !w.waiting.empty() {
		w.portion = append(w.portion, w.waiting.take())
	}
	w.open = len(w.portion) > 0
	return w.open
}
