package object

import (
	"sync"

	"github.com/holdfast-dev/holdfast/storage"
)

// runway lets alarms that are due go to the crew in portions, one when the one
// before has begun. While a call from outside is under way, a sync of the log
// passes first: so a call waits for the handlers of a portion or two and not for
// those of all alarms that are due, and alarms go on at each sync, however busy
// the calls are. With no call under way nothing is waited for.
//
// A portion has begun, not ended: handlers that wait hold up no other.
type runway struct {
	crew *crew
	log  syncer
	life *life

	mu      sync.Mutex
	waiting queue
	open    bool // a portion is in the crew's queue, and the runway behind it

	// Of the latest portion. Whoever opens the runway, and then the runner
	// behind the portion, owns them.
	portion []runner
	before  storage.Ticket // the newest commit before it
}

// portionSize is the most alarms of a portion. They take about a third of a millisecond
// of two processors, if their objects must be read first.
const portionSize = 16

// syncer is what a runway sees of the store.
type syncer interface {
	Applied() storage.Ticket
	WaitDurable(storage.Ticket) error
}

// add puts alarms at the end of those that wait.
func (w *runway) add(rs []runner) {
	w.mu.Lock()
	w.waiting.runners = append(w.waiting.runners, rs...)
	closed := !w.open
	w.open = true
	w.mu.Unlock()
	if closed {
		w.release()
	}
}

// run is what the crew comes to when it has begun a portion.
func (w *runway) run() {
	if w.life.calls() > 0 && w.more() {
		_ = w.log.WaitDurable(w.before) // a dead store ends the alarms by themselves
	}
	w.release()
}

// more reports whether alarms wait.
func (w *runway) more() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.waiting.empty()
}

// release gives the next portion to the crew, and the runway behind it.
func (w *runway) release() {
	if w.next() {
		w.before = w.log.Applied()
		w.portion = append(w.portion, w)
		w.crew.addAlarms(w.portion)
	}
}

// next takes the next portion from those that wait. If there is none it closes
// the runway and reports false.
func (w *runway) next() bool {
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
