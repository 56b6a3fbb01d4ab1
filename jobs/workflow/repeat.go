package workflow

import "slices"

// A repeat of several scopes has two parts. First each of them reads its entries, and then what is
// new begins. If a branch began a step while another had still to read, that one might find that the
// code does not follow the history, when an entry of the changed code is already stored: then
// neither the code of before nor that of now could follow it, and no deploy would heal the run.
//
// A scope that is at the end of its entries parks before its next operation until all other
// scopes are there. No scope needs an operation that is new to get to the end of its entries, because
// all that it depended on was recorded before them. Changed code may: for example, a branch of an
// Each goes on with a new step, and keeps the lane from a later branch that has entries. So the
// second part also begins once all tasks are parked.
//
// The scopes begin the second part one after another, in the order in which they came to it. It is
// the order of a run without a crash, so the same branch of an Each fails first. For that the last
// one to come parks too: each that goes on wakes the next.

// awaitRepeats returns when it is the scope's place to begin the second part of a repeat. The scope
// is at the end of its entries. It reports whether no operation may begin, as restless does.
func (c *Context) awaitRepeats() (restless bool) {
	s := c.s
	s.mu.Lock()
	waits := s.unread > 0 || s.passing
	restless = s.hold || s.closing()
	s.mu.Unlock()
	if !waits {
		return restless
	}
	s.park(&waiter{ready: make(chan struct{}), repeats: c.sc})
	s.pass()
	return s.restless()
}

// pass wakes the next scope that is parked in awaitRepeats.
func (s *stretch) pass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passLocked()
}

// passLocked is pass of a caller that holds s.mu.
func (s *stretch) passLocked() {
	i := slices.IndexFunc(s.waiters, func(w *waiter) bool { return w.repeats != nil })
	s.passing = i >= 0
	if s.passing {
		s.wake(s.waiters[i])
	}
}

// hasRead notes that a scope reads no further entry.
func (s *stretch) hasRead(sc *scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hasReadLocked(sc)
}

// hasReadLocked is hasRead of a caller that holds s.mu.
func (s *stretch) hasReadLocked(sc *scope) {
	if !sc.unread {
		return
	}
	sc.unread = false
	if s.unread == 0 { // the second part has begun without it
		return
	}
	if s.unread--; s.unread == 0 {
		s.repeated()
	}
}

// parksAtEnd is hasRead of a scope that is about to wait for its branches, if it has no entry
// behind that wait.
func (c *Context) parksAtEnd() {
	if c.sc.reader.Peek() == nil {
		c.s.hasRead(c.sc)
	}
}

// repeated begins the second part. The caller holds s.mu.
func (s *stretch) repeated() {
	s.unread = 0
	s.passLocked()
}
