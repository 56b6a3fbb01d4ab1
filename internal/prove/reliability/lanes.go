package main

import (
	"context"
	"slices"
	"sync"
)

// lanes are the cores that jobs run on. Jobs get them by their rank, and those of
// the same rank in the order in which they asked. None is passed by because it
// wants more than one.
type lanes struct {
	ranks int // none gets a lane before so many ranks have asked, so that the first come first

	mu    sync.Mutex // guards the fields below
	asked map[int]bool
	free  int
	queue []*waiter // by rank
}

type waiter struct {
	rank, width int
	ready       chan struct{} // closed when the lanes are its own
}

// take waits for lanes. A lower rank goes first.
func (l *lanes) take(ctx context.Context, rank, width int) error {
	w := &waiter{rank, width, make(chan struct{})}
	l.mu.Lock()
	if l.asked == nil {
		l.asked = map[int]bool{}
	}
	l.asked[rank] = true
	at := slices.IndexFunc(l.queue, func(o *waiter) bool { return o.rank > rank })
	if at < 0 {
		at = len(l.queue)
	}
	l.queue = slices.Insert(l.queue, at, w)
	l.serve()
	l.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	i := slices.Index(l.queue, w)
	if i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
		l.serve()
	}
	l.mu.Unlock()
	if i < 0 { // it was served meanwhile
		l.give(width)
	}
	return context.Cause(ctx)
}

// give gives lanes back.
func (l *lanes) give(width int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free += width
	l.serve()
}

// serve starts those at the head of the queue. The caller holds mu.
func (l *lanes) serve() {
	for len(l.asked) >= l.ranks && len(l.queue) > 0 && l.queue[0].width <= l.free {
		w := l.queue[0]
		l.queue = l.queue[1:]
		l.free -= w.width
		close(w.ready)
	}
}
