package alarm

import "fmt"

// reading is the one read of the index that is under way.
//
// While a shard is read its bound is end, as if all were in memory already: changes
// that are reported meanwhile are held, because the read may have passed their place on
// disk. When the read is back, the changes that memory has learned since it began win.
type reading struct {
	shard   *shard // nil: none is under way
	life    uint64 // of the shard when the read began
	from    pos    // the bound then
	touched map[uint64]struct{}
	spoiled bool // too much was touched; the read is made again
}

// maxTouched bounds reading.touched, for a read that hangs while turns go on.
const maxTouched = 1 << 16

// touch notes that memory knows more of an object than the read under way.
func (s *Scheduler) touch(sh *shard, object uint64) {
	r := &s.reading
	if r.shard != sh || r.spoiled {
		return
	}
	r.touched[object] = struct{}{}
	if len(r.touched) >= maxTouched {
		r.spoiled = true
	}
}

// wantMore queues a shard for reading when it runs out of nodes and the disk may
// have more. The rest of its nodes cover the time until it is read.
func (s *Scheduler) wantMore(sh *shard) {
	low := s.cfg.LookAhead / 4
	if sh.held > low || sh.bound == end || sh.thirsty || !sh.started || s.reading.shard == sh {
		return
	}
	sh.thirsty = true
	s.thirsty = append(s.thirsty, sh)
}

// refill reads the shard that has waited longest, and reports whether there was one.
func (s *Scheduler) refill() bool {
	s.mu.Lock()
	sh, after := s.beginRead()
	s.mu.Unlock()
	if sh == nil {
		return false
	}
	limit := s.cfg.LookAhead
	rows, err := s.cfg.Source.Scan(sh.no, after, limit)
	if err == nil {
		err = check(rows, sh.no, after, limit)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endRead(rows, err)
	return true
}

func (s *Scheduler) beginRead() (*shard, Position) {
	if len(s.thirsty) == 0 {
		return nil, Position{}
	}
	sh := s.thirsty[0]
	s.thirsty = append(s.thirsty[:0], s.thirsty[1:]...)
	sh.thirsty = false
	r := &s.reading
	r.shard, r.life, r.from, r.spoiled = sh, sh.life, sh.bound, false
	if r.touched == nil {
		r.touched = make(map[uint64]struct{})
	}
	sh.bound = end
	return sh, r.from.position()
}

// endRead takes in the rows of a read and sets the bound to the time that is known now.
func (s *Scheduler) endRead(rows []Entry, err error) {
	r := &s.reading
	sh := r.shard
	r.shard = nil
	defer r.forget()
	switch {
	case !sh.started || sh.life != r.life:
		s.wantMore(sh)
		return
	case err != nil:
		s.halt(fmt.Errorf("alarm: scan shard %d: %w", sh.no, err))
		return
	}
	known := end
	if r.spoiled {
		rows, known = nil, r.from
	} else if len(rows) == s.cfg.LookAhead {
		known = posOf(&rows[len(rows)-1])
	}
	s.lower(sh, known)
	for i := range rows {
		s.takeIn(sh, &rows[i])
	}
	s.wantMore(sh)
}

// lower brings the bound back to the time that a read has shown. The only nodes beyond it
// are those reported during the read.
func (s *Scheduler) lower(sh *shard, known pos) {
	sh.bound = earlier(sh.bound, known)
	if s.reading.spoiled {
		s.dropBeyond(sh)
		return
	}
	for object := range s.reading.touched {
		if n := sh.nodes[object]; n != nil && n.in != inFlight && n.pos.after(sh.bound) {
			s.forget(sh, n)
		}
	}
}

// dropBeyond drops every node that is beyond the bound.
func (s *Scheduler) dropBeyond(sh *shard) {
	for _, n := range sh.nodes {
		if n.in != inFlight && n.pos.after(sh.bound) {
			s.forget(sh, n)
		}
	}
}

// takeIn takes in a row of a read, unless memory knows more of its object. The row of
// an untouched object is at least as new as its node, because a commit is stored
// before it is reported.
func (s *Scheduler) takeIn(sh *shard, e *Entry) {
	if _, touched := s.reading.touched[e.Object]; !touched {
		s.place(sh, sh.nodes[e.Object], e)
	}
}

// forget makes ready for another read, and gives back a map that has grown big.
func (r *reading) forget() {
	if len(r.touched) > 1024 {
		r.touched = nil
	}
	clear(r.touched)
}

// check tells an index that is out of order from one that can be believed.
func check(rows []Entry, shard int, after Position, limit int) error {
	if len(rows) > limit {
		return fmt.Errorf("%w: %d entries for a limit of %d", ErrCorrupt, len(rows), limit)
	}
	previous := pos{Nanos(after.Due), after.Object}
	for i := range rows {
		p := posOf(&rows[i])
		if rows[i].Shard != shard || !p.after(previous) {
			return fmt.Errorf("%w: index entry %d is out of order", ErrCorrupt, rows[i].Object)
		}
		previous = p
	}
	return nil
}
