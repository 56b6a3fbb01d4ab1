package object

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/object/internal/sharing"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// State is an object's side of the runtime: its storage, its alarm, its time. A
// constructor gets one State for the instance that it makes. When the instance is gone,
// after an eviction, a reset or a deletion, the State's methods return ErrReset and
// change nothing. Methods that take a context need the one of the present turn, or one
// that comes from it, unless they say otherwise; the others may be called from any
// goroutine. Authors of job types find more in Driver.
type State struct {
	cause   atomic.Pointer[error] // why the instance is gone; nil while it lives
	act     *activation           // never changes, like the fields up to driver
	storage Storage
	driver  Driver
	caches  *rowCache // the first of CacheRows; the owner of the turn reads and writes it

	mu         sync.Mutex
	cancellers *canceller // head of the list that end calls; guarded by mu
}

// canceller is one function that is called when an instance goes, such as the cancel
// function of a context. It is its own link in the list of its State, so it costs no
// allocation. The zero value calls nothing.
type canceller struct {
	cancel context.CancelCauseFunc
	state  *State

	// Guarded by state.mu.
	listed     bool // it is in the list
	prev, next *canceller
}

// newState returns the State of a new instance. The first instance uses the State that
// lies in the activation, which saves an allocation. The caller owns the turn.
func newState(a *activation) *State {
	s := &a.first
	if s.act != nil { // an earlier instance had it, and work of that instance must get ErrReset
		s = new(State)
	}
	s.act, s.storage.state, s.driver.state = a, s, s
	a.owner = 0
	return s
}

// err returns why the instance is gone, or nil while it lives. Any goroutine may call it.
func (s *State) err() error {
	if cause := s.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// errResetByEviction is the error of endedBy for an eviction.
var errResetByEviction = fmt.Errorf("%w: %w", ErrReset, errEvicted)

// endedBy returns the cause with which the contexts of an instance end. The one for an
// eviction is made once and names no object, because evictions are frequent and their
// error is seldom read.
func endedBy(id storage.ID, cause error) error {
	if cause == errEvicted {
		return errResetByEviction
	}
	return because(id, ErrReset, cause)
}

// end ends the instance for the given cause: from now on its State returns ErrReset, and
// the contexts of its turns and routines are cancelled. A second call does nothing. The
// cancel functions are called without s.mu, because they may call forget, which takes it.
func (s *State) end(cause error) {
	err := endedBy(s.act.object.ID, cause)
	s.mu.Lock()
	if !s.cause.CompareAndSwap(nil, &err) {
		s.mu.Unlock()
		return
	}
	first := s.cancellers
	for e := first; e != nil; e = e.next {
		e.listed = false
	}
	s.cancellers = nil
	s.mu.Unlock()
	for e := first; e != nil; e = e.next {
		e.cancel(err)
	}
}

// onEnd has cancel called when the instance goes, or calls it now if the instance is gone,
// under s.mu. Any goroutine may call it. The caller must not change e until it has been
// called or forgotten.
func (s *State) onEnd(e *canceller, cancel context.CancelCauseFunc) {
	e.state, e.cancel = s, cancel
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.err(); err != nil {
		cancel(err)
		return
	}
	e.listed, e.next = true, s.cancellers
	if s.cancellers != nil {
		s.cancellers.prev = e
	}
	s.cancellers = e
}

// forget undoes onEnd. If end has come first, its cancel function is being called or has
// been. A canceller that was never listed is left alone.
func (e *canceller) forget() {
	s := e.state
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.listed { // end has taken it out of the list
		return
	}
	if e.prev == nil {
		s.cancellers = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next != nil {
		e.next.prev = e.prev
	}
	e.listed = false
}

// turn returns the present turn if ctx belongs to it. Otherwise it returns ErrReset if the
// instance is gone, or else ErrNoTurn, for example for the context of a routine or of another
// object's turn. Every method with a context begins with it.
func (s *State) turn(ctx context.Context) (*turn, error) {
	t := turnOf(ctx)
	switch {
	case t == nil || t.state != s || !t.holds():
		if s.err() != nil {
			return nil, named(s.act.object.ID, ErrReset)
		}
		return nil, named(s.act.object.ID, ErrNoTurn)
	case s.err() != nil:
		return nil, named(s.act.object.ID, ErrReset)
	}
	return t, nil
}

// reading returns the error of a read of the store that ended with err, which may be nil.
// It is ErrReset if the instance has gone meanwhile, because the read may have seen a part
// of what the next instance writes.
func (s *State) reading(err error) error {
	if s.err() != nil {
		return named(s.act.object.ID, ErrReset)
	}
	h := s.act.host
	if err == nil {
		err = h.store.Err() // the read may have answered from memory that never becomes durable
	}
	return h.storageError(s.act.object.ID, err)
}

// ID returns the class and the name of the object.
func (s *State) ID() storage.ID { return s.act.object.ID }

// Name returns the object's name in its class.
func (s *State) Name() string { return s.act.object.ID.Name }

// Now returns the time on the host's clock. Use it instead of time.Now, so that tests and
// simulations of the class repeat.
func (s *State) Now() time.Time { return s.act.host.seams.Clock.Now() }

// Storage returns the object's own keyspace.
func (s *State) Storage() *Storage { return &s.storage }

// Activation returns why this instance began: the object came into memory, or a reset ended
// the instance before. It is for a constructor that has to do more after a crash than after
// an eviction.
func (s *State) Activation() Activation {
	a := Activation{Reason: s.act.reason}
	if a.Reason == Crashed {
		previous := s.act.host.store.Previous()
		a.Opened, a.Crashes = previous.OpenedAt, int(previous.Crashes)
	}
	return a
}

// Log returns the host's logger with the object's class and name. A turn that fails after
// a line was logged does not take the line back.
func (s *State) Log() *slog.Logger {
	return s.act.host.options.Logger.With("class", s.act.object.ID.Class, "object", s.act.object.ID.Name)
}

// Closing reports whether the host is being shut down. Turns and routines that run may end,
// and nothing that takes long should begin.
func (s *State) Closing() bool { return s.act.host.lifecycle.closing.Load() }

// Invoke runs a request as a call of this object. Method.Call calls it; users call
// Method.Call. If ctx is that of the present turn, Invoke may return before the other
// object's commit is durable, and this object's own reply then waits for that commit.
// Otherwise the call is one from outside.
func (s *State) Invoke(ctx context.Context, r *Request) error {
	return s.act.host.Invoke(ctx, r)
}

// Sync commits everything that the turn has written so far, and returns when that commit
// and all earlier ones that the object depends on are durable. The commit stays even if
// the handler fails later. For example, a handler calls Sync before it sends a mail, so
// that no mail goes out for a change that a crash takes back. In a transaction Sync
// returns an error. Over a replicated log it waits for the log, also without writes. It returns ErrUnknown if the log has not
// answered for 10 s, or for about one after ctx has ended: the commit may stay then, or be lost.
func (s *State) Sync(ctx context.Context) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	if t.txs > 0 {
		return fmt.Errorf("%s: object: sync inside a transaction", s.act.object.ID)
	}
	if err := t.commit(false); err != nil {
		return err
	}
	h := s.act.host
	return h.storageError(s.act.object.ID, h.store.WaitFollowed(ctx, nil, h.store.Seen(storage.Ticket(s.act.last.Load()))))
}

// Codec turns values into bytes and back. Its methods may be called by many goroutines at
// a time. The encoding must not depend on anything but the value.
type Codec interface {
	Encode(v any) ([]byte, error)
	// Decode sets the value that v points to.
	Decode(b []byte, v any) error
}

// JSON is the default codec: encoding/json.
type JSON struct{}

// Encode returns the JSON of v.
func (JSON) Encode(v any) ([]byte, error) { return json.Marshal(v) }

// Decode parses the JSON in b into *v.
func (JSON) Decode(b []byte, v any) error { return json.Unmarshal(b, v) }

// opaque lists the types that an instance may share with its callers, because users never
// change the memory of these types.
var opaque = map[reflect.Type]bool{
	reflect.TypeFor[State]():         true,
	reflect.TypeFor[Driver]():        true,
	reflect.TypeFor[Host]():          true,
	reflect.TypeFor[time.Location](): true,
}

// checkShared reports to a probe that watches sharing if the instance still holds memory
// of the argument or of the answer, because the caller may change that memory at any
// moment. Only simulations have such a probe. The caller owns the turn.
func (a *activation) checkShared(method string, arg, answer any) {
	p, ok := a.host.seams.Probe.(seam.Sharing)
	if !ok || !p.WatchesSharing() {
		return
	}
	for _, half := range []struct {
		of string
		v  any
	}{{"argument", arg}, {"answer", answer}} {
		if at := sharing.Place(half.v, a.instance, opaque); at != "" {
			p.Shared(a.object.ID.String(), fmt.Sprintf("the handler %s keeps memory of its %s in %s: copy it, because the caller has it too", method, half.of, at))
			return
		}
	}
}
