package storage

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// Store is an open store, from Open on until Close or Abandon. Its methods may be called
// from any goroutine. A Store that has met an error of the engine stays usable for
// nothing but Close and Err: see Dead.
type Store struct {
	engine  engine.Engine
	dir     pebblestore.Dir // zero for an engine of the caller's
	files   files           // the database in dir, which is the engine or the view of it; nil without dir
	fenced  engine.Fenced   // the engine, if it is over a log; else nil
	seams   seam.Seams
	shards  int
	space   space
	witness *witness // nil: none is kept

	readOnly bool   // nothing is ever applied, see OpenReadOnly
	dormant  bool   // see Dormant
	view     bool   // see Options.Over
	id       string // see ID

	epoch    uint64
	openedAt time.Time
	previous Previous
	crashes  uint64        // the count that the next opening reads if this one ends without Close
	numbers  atomic.Uint64 // the last object number given out
	seqs     atomic.Uint64 // the last sequence number given out
	through  atomic.Uint64 // the numbers up to those of this epoch belong to this opening
	drawn    drawn         // the numbers of messages that readers may not pass yet

	// reserving is held while through is raised. Nothing waits while it is held.
	reserving sync.Mutex

	feed feed

	pipeline pipeline

	// using is held for reading during each call into the engine, and by release,
	// which thus waits for them. Nothing waits or calls others while it is held.
	using sync.RWMutex
	// marking is held for reading while a batch with marks is applied, and by
	// Expire from its look at them to their removal. It guards removed, the time up
	// to which Expire may have removed rows.
	marking sync.RWMutex
	removed int64
	// dead is set once, before anyone can be answered after an error.
	dead   atomic.Pointer[fatalError]
	died   chan struct{} // closed when dead is set
	closed sync.Once
}

// files is what a store asks of its database beside that it is an engine. It is a *pebblestore.Store, and an interface
// because a field of that type would have the compiler make the generic code of Pebble anew for each package that uses
// a Store.
type files interface {
	Checkpoint(to string, before func(bytes int) error) error
	Flush() error
}

// newStore returns a store over an engine. Its opening has yet to begin.
func newStore(o Options, e engine.Engine, shards int) *Store {
	s := &Store{engine: e, seams: o.Seams, shards: shards, died: make(chan struct{})}
	s.feed.on = o.Feed
	s.pipeline.init(s, o.MaxUnsyncedBytes)
	s.fenced, _ = e.(engine.Fenced)
	if m, ok := e.(engine.Mortal); ok {
		m.OnDeath(func(err error) { _ = s.fail(err) })
	}
	return s
}

// Shards is the number of shards of the store, which never changes.
func (s *Store) Shards() int { return s.shards }

// Err returns the error that ended the store, or nil while it lives.
func (s *Store) Err() error {
	if f := s.dead.Load(); f != nil {
		return f
	}
	return nil
}

// Dead is closed when the store has ended, by an error or by Close. Err has the error.
func (s *Store) Dead() <-chan struct{} { return s.died }

// fail ends the store with cause, unless it has ended, and returns the error
// that ended it.
func (s *Store) fail(cause error) error {
	if errors.Is(cause, ErrStorage) {
		return cause
	}
	if s.dead.CompareAndSwap(nil, &fatalError{cause}) {
		close(s.died)
		s.pipeline.release()
	}
	return s.Err()
}

// enter begins a call into the engine, which exit ends, unless the store is dead.
func (s *Store) enter() error {
	s.using.RLock()
	if err := s.Err(); err != nil {
		s.using.RUnlock()
		return err
	}
	return nil
}

// exit ends a call that enter has begun.
func (s *Store) exit() { s.using.RUnlock() }

// Commit applies b: its changes are visible when Commit returns, at the place in
// the order of commits that the ticket names, and durable when WaitDurable says
// so. An error that wraps ErrNoSpace or ErrReadOnly refuses the commit; nothing is changed
// and the store lives on. After any other error the store is dead, and the commit
// may or may not have survived.
func (s *Store) Commit(b *Batch) (Ticket, error) {
	return s.CommitAt(b, s.seams.Steady())
}

// CommitAt is Commit for a caller that has just read seam.Seams.Steady: the time
// decides whether to look at the free space. A turn reads the clock once for all that
// it does, so a second look would be wasted.
func (s *Store) CommitAt(b *Batch, now time.Time) (Ticket, error) {
	if err := s.Err(); err != nil {
		return 0, err
	}
	if b.Empty() {
		return s.Applied(), nil
	}
	if err := s.admit(b.Len(), now); err != nil {
		return 0, err
	}
	if len(b.messages) == 0 {
		return s.apply(b)
	}
	s.draw(b)
	t, err := s.apply(b)
	if err != nil {
		s.HandedOver(b.MessageSeq(0))
	}
	return t, err
}

// apply is Commit without a look at the free space: the few bytes that end the
// store in order are written whenever they can be. At its end positions of the feed are given back,
// because the rows are visible then, or never will be.
func (s *Store) apply(b *Batch) (Ticket, error) {
	if len(b.feed) > 0 {
		first := s.drawPositions(b)
		defer s.feed.drawn.close(first)
	}
	object := ""
	if s.seams.Probe != nil && b.id.Class != "" {
		object = b.id.String()
	}
	s.seams.At("commit/before", object)
	if err := s.applyMarks(b); err != nil {
		return 0, err
	}
	t := s.pipeline.applied(b.Len())
	s.seams.At("commit/after", object)
	return t, nil
}

// applyMarks applies b beside other commits, but not beside Expire if it sets
// marks. A turn may be so late that the entry of a bucket is gone from the expiry
// index: it is stored again.
func (s *Store) applyMarks(b *Batch) error {
	if b.removal != 0 {
		s.marking.RLock()
		defer s.marking.RUnlock()
		if b.removal <= s.removed {
			b.indexAgain(s.removed)
		}
	}
	return s.applyNow(b.Repr())
}

// applyNow applies a batch without a ticket, which the caller takes afterwards.
func (s *Store) applyNow(repr []byte) error {
	if s.readOnly {
		return ErrReadOnly
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.exit()
	s.pipeline.began.Add(1)
	if err := s.engine.Apply(repr); err != nil {
		return s.fail(err)
	}
	return nil
}

// get returns a copy of the value of key, because the engine's memory is valid only
// until the closer is closed.
func (s *Store) get(key []byte) ([]byte, bool, error) {
	if err := s.enter(); err != nil {
		return nil, false, err
	}
	defer s.exit()
	v, closer, err := s.engine.Get(key)
	if err == engine.ErrNotFound {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, s.fail(err)
	}
	v = slices.Clone(v)
	if err := closer.Close(); err != nil {
		return nil, false, s.fail(err)
	}
	return v, true, nil
}

// read returns the value of key as the batch b, which may be nil, leaves it.
func (s *Store) read(b *Batch, key []byte) ([]byte, bool, error) {
	if b != nil {
		if v, deleted, known := b.lookup(key); known {
			return slices.Clone(v), !deleted, s.Err()
		}
	}
	return s.get(key)
}

// Close marks the store as closed in order, makes everything durable and releases the
// directory. Later uses fail with ErrClosed, and a second Close returns nil. A dead
// store releases its files and returns the error that ended it. A store that is open for
// reading only is released and not marked. Over a log that does not answer, Close gives up after 10 seconds.
func (s *Store) Close() error {
	err := s.Err()
	if errors.Is(err, ErrClosed) {
		return nil
	}
	if err == nil && !s.readOnly {
		defer s.limitClose()()
		err = s.applyDurably(s.epochRow(true, 0, s.through.Load()))
	}
	released := s.release(ErrClosed)
	if err == nil {
		err = released
	}
	return err
}

// Abandon releases the engine and the directory without marking the store as closed in
// order: to the next opening it is as if the process had died. A host does so when its
// store has failed, or when it could not be opened.
func (s *Store) Abandon() error { return s.release(ErrClosed) }

// release ends the store with cause, waits for the calls into the engine that are under
// way, and closes engine and witness, and with the engine the lock of the directory. An iterator
// that is still open keeps the engine open behind it, and the directory locked. It does so once.
func (s *Store) release(cause error) (err error) {
	s.closed.Do(func() {
		s.fail(cause)
		if s.fenced != nil {
			s.fenced.GiveUp() // a sync that waits for the log would hold using
		}
		s.using.Lock() // no call into the engine is under way, and none will be
		defer s.using.Unlock()
		err = errors.Join(s.engine.Close(), s.closeWitness())
	})
	return err
}
