package object

import (
	"context"
	"sync"
	"time"
)

// limited is the context of a section with a limit of time. The context that can
// be cancelled is made by the first call of Done, because most sections never
// call it and would pay for it with ten allocations.
type limited struct {
	context.Context // that of the turn
	at              time.Time

	mu     sync.Mutex
	made   context.Context // nil: nothing has asked for Done
	cancel context.CancelCauseFunc
	ended  bool // the section has returned
}

// Deadline is the limit, or the earlier deadline of the turn's context.
func (l *limited) Deadline() (time.Time, bool) {
	if at, ok := l.Context.Deadline(); ok && at.Before(l.at) {
		return at, true
	}
	return l.at, true
}

// Done is closed when the turn's context ends, at the limit, and when the section
// has returned.
func (l *limited) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.make().Done()
}

// make returns the context that can be cancelled. The caller holds the lock.
func (l *limited) make() context.Context {
	if l.made == nil {
		l.made, l.cancel = context.WithCancelCause(l.Context)
		if l.ended {
			l.cancel(context.Canceled)
		}
	}
	return l.made
}

// Err tells whether Done is closed, and if so why.
func (l *limited) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.made != nil:
		return l.made.Err()
	case l.ended:
		return context.Canceled
	}
	return l.Context.Err()
}

// Value is that of the turn's context. The keys of package context lead to the
// context that can be cancelled.
func (l *limited) Value(key any) any {
	l.mu.Lock()
	made := l.made
	l.mu.Unlock()
	if made != nil {
		return made.Value(key)
	}
	return l.Context.Value(key)
}

// expire ends the context at its limit.
func (l *limited) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.make()
	l.cancel(ErrTimeout)
}

// end ends the context when its section has returned.
func (l *limited) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.made != nil {
		l.cancel(context.Canceled)
	}
}
