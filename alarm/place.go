package alarm

import "time"

// Where says where a Scheduler has the entry of an object.
type Where string

// The places of an entry, in the order in which it passes them.
const (
	// Absent: it is not in memory. It is on disk, later than Place.Read, or there is none.
	Absent Where = "absent"
	// Waiting: its time had not come when the scheduler looked at the clock last.
	Waiting Where = "waiting"
	// Queued: it is due and waits for a slot, because Limit entries are in flight.
	Queued Where = "queued"
	// InFlight: it was handed to Fire and is not done.
	InFlight Where = "in flight"
)

// Place tells why the entry of one object is not fired now, or that it is.
type Place struct {
	Where Where     `json:"where"`
	Due   time.Time `json:"due,omitzero"` // of the entry, unless it is absent
	// Before is how many due entries of the class are fired before it, counted up to
	// MaxBefore. Classes is how many classes have due entries and take turns, its own
	// included. Both are zero unless it is queued.
	Before  int `json:"before,omitempty"`
	Classes int `json:"classes,omitempty"`
	// InFlight is how many entries of all classes are in flight, and Limit how many may be.
	InFlight int `json:"inFlight"`
	Limit    int `json:"limit"`
	// Look is the time of day for which the timer was set that looks at the clock next;
	// zero if none is set. If the wall clock has jumped it may be long past, and the timer
	// rings at most Config.Recheck after it was set.
	Look time.Time `json:"look,omitzero"`
	// Read is the time up to which the entries of the shard are in memory, zero if none has
	// been read yet. Later ones are on disk, unless All says that there are none.
	Read time.Time `json:"read,omitzero"`
	All  bool      `json:"all,omitempty"`
}

// MaxBefore is how far Place.Before counts.
const MaxBefore = 1000

// Explain tells where the entry of an object is. It looks at the entries of one shard that
// are in memory, and reads no index. It may be called from any goroutine, also after Stop.
func (s *Scheduler) Explain(shard int, class, name string) Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := Place{Where: Absent, InFlight: s.flying, Limit: s.cfg.InFlight}
	if s.timer != nil {
		p.Look = time.Unix(0, s.timerAt).UTC()
	}
	sh := &s.shards[shard]
	p.Read, p.All = s.inMemory(sh)
	n := sh.nodeOf(class, name)
	if n == nil {
		return p
	}
	p.Due = time.Unix(0, n.pos.at).UTC()
	switch n.in {
	case inFlight:
		p.Where = InFlight
	case waiting:
		p.Where = Waiting
	case queued:
		p.Where, p.Classes = Queued, len(s.due.ring)
		for m := n.prev; m != nil && p.Before < MaxBefore; m = m.prev {
			p.Before++
		}
	}
	return p
}

// inMemory returns the time up to which the stored entries of a shard are in memory, and
// whether all are. While the shard is read its bound is only the hope of the read.
func (s *Scheduler) inMemory(sh *shard) (upTo time.Time, all bool) {
	bound := sh.bound
	if s.reading.shard == sh {
		bound = s.reading.from
	}
	switch {
	case !sh.started || bound == origin:
		return time.Time{}, false
	case bound == end:
		return time.Time{}, true
	}
	return time.Unix(0, bound.at).UTC(), false
}

// nodeOf returns the node of the object with a name, or nil. The map is by number, which a
// caller without a turn does not know, so nodeOf looks at all: at most 2 × LookAhead, and those
// in flight. An object that was deleted and made again may have two for a moment; then it
// returns the one in flight.
func (sh *shard) nodeOf(class, name string) (found *node) {
	for _, n := range sh.nodes {
		if n.Name == name && n.Class == class && (found == nil || n.in == inFlight) {
			found = n
		}
	}
	return found
}
