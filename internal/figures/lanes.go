package main

import (
	"context"
	"slices"
	"sync"
)

// lanes are the cores that jobs run on. Jobs get them in the order in which they
// asked, also one that wants more than one.
type lanes struct {
	mu    sync.Mutex
	free  int
	queue []*waiter
}

type waiter struct {
	width int
	ready chan struct{} // closed when the lanes are its own
}

// take waits for lanes.
func (l *lanes) take(ctx context.Context, width int) error {
	w := &waiter{width, make(chan struct{})}
	l.mu.Lock()
	l.queue = append(l.queue, w)
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
	for len(l.queue) > 0 && l.queue[0].width <= l.free {
		w := l.queue[0]
		l.queue = l.queue[1:]
		l.free -= w.width
		close(w.ready)
	}
}
