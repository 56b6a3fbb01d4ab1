package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/holdfast-dev/holdfast/seam"
)

// Store is an open store. Its methods may be called from any task.
type Store struct {
	engine  Engine
	lock    *pebble.Lock // nil for an engine of the caller's
	seams   seam.Seams
	shards  int
	space   space
	witness *witness // nil: none is kept

	epoch    uint64
	openedAt time.Time
	previous Previous
	crashes  uint64        // what the next opening reads if this one ends without Close
	numbers  atomic.Uint64 // the last object number given out
	seqs     atomic.Uint64 // the last sequence number given out
	through  atomic.Uint64 // the last epoch whose numbers are this opening's

	// reserving is held while through is raised. Nothing waits while it is held.
	reserving sync.Mutex

	pipeline pipeline

	// using is held for reading during each call into the engine, and by release,
	// which thus waits for them. Nothing waits or calls others while it is held.
	using sync.RWMutex
	// marking is held for reading while a batch with marks is applied, and by
	// Expire from its look at them to their removal. It guards removed, the time up
	// to which Expire may have removed what expires.
	marking sync.RWMutex
	removed int64
	// dead is set once, before anyone can be answered after an error.
	dead   atomic.Pointer[fatalError]
	died   chan struct{} // closed when dead is set
	closed sync.Once
}

// Previous tells how the process that had the store open before ended.
type Previous struct {
	Epoch    uint64    // 0: the store is new
	Clean    bool      // it closed the store in order
	OpenedAt time.Time // when it opened the store
	Crashes  uint64    // how many processes in a row ended without closing, up to and with it
	// CrashedEpoch is the newest opening, up to and with it, that did not end in
	// order. Zero: none.
	CrashedEpoch uint64

	through uint64 // the last epoch whose numbers it may have used
}

func newStore(o Options, engine Engine, shards int, lock *pebble.Lock) (*Store, error) {
	s := &Store{engine: engine, lock: lock, seams: o.Seams, shards: shards, died: make(chan struct{})}
	s.pipeline.init(s, o.MaxUnsyncedBytes)
	if m, ok := engine.(mortal); ok {
		m.onDeath(func(err error) { _ = s.fail(err) })
	}
	s.space.floor = uint64(max(o.MinFreeBytes, 0))
	if o.Engine == nil && o.MinFreeBytes >= 0 {
		if _, err := o.Pebble.FS.GetDiskUsage(o.Dir); err == nil {
			s.space.free = func() (uint64, error) {
				u, err := o.Pebble.FS.GetDiskUsage(o.Dir)
				return u.AvailBytes, err
			}
		}
	}
	if o.Witness && o.Engine == nil {
		w, err := openWitness(o, s)
		if err != nil {
			return nil, err
		}
		s.witness = w
	}
	if err := s.beginEpoch(); err != nil {
		return nil, errors.Join(err, s.closeWitness())
	}
	return s, nil
}

// metaKey is the key of a row of the store itself.
func metaKey(name string) []byte { return append(prefix(nil, metaShard, 0), name...) }

// beginEpoch reads how the store was left and makes the number of this opening
// durable, so that no two openings ever share one.
func (s *Store) beginEpoch() error {
	value, ok, err := s.get(metaKey("epoch"))
	if err != nil {
		return err
	}
	if ok {
		if s.previous, err = decodeEpoch(value); err != nil {
			return s.fail(err)
		}
	}
	s.epoch = s.previous.through + 1
	s.seqs.Store(s.epoch << blockBits)
	s.numbers.Store(s.epoch << blockBits)
	s.through.Store(s.epoch)
	s.crashes = 1
	if !s.previous.Clean && s.previous.Epoch > 0 {
		s.crashes, s.previous.CrashedEpoch = s.previous.Crashes+1, s.previous.Epoch
	}
	s.openedAt = s.seams.Clock.Now()
	return s.writeEpoch(false, s.crashes)
}

// writeEpoch makes the state of this opening durable. crashes is what the next
// opening will read if this one ends without Close.
func (s *Store) writeEpoch(clean bool, crashes uint64) error {
	t, err := s.apply(s.epochRow(clean, crashes, s.through.Load()))
	if err != nil {
		return err
	}
	return s.WaitDurable(t)
}

// Versions of the epoch row. The second has one field more, through, and is only
// written when an opening has used numbers of later epochs: a program that does
// not know the field must not open the store then.
const (
	epochRowVersion     = 1
	epochRowWithThrough = 2
)

// epochRow is a batch with the row that tells of this opening.
func (s *Store) epochRow(clean bool, crashes, through uint64) *Batch {
	v := []byte{epochRowVersion, 0}
	if clean {
		v[1] = 1
	}
	v = binary.AppendUvarint(v, s.epoch)
	v = binary.AppendUvarint(v, crashes)
	v = binary.AppendVarint(v, s.openedAt.UnixNano())
	v = binary.AppendUvarint(v, s.previous.CrashedEpoch)
	if through > s.epoch {
		v[0] = epochRowWithThrough
		v = binary.AppendUvarint(v, through)
	}
	b := new(Batch)
	b.Set(metaKey("epoch"), v)
	return b
}

func decodeEpoch(v []byte) (p Previous, err error) {
	bad := fmt.Errorf("%w: epoch row %x", ErrCorrupt, v)
	if len(v) < 2 || v[0] != epochRowVersion && v[0] != epochRowWithThrough {
		return p, bad
	}
	p.Clean = v[1] == 1
	rest := v[2:]
	var n int
	if p.Epoch, n = binary.Uvarint(rest); n <= 0 {
		return p, bad
	}
	rest = rest[n:]
	if p.Crashes, n = binary.Uvarint(rest); n <= 0 {
		return p, bad
	}
	rest = rest[n:]
	at, n := binary.Varint(rest)
	if n <= 0 {
		return p, bad
	}
	p.OpenedAt = time.Unix(0, at)
	rest = rest[n:]
	p.CrashedEpoch, n = binary.Uvarint(rest) // zero if it is missing
	p.through = p.Epoch
	if v[0] == epochRowWithThrough {
		if p.through, _ = binary.Uvarint(rest[max(n, 0):]); p.through <= p.Epoch {
			return p, bad
		}
	}
	return p, nil
}

// Epoch is the number of this opening of the store, and durable before Open
// returned. It is one more than the last, or more if that one made 4 billion
// object numbers or sequence numbers.
func (s *Store) Epoch() uint64 { return s.epoch }

// OpenedAt is when this opening of the store began.
func (s *Store) OpenedAt() time.Time { return s.openedAt }

// Previous tells how the opening before this one ended.
func (s *Store) Previous() Previous { return s.previous }

// Shards is the number of shards of the store, which never changes.
func (s *Store) Shards() int { return s.shards }

// Err returns the error that ended the store, or nil while it lives.
func (s *Store) Err() error {
	if f := s.dead.Load(); f != nil {
		return f
	}
	return nil
}

// Dead is closed when the store has ended with an error.
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

func (s *Store) exit() { s.using.RUnlock() }

// Commit applies b: its changes are visible when Commit returns, at the place in
// the order of commits that the ticket names, and durable when WaitDurable says
// so. An error that wraps ErrNoSpace refuses the commit; nothing is changed and
// the store lives on. After any other error the store is dead, and the commit
// may or may not have survived.
func (s *Store) Commit(b *Batch) (Ticket, error) {
	return s.CommitAt(b, s.seams.Steady())
}

// CommitAt is Commit for a caller that has just read seam.Seams.Steady: the time
// decides whether to look at the free space.
func (s *Store) CommitAt(b *Batch, now time.Time) (Ticket, error) {
	if err := s.Err(); err != nil {
		return 0, err
	}
	if b.Empty() {
		return s.Applied(), nil
	}
	if err := s.space.admit(b.Len(), now); err != nil {
		return 0, err
	}
	return s.apply(b)
}

// apply is Commit without a look at the free space: the few bytes that end the
// store in order are written whenever they can be.
func (s *Store) apply(b *Batch) (Ticket, error) {
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

func (s *Store) applyNow(repr []byte) error {
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

// get returns a copy of the value of key.
func (s *Store) get(key []byte) ([]byte, bool, error) {
	if err := s.enter(); err != nil {
		return nil, false, err
	}
	defer s.exit()
	v, closer, err := s.engine.Get(key)
	if err == ErrNotFound {
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

// Close marks the store as closed in order, makes everything durable and
// releases the directory. Later uses fail with ErrClosed. A dead store only
// releases what it can and returns the error that ended it.
func (s *Store) Close() error {
	err := s.Err()
	if errors.Is(err, ErrClosed) {
		return nil
	}
	if err == nil {
		err = s.writeEpoch(true, 0)
	}
	released := s.release(ErrClosed)
	if err == nil {
		err = released
	}
	return err
}

// Abandon releases the engine and the directory without marking the store as
// closed in order: to the next opening it is as if the process had died.
func (s *Store) Abandon() error { return s.release(ErrClosed) }

func (s *Store) release(cause error) (err error) {
	s.closed.Do(func() {
		s.fail(cause)
		s.using.Lock() // no call into the engine is under way, and none will be
		defer s.using.Unlock()
		err = errors.Join(s.engine.Close(), s.closeWitness())
		if s.lock != nil {
			err = errors.Join(err, s.lock.Close())
		}
	})
	return err
}
