package object

import (
	"sync"

	"github.com/holdfast-dev/holdfast/storage"
)

// durably is what has to be done once a commit is durable, and has no task of its
// own that waits. One wait serves all that have come.
type durably struct {
	host *Host

	mu    sync.Mutex
	steps []step
	busy  bool // a task serves steps
}

// step is short: it neither waits nor runs user code. err is not nil if the store
// has failed and the commit may be lost.
type step struct {
	after storage.Ticket
	do    func(err error)
}

// then does a step when its commit is durable, at once if it is.
func (d *durably) then(after storage.Ticket, do func(err error)) {
	if d.host.store.Durable(after) {
		do(nil)
		return
	}
	d.mu.Lock()
	d.steps = append(d.steps, step{after, do})
	serve := !d.busy
	d.busy = true
	d.mu.Unlock()
	if serve {
		d.host.crew.add(d)
	}
}

// run serves the steps until there are none.
func (d *durably) run() {
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
		err := d.host.store.WaitDurable(last)
		for _, s := range steps {
			s.do(err)
		}
	}
}
