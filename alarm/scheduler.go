package alarm

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// Scheduler hands the entries of a time index to Fire when they are due.
//
// It must learn of every change of the index, the removal of a fired alarm
// among them: the host calls Set or Clear after each commit that wrote or
// removed an entry, for one object in the order of its commits, and before it
// reports the Done of a fired entry to which the commit belongs.
//
// An entry is never fired before its time by the clock, and an object that is in
// flight is not fired again before its Done. An entry may be fired although it
// has just been changed; the host tells by the generation, and does nothing but
// Done. Nothing that was reported, or stored at the start of its shard, is lost.
//
// Due entries wait in one queue per class, and the classes take turns. In
// memory are at most 2 × LookAhead entries a shard, two for each slot in flight
// (the fired one and its successor), and one read. The classes take turns among
// the entries in memory: an entry behind more overdue ones of its shard than that
// waits on disk until the earlier ones have been fired.
//
// All methods may be called from any goroutine, and from Fire unless they say
// otherwise. They hold a lock for a short time, and never read the index.
type Scheduler struct {
	cfg Config

	mu      sync.Mutex // guards all below; held for no wait, no read, no Fire
	shards  []shard
	line    timeline // the waiting nodes of all shards
	due     fair     // the queued nodes of all shards
	flying  int      // nodes in flight, ≤ cfg.InFlight
	free    *node    // nodes to use again, linked by succ
	thirsty []*shard // shards to read next, each once
	reading reading

	// timer, if there is one, calls ring no later than the first of line is due:
	//
	//	timer == nil  or  timerAt ≤ line[0].pos.at
	timer   seam.Timer
	timerAt int64
	timerNo uint64 // number of the current timer; others ring in vain

	pumping bool          // the pump task exists; it leaves nothing undone
	stopped bool          // never false again
	err     error         // why it stopped by itself
	ended   chan struct{} // closed when the pump of a stopped scheduler has ended

	batch  []Entry // of the pump
	sorted []*node // of trim
}

// NewScheduler returns a Scheduler with all shards stopped, or an error if
// cfg is unfit.
func NewScheduler(cfg Config) (*Scheduler, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Scheduler{cfg: cfg.withDefaults(), ended: make(chan struct{})}
	s.shards = make([]shard, cfg.Shards)
	for i := range s.shards {
		s.shards[i].no = i
	}
	return s, nil
}

// Start starts all shards.
func (s *Scheduler) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.shards {
		s.start(&s.shards[i])
	}
	s.settle()
}

// StartShard begins to read and fire the entries of one shard. It does nothing
// if the shard is started.
func (s *Scheduler) StartShard(no int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start(&s.shards[no])
	s.settle()
}

// StopShard forgets the entries of one shard; no call of Fire that begins
// afterwards has one of them. Those in flight keep their slots until Done.
func (s *Scheduler) StopShard(no int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop(&s.shards[no])
	s.settle()
}

// Set reports that a commit wrote e, in place of any earlier entry of the object.
func (s *Scheduler) Set(e Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := &s.shards[e.Shard]
	if !sh.started {
		return
	}
	s.place(sh, s.note(sh, e.Object), &e)
	s.settle()
}

// Clear reports that a commit removed the entry of an object, if it had one.
func (s *Scheduler) Clear(shard int, object uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := &s.shards[shard]
	if !sh.started {
		return
	}
	if n := s.note(sh, object); n != nil {
		s.forget(sh, n)
		s.settle()
	}
}

// Done reports that the host has finished with a fired entry, after the Set or
// Clear of the change that it committed for it. If the entry is still stored then, it is
// not fired again before its next Set, or the next start of its shard. An entry
// that is not in flight is ignored.
func (s *Scheduler) Done(e Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := &s.shards[e.Shard]
	if n := sh.flown(&e); n != nil {
		s.land(sh, n)
		s.settle()
	}
}

// Return is Done for a fired entry that the host could not take on: if its
// object's alarm has not been set or cleared meanwhile, it is fired again, at
// once. A host that is short of something waits before it returns an entry.
func (s *Scheduler) Return(e Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh := &s.shards[e.Shard]
	n := sh.flown(&e)
	if n == nil {
		return
	}
	if sh.started && !n.changed {
		s.place(sh, n, &e)
	}
	s.land(sh, n)
	s.settle()
}

// Recheck looks at the clock now, without waiting for a timer.
func (s *Scheduler) Recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
}

// Stop stops all shards for good, and returns when no Fire and no read of the
// Source is under way. It must not be called from Fire or from the Source.
func (s *Scheduler) Stop() {
	s.mu.Lock()
	s.halt(nil)
	idle := !s.pumping
	s.mu.Unlock()
	if !idle {
		_ = s.cfg.Seams.Executor.Wait(context.Background(), s.ended) // no context to end it
	}
}

// halt stops the shards for good. The first cause given is kept.
func (s *Scheduler) halt(cause error) {
	if s.stopped {
		return
	}
	for i := range s.shards {
		s.stop(&s.shards[i])
	}
	s.stopped, s.err = true, cause
	s.disarm()
}

// Stats is a view of a Scheduler at one moment.
type Stats struct {
	Held     int           // entries in memory and not in flight
	Queued   int           // those of Held that are due and wait for a slot
	InFlight int           // entries fired and not done
	Next     time.Time     // time of the earliest entry held; zero if there is none
	Lag      time.Duration // how long ago that was; zero if it is yet to come
}

// Stats returns the current figures. Entries that are not in memory are later
// than those of their shard that are.
func (s *Scheduler) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Stats{Held: len(s.line) + s.due.len, Queued: s.due.len, InFlight: s.flying}
	at, ok := s.due.oldest()
	if len(s.line) > 0 && (!ok || s.line[0].pos.at < at) {
		at, ok = s.line[0].pos.at, true
	}
	if ok {
		st.Next = time.Unix(0, at).UTC()
		st.Lag = max(0, time.Duration(s.now()-at))
	}
	return st
}

func (s *Scheduler) now() int64 { return Nanos(s.cfg.Seams.Clock.Now()) }
