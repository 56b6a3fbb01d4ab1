package alarm

import "slices"

// shard is the part of one shard that a Scheduler has in memory. While it is started,
//
//	every stored entry at or before bound is in nodes,
//	every node is at or before bound, or in flight.
//
// "Stored" leaves out commits that have not been reported yet. Entries after
// bound are on disk only. The bound starts at origin, rises with each read, and
// falls when nodes are dropped for want of room.
type shard struct {
	no      int
	started bool
	life    uint64 // number of this start; a read for an earlier one is void
	bound   pos
	nodes   map[uint64]*node // by object; in flight ones also while stopped
	held    int              // nodes that are waiting or queued
	thirsty bool             // is in Scheduler.thirsty
}

func (s *Scheduler) start(sh *shard) {
	if sh.started || s.stopped {
		return
	}
	sh.started = true
	sh.life++
	sh.bound = origin
	if sh.nodes == nil {
		sh.nodes = make(map[uint64]*node)
	}
	s.wantMore(sh)
}

func (s *Scheduler) stop(sh *shard) {
	if !sh.started {
		return
	}
	sh.started = false
	for _, n := range sh.nodes {
		n.changed = true // perhaps, because changes are not reported from now on
		s.forget(sh, n)
	}
	if sh.thirsty {
		sh.thirsty = false
		s.thirsty = slices.DeleteFunc(s.thirsty, func(t *shard) bool { return t == sh })
	}
}

// place makes e the entry of its object, which has the node n: in memory if it is within
// the bound or its object is in flight, and otherwise nowhere, because the disk has
// it.
func (s *Scheduler) place(sh *shard, n *node, e *Entry) {
	p := posOf(e)
	switch {
	case n != nil && n.in == inFlight:
		if n.next == nil {
			n.next = s.alloc()
		}
		n.next.Entry, n.next.pos = *e, p
	case p.after(sh.bound):
		if n != nil {
			s.forget(sh, n)
		}
	case n != nil && n.in == waiting:
		n.Entry, n.pos = *e, p
		s.line.fix(n.slot)
	case n != nil:
		s.due.remove(n)
		n.Entry, n.pos = *e, p
		s.line.push(n)
	default:
		n = s.alloc()
		n.Entry, n.pos = *e, p
		s.hold(sh, n)
	}
}

// flown returns the node of e if e is in flight, or nil.
func (sh *shard) flown(e *Entry) *node {
	n := sh.nodes[e.Object]
	if n == nil || n.in != inFlight || n.Gen != e.Gen || n.pos != posOf(e) {
		return nil
	}
	return n
}

// note keeps in mind that a Set or Clear of the object has been reported, and
// returns the object's node, or nil.
func (s *Scheduler) note(sh *shard, object uint64) *node {
	s.touch(sh, object)
	n := sh.nodes[object]
	if n != nil {
		n.changed = true
	}
	return n
}

// hold makes n, which is in no place yet, the waiting node of its object.
func (s *Scheduler) hold(sh *shard, n *node) {
	sh.nodes[n.Object] = n
	sh.held++
	s.line.push(n)
	s.trim(sh)
}

// forget drops n's object from memory, except that it is in flight.
func (s *Scheduler) forget(sh *shard, n *node) {
	switch n.in {
	case inFlight:
		if n.next != nil {
			s.release(n.next)
			n.next = nil
		}
		return
	case waiting:
		s.line.remove(n)
	case queued:
		s.due.remove(n)
	}
	delete(sh.nodes, n.Object)
	s.release(n)
	sh.held--
	s.wantMore(sh)
}

// land takes n out of flight; the entry that was set meanwhile takes its place.
func (s *Scheduler) land(sh *shard, n *node) {
	next := n.next
	n.next = nil
	delete(sh.nodes, n.Object)
	s.release(n)
	s.flying--
	switch {
	case next == nil:
	case next.pos.after(sh.bound):
		s.release(next)
	default:
		s.touch(sh, next.Object)
		s.hold(sh, next)
	}
}

// trim makes room in a shard that holds more than twice the look-ahead: the
// latest nodes go, and the bound falls to the last one that stays.
func (s *Scheduler) trim(sh *shard) {
	keep := s.cfg.LookAhead
	if sh.held <= 2*keep {
		return
	}
	all := s.sorted[:0]
	for _, n := range sh.nodes {
		if n.in != inFlight {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b *node) int { return a.pos.compare(b.pos) })
	sh.bound = earlier(sh.bound, all[keep-1].pos)
	for _, n := range all[keep:] {
		s.forget(sh, n)
	}
	s.sorted = all[:0]
}

// alloc returns a node that is nowhere.
func (s *Scheduler) alloc() *node {
	n := s.free
	if n == nil {
		return new(node)
	}
	s.free = n.succ
	n.succ = nil
	return n
}

func (s *Scheduler) release(n *node) {
	*n = node{succ: s.free}
	s.free = n
}
