package workflow

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

// awaitRepeats returns when the second part of a repeat has begun. The scope is at the end of its
// entries. It reports whether no operation may begin, as restless does.
func (c *Context) awaitRepeats() (restless bool) {
	s := c.s
	s.mu.Lock()
	s.hasReadLocked(c.sc)
	waits := s.unread > 0
	restless = s.hold || s.closing()
	s.mu.Unlock()
	if !waits {
		return restless
	}
	s.park(&waiter{ready: make(chan struct{}), repeats: true})
	return s.restless()
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
	s.wakeAll(func(w *waiter) bool { return w.repeats })
}
