package crew

import (
	"sync"

	"github.com/holdfast-dev/holdfast/storage"
)

// AfterDurable does steps once a commit is durable, for callers that have no goroutine
// that could wait. One wait serves all steps that have come.
type AfterDurable struct {
	crew *Crew
	log  Log

	mu    sync.Mutex
	steps []step // that have come since Run took the last ones; guarded by mu
	busy  bool   // Run is in the crew's queue or running; guarded by mu
}

// step is a call of Do.
type step struct {
	after storage.Ticket
	do    func(err error)
}

// NewAfterDurable returns an AfterDurable without steps. It runs them on c and asks log.
func NewAfterDurable(c *Crew, log Log) *AfterDurable { return &AfterDurable{crew: c, log: log} }

// Do calls do when the commit after is durable: at once if it is already, and otherwise
// on a goroutine of the crew. do must neither wait nor run user code. Its err is not
// nil if the store has failed, so that the commit may be lost. Any goroutine may call Do.
// The order of steps is kept, except for one that is durable already.
func (d *AfterDurable) Do(after storage.Ticket, do func(err error)) {
	if d.log.Durable(after) {
		do(nil)
		return
	}
	d.mu.Lock()
	d.steps = append(d.steps, step{after, do})
	serve := !d.busy
	d.busy = true
	d.mu.Unlock()
	if serve {
		d.crew.Add(d)
	}
}

// Run does the steps until there are none. It takes all that have come, waits once for
// the newest commit among them, and does them in order; the steps that come meanwhile
// are the next round. The crew calls it, and busy keeps a second one from the queue.
func (d *AfterDurable) Run() {
	var steps []step
	for {
		clear(steps)
		d.mu.Lock()
		steps, d.steps = d.steps, steps[:0]
		d.busy = len(steps) > 0
		d.mu.Unlock()
		if len(steps) == 0 {
			return
		}
		var last storage.Ticket
		for _, s := range steps {
			last = max(last, s.after)
		}
		err := d.log.WaitDurable(last)
		for _, s := range steps {
			s.do(err)
		}
	}
}
