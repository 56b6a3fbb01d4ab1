package object

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// State is an object's side of the runtime: its storage, its alarm, its time. One
// State belongs to one activation; after the activation has ended its methods
// return ErrReset and change nothing. Methods that take a context need the one of
// the present turn, or one that comes from it, unless they say otherwise.
type State struct {
	cause   atomic.Pointer[error] // why the activation ended; nil while it lives
	act     *activation
	storage Storage

	mu   sync.Mutex
	ends *ending // those to cancel when it does
}

// ending is something that is cancelled when an activation ends. The zero value
// is not.
type ending struct {
	cancel context.CancelCauseFunc
	life   *State

	// Guarded by life.mu.
	listed     bool
	prev, next *ending
}

// newState is the State of a life that begins. The caller owns the turn.
func newState(a *activation) *State {
	s := &a.first
	if s.act != nil { // it belongs to a life that has ended, and whoever kept it must be told so
		s = new(State)
	}
	s.act, s.storage.state = a, s
	return s
}

// err tells why the activation has ended, or nil.
func (s *State) err() error {
	if cause := s.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

var errResetByEviction = fmt.Errorf("%w: %w", ErrReset, errEvicted)

// endedBy is the error of what outlives its activation. That of an eviction is made
// once, because evictions are frequent and their error is seldom read.
func endedBy(id storage.ID, cause error) error {
	if cause == errEvicted {
		return errResetByEviction
	}
	return because(id, ErrReset, cause)
}

// end ends the activation for the given cause: its works and turns are cancelled.
func (s *State) end(cause error) {
	err := endedBy(s.act.id, cause)
	s.mu.Lock()
	if !s.cause.CompareAndSwap(nil, &err) {
		s.mu.Unlock()
		return
	}
	first := s.ends
	for e := first; e != nil; e = e.next {
		e.listed = false
	}
	s.ends = nil
	s.mu.Unlock()
	for e := first; e != nil; e = e.next {
		e.cancel(err)
	}
}

// onEnd has cancel called when the activation ends, or now if it has.
func (s *State) onEnd(e *ending, cancel context.CancelCauseFunc) {
	e.life, e.cancel = s, cancel
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.err(); err != nil {
		cancel(err)
		return
	}
	e.listed, e.next = true, s.ends
	if s.ends != nil {
		s.ends.prev = e
	}
	s.ends = e
}

// forget takes back onEnd.
func (e *ending) forget() {
	s := e.life
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.listed { // the end has come
		return
	}
	if e.prev == nil {
		s.ends = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	}
	e.listed = false
}

// turn returns the present turn if ctx belongs to it.
func (s *State) turn(ctx context.Context) (*turn, error) {
	t := turnOf(ctx)
	switch {
	case t == nil || t.life != s || !t.holds():
		if s.err() != nil {
			return nil, named(s.act.id, ErrReset)
		}
		return nil, named(s.act.id, ErrNoTurn)
	case s.err() != nil:
		return nil, named(s.act.id, ErrReset)
	}
	return t, nil
}

// reading is the error of a read that ended with err. A read must not answer when
// the activation has ended meanwhile: it may have seen what came after, and half of it.
func (s *State) reading(err error) error {
	if s.err() != nil {
		return named(s.act.id, ErrReset)
	}
	h := s.act.hosted.host
	if err == nil {
		err = h.store.Err() // what memory answered may never become durable
	}
	return h.storageError(s.act.id, err)
}

// ID names the object.
func (s *State) ID() storage.ID { return s.act.id }

// Name is the object's name in its class.
func (s *State) Name() string { return s.act.id.Name }

// Now is the time on the host's clock.
func (s *State) Now() time.Time { return s.act.hosted.host.seams.Clock.Now() }

// Storage is the object's own keyspace.
func (s *State) Storage() *Storage { return &s.storage }

// Activation tells why this activation began.
func (s *State) Activation() Activation {
	a := Activation{Reason: s.act.reason}
	if a.Reason == Crashed {
		previous := s.act.hosted.host.store.Previous()
		a.Opened, a.Crashes = previous.OpenedAt, int(previous.Crashes)
	}
	return a
}

// NextSequence returns a number that is greater than all that it has returned for
// any object of the store, in this process and in earlier ones. A name made of it
// is unique in the store. Numbers may be left out.
func (s *State) NextSequence() uint64 { return s.act.hosted.host.store.NextSeq() }

// Epoch is the number of the present opening of the store. It grows with every
// opening and never repeats.
func (s *State) Epoch() uint64 { return s.act.hosted.host.store.Epoch() }

// EndedInOrder reports whether an earlier opening of the store ended in order, and
// all that followed it too: what it left open was cut off by no crash.
func (s *State) EndedInOrder(epoch uint64) bool {
	store := s.act.hosted.host.store
	return epoch < store.Epoch() && epoch > store.Previous().CrashedEpoch
}

// OpenedAt is when the present opening of the store began.
func (s *State) OpenedAt() time.Time { return s.act.hosted.host.store.OpenedAt() }

// Seams are the clock, executor, random source and probe of the host.
func (s *State) Seams() *seam.Seams { return &s.act.hosted.host.seams }

// Codec is the host's codec.
func (s *State) Codec() Codec { return s.act.hosted.host.options.Codec }

// Log is the host's logger with the object's class and name.
func (s *State) Log() *slog.Logger {
	return s.act.hosted.host.options.Logger.With("class", s.act.id.Class, "object", s.act.id.Name)
}

// Closing reports whether the host is being shut down: open turns and works may
// end, and nothing long should begin.
func (s *State) Closing() bool { return s.act.hosted.host.life.closing.Load() }

// Invoke runs a request as a call of this object. Method.Call is what users call.
// If ctx is the present turn's, the reply may come before it is durable, and what
// this object replies then waits for it; otherwise it is a call from outside.
func (s *State) Invoke(ctx context.Context, r *Request) error {
	return s.act.hosted.host.Invoke(ctx, r)
}

// Sync commits what the turn has written so far and returns when it, and all
// that the object depends on, is durable. What it committed stays if the handler
// fails later.
func (s *State) Sync(ctx context.Context) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	if t.txs > 0 {
		return fmt.Errorf("%s: object: sync inside a transaction", s.act.id)
	}
	if err := t.commit(false); err != nil {
		return err
	}
	h := s.act.hosted.host
	return h.storageError(s.act.id, h.store.WaitDurable(storage.Ticket(s.act.last.Load())))
}

// MaxBatchBytes is Options.MaxBatchBytes of the host.
func (s *State) MaxBatchBytes() int { return s.act.hosted.host.options.MaxBatchBytes }

// MaxValueBytes is Options.MaxValueBytes of the host.
func (s *State) MaxValueBytes() int { return s.act.hosted.host.options.MaxValueBytes }

// WrittenBytes is the size of the batch of what the turn has written since its last
// commit. A turn that could go on in another one does so long before this comes near
// to MaxBatchBytes.
func (s *State) WrittenBytes(ctx context.Context) (int, error) {
	t, err := s.turn(ctx)
	if err != nil || t.batch == nil {
		return 0, err
	}
	return t.batch.Len(), nil
}

// Purge ends the object with this turn: its keys, alarm, marks and open-execution
// mark are removed in the turn's batch, together with what the turn wrote to
// them. Events that the turn emits stay for their time. A later call finds a
// fresh object.
func (s *State) Purge(ctx context.Context) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	t.writes.purge = true
	return nil
}
