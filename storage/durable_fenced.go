package storage

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// # How commits become durable over a log
//
// Over a log (engine.Fenced) a sync may take minutes, because it waits while the log does not answer. A caller must be able
// to leave meanwhile, so none leads: a goroutine of the store leads until no follower is left, and all others follow. While a
// sync takes long it is looked at each lookEvery, and each look wakes the followers that do not wait any longer.
//
// A follower leaves the list once: by pass with its ticket durable, by leave without, or by release, when the store is
// dead. The goroutine that takes it out wakes it. The order of events of one that leaves:
//
//  1. leadAll begins a sync, and watch sets the timer of the first look.
//  2. Each look raises looks, and takes out the followers that have seen enough of them, or are hurried.
//  3. The follower wakes with unknown set, and returns ErrUnconfirmed, unless its ticket has become durable meanwhile.
//  4. The sync goes on. Its outcome reaches those that are left, and the commits of the others too.

// A sync over a log that takes long is looked at each lookEvery. A follower leaves at the first look after it has seen
// unknownLooks of them, so after unknownAfter and at most one look more, if it was one sync that took so long.
const (
	lookEvery    = time.Second
	unknownLooks = 10
	unknownAfter = unknownLooks * lookEvery
	closeLimit   = 10 * time.Second // see Store.Close
)

// OverLog reports whether the store is over a log that another process can take over (engine.Fenced).
func (s *Store) OverLog() bool { return s.fenced != nil }

// OwnerLost reports whether this opening has taken the store over from another node that did not close it in order. That is
// no fault of what ran there, because a node is also replaced when it cannot be reached. On one machine it is false.
func (s *Store) OwnerLost() bool {
	return s.fenced != nil && s.previous.Epoch > 0 && !s.previous.Clean && s.fenced.Replaced()
}

// Confirmed returns when the newest sync began that has succeeded, by the steady clock: no other process had taken the log over
// then. It is for a store over a log, and waits for nothing.
func (s *Store) Confirmed() time.Time { return time.Unix(0, s.pipeline.confirmed.Load()) }

// asks returns the steady time at which a sync over a log begins, for confirmed; 0 on one machine, which is not asked for the time.
func (p *pipeline) asks() int64 {
	if p.store.fenced == nil {
		return 0
	}
	return p.store.seams.Steady().UnixNano()
}

// led reports whether a leader is at work. Over a log it starts one. The caller holds p.mu and adds a follower then.
func (p *pipeline) led() bool {
	if !p.leading && p.store.fenced != nil {
		p.leading = true
		p.store.seams.Executor.Go("sync", p.leadAll)
	}
	return p.leading
}

// waitUnconfirmed is WaitFollowed over a log.
func (s *Store) waitUnconfirmed(ctx context.Context, f *Follower, t Ticket) error {
	p := &s.pipeline
	if f == nil {
		f = new(Follower)
	}
	for {
		if err := s.Err(); err != nil {
			return err
		}
		if p.durable.Load() >= uint64(t) {
			return nil
		}
		if f.unknown {
			return ErrUnconfirmed
		}
		if !s.Follow(f, t, make(chan struct{}, 1)) {
			continue // the ticket is durable, or the store is dead
		}
		if s.seams.Executor.Wait(ctx, f.wake) != nil {
			s.Hurry(f)
			_ = s.seams.Executor.Wait(context.Background(), f.wake)
		}
	}
}

// Hurry tells the store that the caller of a follower would rather leave: its context has ended. Over a log that does not
// answer it is woken soon. Otherwise it is woken as before, because the disk answers.
func (s *Store) Hurry(f *Follower) {
	s.pipeline.mu.Lock()
	defer s.pipeline.mu.Unlock()
	f.hurried = true
}

// leadAll leads until no follower is left. It is the goroutine that leads over a log.
func (p *pipeline) leadAll() {
	for {
		runtime.Gosched() // the callers that the sync before has woken commit first, and share this one
		_ = p.lead()      // a failure is the end of the store, which wakes all followers
		p.mu.Lock()
		if len(p.followers) == 0 {
			p.leading = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
}

// watchedSync is a sync over a log that is looked at while it takes long.
type watchedSync struct {
	p *pipeline

	mu    sync.Mutex // guards the fields below
	ended bool
	timer seam.Timer
}

// watch begins to look at a sync. It returns nil if the sync is not over a log.
func (p *pipeline) watch() *watchedSync {
	if p.store.fenced == nil {
		return nil
	}
	w := &watchedSync{p: p}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = p.store.seams.Clock.AfterFunc(lookEvery, w.look)
	return w
}

// look lets the followers go that do not wait any longer, and sets the timer of the next look.
func (w *watchedSync) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.p.leave()
	w.timer = w.p.store.seams.Clock.AfterFunc(lookEvery, w.look)
}

// end ends the looks. w may be nil.
func (w *watchedSync) end() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.timer.Stop()
}

// leave wakes the followers that do not wait any longer.
func (p *pipeline) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks++
	rest := p.followers[:0]
	for _, f := range p.followers {
		if f.patient || !f.hurried && p.looks-f.since <= unknownLooks {
			rest = append(rest, f)
			continue
		}
		f.unknown = true
		f.wake <- struct{}{}
	}
	clear(p.followers[len(rest):])
	p.followers = rest
}

// limitClose makes a Close that waits for the log give up after closeLimit. The caller calls the result when it has ended.
func (s *Store) limitClose() (stop func()) {
	if s.fenced == nil {
		return func() {}
	}
	t := s.seams.Clock.AfterFunc(closeLimit, s.fenced.GiveUp)
	return func() { t.Stop() }
}
