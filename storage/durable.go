package storage

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A Ticket is a place in the order of commits of one opening of a store. A later
// commit has a greater ticket than each commit it could depend on; a ticket that
// is durable makes all smaller ones durable. The zero Ticket is always durable.
type Ticket uint64

// # How commits become durable
//
// A commit is applied, and thereby visible, long before it is durable. One goroutine
// at a time, the leader, syncs the log for all that wait. The order of events:
//
//  1. Commit applies a batch and takes the next ticket (applied). It does not wait.
//  2. A goroutine that needs a ticket durable calls WaitDurable. If the ticket is
//     durable by now, it returns at once.
//  3. If no leader is at work, the goroutine becomes the leader (join returns nil).
//     Otherwise it becomes a follower: it stands in a list and sleeps on a channel.
//  4. The leader yields (see yielding), notes the newest ticket, syncs the log once, and stores that ticket
//     as durable (lead). The sync covers each batch that was applied before it began,
//     because a ticket is given only after its batch is applied.
//  5. The leader wakes each follower with a ticket that is durable now (pass). The
//     first of the others becomes the next leader; it is woken with lead set. The rest
//     stay in the list, and the next sync serves them.
//  6. A follower that was woken looks again: its ticket is durable, or the store is
//     dead, or it leads (4).
//
// For example, 100 goroutines that commit during one sync share the next one: two syncs
// serve 101 of them. No goroutine exists for this while none waits, and a single caller
// pays for exactly one sync.
//
// A turn that another goroutine runs has a second way in: Follow enrolls its caller,
// which sleeps already, so that it is woken once, when its reply may leave. It calls
// WaitFollowed then.
//
// A failed sync kills the store, and release wakes all followers, which return the
// error. A failure acknowledges no ticket.
//
// Over a log (engine.Fenced) a sync may take minutes, and a caller must be able to leave meanwhile. So a goroutine of the
// store leads there, until no follower is left, and all others follow. A follower that may leave is
// woken without its ticket when it has waited for unknownAfter, or soon after it was in a hurry.
//
// Invariant: while leading is set, a goroutine is in lead, or was woken to lead. So a
// follower never waits without a leader.

// pipeline is the durable pipeline of a store.
type pipeline struct {
	store    *Store
	maxBytes int64
	began    atomic.Uint64 // commits that have begun to be applied, and readers; never less than last
	last     atomic.Uint64 // the newest ticket given out
	durable  atomic.Uint64 // every ticket up to this one is durable
	unsynced atomic.Int64  // bytes applied and not yet durable
	syncing  atomic.Int64  // when the sync under way began, in nanoseconds since 1970; 0: none is
	times    syncTimes
	// confirmed is when the newest sync over a log began that has succeeded, in steady nanoseconds.
	confirmed atomic.Int64
	spare     sync.Pool // of *Follower
	yielding  yielding

	mu        sync.Mutex
	leading   bool   // a leader is at work, or is named and about to wake
	looks     uint32 // how often a sync over a log was seen to take long; guarded by mu
	followers []*Follower
}

// A Follower waits until its ticket is durable, until it is to lead, or until the
// store is dead. The zero value is ready for Follow.
type Follower struct {
	ticket  uint64
	lead    bool          // set before wake, under pipeline.mu
	patient bool          // it waits for the outcome, however long that takes
	hurried bool          // see Hurry; guarded by pipeline.mu
	unknown bool          // it was woken without its ticket; set before wake, under pipeline.mu
	since   uint32        // pipeline.looks when it came
	wake    chan struct{} // one slot
}

// init prepares the pipeline of a store that has no commit yet.
func (p *pipeline) init(s *Store, maxBytes int64) {
	p.store, p.maxBytes, p.yielding = s, maxBytes, newYielding()
	p.spare.New = func() any { return &Follower{wake: make(chan struct{}, 1)} }
}

// applied numbers a commit of n bytes that has just become visible, or a reader.
func (p *pipeline) applied(n int) Ticket {
	p.unsynced.Add(int64(n))
	return Ticket(p.last.Add(1))
}

// Applied is the newest ticket: that of the newest commit, or of a reader after it.
func (s *Store) Applied() Ticket { return Ticket(s.pipeline.last.Load()) }

// Durable reports whether t is known to be durable, without waiting.
func (s *Store) Durable(t Ticket) bool { return s.pipeline.durable.Load() >= uint64(t) }

// Congested reports whether more bytes are applied and not yet durable than
// Options.MaxUnsyncedBytes. A caller that commits without waiting must wait then,
// because the bytes are in memory too.
func (s *Store) Congested() bool { return s.pipeline.unsynced.Load() > s.pipeline.maxBytes }

// WaitDurable returns nil when t and all before it are on disk. After an error,
// which wraps ErrStorage, the commit may or may not survive. The wait is bounded
// by the disk and not by a context, because the caller has to know the outcome.
func (s *Store) WaitDurable(t Ticket) error {
	p := &s.pipeline
	for {
		if err := s.Err(); err != nil {
			return err
		}
		if p.durable.Load() >= uint64(t) {
			return nil
		}
		f := p.join(uint64(t))
		if f != nil {
			// The context never ends, so the wait ends with a wake.
			_ = s.seams.Executor.Wait(context.Background(), f.wake)
			lead := f.lead
			f.lead = false
			p.spare.Put(f)
			if !lead {
				continue
			}
		}
		if err := p.lead(); err != nil {
			return err
		}
	}
}

// Follow is the first half of WaitDurable, on behalf of a task that waits for
// wake already: a value is sent to wake, which has a free slot, when t is durable,
// when the store is dead, or when it is the task's place to sync for others too.
// The task then calls WaitFollowed. Follow returns false and will send nothing if
// t is durable or no goroutine is syncing: the task must be woken to call WaitDurable.
func (s *Store) Follow(f *Follower, t Ticket, wake chan struct{}) bool {
	p := &s.pipeline
	if p.durable.Load() >= uint64(t) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.dead.Load() != nil || p.durable.Load() >= uint64(t) || !p.led() {
		return false
	}
	f.ticket, f.wake, f.since = uint64(t), wake, p.looks
	p.followers = append(p.followers, f)
	return true
}

// Enrolled reports whether Follow has taken the follower.
func (f *Follower) Enrolled() bool { return f.ticket != 0 }

// WaitFollowed is WaitDurable for a task that has got its wake from Follow, or
// that never followed, whose f may be nil. Over a log it returns ErrUnconfirmed if the log has not answered for 10 seconds, or
// for one and ctx has ended.
func (s *Store) WaitFollowed(ctx context.Context, f *Follower, t Ticket) error {
	if s.fenced != nil {
		return s.waitUnconfirmed(ctx, f, t)
	}
	if f != nil && f.lead {
		f.lead = false
		if err := s.pipeline.lead(); err != nil {
			return err
		}
	}
	return s.WaitDurable(t)
}

// WaitSeen returns nil when everything that the caller can have read from the store is
// on disk, also commits of others; its errors are those of WaitFollowed. A commit is
// visible a moment before it has a ticket. So a reader takes a ticket of its own, for
// no change: the sync that covers it begins later than the read did, and serves all
// goroutines that wait. Over a log it always waits, see Seen. On one machine the disk bounds the wait, and not ctx.
func (s *Store) WaitSeen(ctx context.Context) error {
	p := &s.pipeline
	if s.fenced == nil && p.durable.Load() == p.began.Load() {
		return s.Err()
	}
	return s.WaitFollowed(ctx, nil, p.read())
}

// Seen returns the ticket to wait for before anything leaves that depends on t and on reads up to now: a reply,
// or work that begins. It is t, or over a log (engine.Fenced) a reader's ticket after it. The sync of that ticket
// begins after the reads, and shows that no other process had taken the log over by then.
func (s *Store) Seen(t Ticket) Ticket {
	if s.fenced == nil {
		return t
	}
	return s.pipeline.read()
}

// read numbers a reader.
func (p *pipeline) read() Ticket {
	p.began.Add(1)
	return p.applied(0)
}

// join makes the caller the leader, for which it returns nil, or a follower.
func (p *pipeline) join(t uint64) *Follower {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.store.dead.Load() != nil || !p.led() {
		p.leading = true
		return nil
	}
	f := p.spare.Get().(*Follower)
	f.ticket, f.patient = t, true
	p.followers = append(p.followers, f)
	return f
}

// lead syncs once for all commits applied so far and wakes the followers that waited
// for them. It reads the clock before the sync and after it, which is little beside a sync. The first
// is stored, so that Syncing can tell of a disk that hangs: then no goroutine of the store is left
// that could measure it.
func (p *pipeline) lead() error {
	s := p.store
	p.yield()
	s.seams.At("sync/before", "")
	upTo, bytes := p.last.Load(), p.unsynced.Load()
	began := s.seams.Clock.Now()
	p.syncing.Store(began.UnixNano())
	watched, asked := p.watch(), p.asks()
	err := s.syncNow()
	watched.end()
	p.syncing.Store(0)
	p.times.add(s.seams.Clock.Now().Sub(began))
	if err == nil {
		s.seams.At("sync/after", "")
		p.unsynced.Add(-bytes)
		p.confirmed.Store(asked)
		p.durable.Store(upTo)
	}
	p.pass(upTo)
	return err
}

// syncNow is one sync of the engine. Its failure is the end of the store.
func (s *Store) syncNow() error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.exit()
	if err := s.syncWitnessed(); err != nil {
		return s.fail(err)
	}
	return nil
}

// pass wakes the followers with durable tickets and makes the first of the others the
// next leader.
func (p *pipeline) pass(upTo uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rest := p.followers[:0]
	var next *Follower
	for _, f := range p.followers {
		switch {
		case f.ticket <= upTo:
			f.wake <- struct{}{}
		case next == nil && p.store.fenced == nil:
			next = f
		default:
			rest = append(rest, f)
		}
	}
	clear(p.followers[len(rest):])
	p.followers = rest
	if p.store.fenced != nil {
		return // leadAll goes on
	}
	p.leading = next != nil
	if next != nil {
		next.lead = true
		next.wake <- struct{}{}
	}
}

// release wakes all followers of a dead store.
func (p *pipeline) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.followers {
		f.wake <- struct{}{}
	}
	clear(p.followers)
	p.followers = p.followers[:0]
}

// Syncing returns when the sync that is under way began, by the wall clock; zero if none is.
// A sync that takes long tells of a disk that does not answer, for example one behind a
// network. It waits for nothing, and may be called from any goroutine, also after Close.
func (s *Store) Syncing() time.Time {
	if at := s.pipeline.syncing.Load(); at != 0 {
		return time.Unix(0, at).UTC()
	}
	return time.Time{}
}

// Pending is how many commits are applied and not yet known to be durable.
func (s *Store) Pending() uint64 {
	durable := s.pipeline.durable.Load()
	return s.pipeline.last.Load() - min(durable, s.pipeline.last.Load())
}
