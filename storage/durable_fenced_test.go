package storage

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// silentLog is an engine over a log that answers only when a test lets it.
type silentLog struct {
	engine.Engine
	silent  atomic.Bool
	full    atomic.Bool
	asked   atomic.Int64 // syncs
	answers chan error   // each ends one sync of a silent log
	gaveUp  chan struct{}
	giveUp  sync.Once

	replaced bool // another node had the log before
}

var (
	errGaveUp  = errors.New("the store has given up")
	errLogFull = errors.New("the log is full")
	errFenced  = errors.New("another process has taken over")
)

func newSilentLog(view engine.Engine) *silentLog {
	return &silentLog{Engine: view, answers: make(chan error), gaveUp: make(chan struct{})}
}

func (l *silentLog) Sync() error {
	l.asked.Add(1)
	if !l.silent.Load() {
		return l.Engine.Sync()
	}
	select {
	case err := <-l.answers:
		return err
	case <-l.gaveUp:
		return errGaveUp
	}
}

func (l *silentLog) Replaced() bool { return l.replaced }

func (l *silentLog) GiveUp() { l.giveUp.Do(func() { close(l.gaveUp) }) }

func (l *silentLog) Full() error {
	if l.full.Load() {
		return errLogFull
	}
	return nil
}

// overSilentLog runs a test in a bubble with a store over a log that answers no more.
func overSilentLog(t *testing.T, test func(t *testing.T, s *Store, log *silentLog)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := newSilentLog(memstore.New())
		s := open(t, Options{Engine: log, Shards: 4})
		log.silent.Store(true)
		defer s.Abandon() // also of a test that fails, because the looks would go on for ever
		test(t, s, log)
	})
}

// left is how a caller has left: its error, and how long it had waited.
type left struct {
	after time.Duration
	err   error
}

// caller calls wait on a goroutine of its own, and sends how that ended.
func caller(wait func() error) <-chan left {
	began, done := time.Now(), make(chan left, 1)
	go func() {
		err := wait()
		done <- left{time.Since(began), err}
	}()
	synctest.Wait()
	return done
}

// aCommit commits something, and returns its ticket.
func aCommit(t *testing.T, s *Store) Ticket {
	t.Helper()
	ticket, err := s.Commit(metaBatch("row", 10))
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

// followed waits as the caller of a turn that another task runs.
func followed(ctx context.Context, s *Store, ticket Ticket) error {
	f, wake := new(Follower), make(chan struct{}, 1)
	if !s.Follow(f, ticket, wake) {
		return errors.New("the caller was not enrolled")
	}
	<-wake
	return s.WaitFollowed(ctx, f, ticket)
}

// A caller leaves a log that does not answer after more than 10 s and at most 11, with an unknown outcome, whether it
// waits by itself, was enrolled or only reads. The answer of the log then comes too late for it alone.
//
// Proves O7 and N8 over a log.
func TestCallersLeaveASilentLog(t *testing.T) {
	overSilentLog(t, func(t *testing.T, s *Store, log *silentLog) {
		began, ticket := time.Now(), aCommit(t, s)
		leaves := make(map[time.Duration][]<-chan left) // by when they leave
		for _, c := range []struct{ at, leaves time.Duration }{
			{0, 11 * time.Second},
			{300 * time.Millisecond, 11 * time.Second},
			{999 * time.Millisecond, 11 * time.Second},
			{1001 * time.Millisecond, 12 * time.Second},
			{5500 * time.Millisecond, 16 * time.Second},
		} {
			time.Sleep(c.at - time.Since(began))
			leaves[c.leaves] = append(leaves[c.leaves],
				caller(func() error { return s.WaitFollowed(t.Context(), nil, ticket) }),
				caller(func() error { return followed(t.Context(), s, ticket) }),
				caller(func() error { return s.WaitSeen(t.Context()) }),
			)
		}
		patient := caller(func() error { return s.WaitDurable(ticket) })
		for _, at := range []time.Duration{11 * time.Second, 12 * time.Second, 16 * time.Second} {
			time.Sleep(at - time.Nanosecond - time.Since(began))
			for _, c := range leaves[at] {
				mustWait(t, c)
			}
			time.Sleep(time.Nanosecond)
			for _, c := range leaves[at] {
				l := <-c
				if !errors.Is(l.err, ErrUnconfirmed) || l.after <= 10*time.Second || l.after > 11*time.Second {
					t.Errorf("a caller has left after %v: %v", l.after, l.err)
				}
			}
		}
		log.silent.Store(false)
		log.answers <- nil
		if l := <-patient; l.err != nil || !s.Durable(ticket) {
			t.Errorf("a caller that has waited for the answer: %v", l.err)
		}
	})
}

// mustWait ends the test if a caller has left.
func mustWait(t *testing.T, c <-chan left) {
	t.Helper()
	synctest.Wait()
	select {
	case l := <-c:
		t.Fatalf("a caller has left after %v: %v", l.after, l.err)
	default:
	}
}

// A caller with a context that ends leaves at the next look, a second after the sync began, and not before. An answer that comes
// sooner reaches it.
func TestHurriedCallersLeaveASilentLog(t *testing.T) {
	for _, answered := range []bool{false, true} {
		overSilentLog(t, func(t *testing.T, s *Store, log *silentLog) {
			ticket := aCommit(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			var f Follower
			wake := make(chan struct{}, 1)
			callers := []<-chan left{
				caller(func() error { return s.WaitFollowed(ctx, nil, ticket) }),
				caller(func() error { return s.WaitSeen(ctx) }),
			}
			if !s.Follow(&f, ticket, wake) {
				t.Fatal("the caller was not enrolled")
			}
			callers = append(callers, caller(func() error { <-wake; return s.WaitFollowed(ctx, &f, ticket) }))
			time.Sleep(500 * time.Millisecond)
			cancel()
			s.Hurry(&f)
			callers = append(callers, caller(func() error { return s.WaitFollowed(ctx, nil, ticket) })) // its context has ended before
			time.Sleep(500*time.Millisecond - time.Nanosecond)
			for _, c := range callers {
				mustWait(t, c)
			}
			want := ErrUnconfirmed
			if answered {
				want = nil
				log.silent.Store(false)
				log.answers <- nil
			}
			time.Sleep(time.Nanosecond)
			for i, c := range callers {
				if l := <-c; !errors.Is(l.err, want) {
					t.Errorf("caller %d, answered %v: left after %v: %v", i, answered, l.after, l.err)
				}
			}
		})
	}
}

// A caller that must know the outcome waits for it for hours, and so do those that came a moment before the answer.
func TestPatientCallersWaitForTheOutcome(t *testing.T) {
	for _, outcome := range []error{nil, errFenced} {
		overSilentLog(t, func(t *testing.T, s *Store, log *silentLog) {
			ticket := aCommit(t, s)
			callers := []<-chan left{caller(func() error { return s.WaitDurable(ticket) }), caller(func() error { return s.WaitDurable(ticket) })}
			time.Sleep(3 * time.Hour)
			callers = append(callers,
				caller(func() error { return s.WaitFollowed(t.Context(), nil, ticket) }),
				caller(func() error { return followed(t.Context(), s, ticket) }),
			)
			for _, c := range callers {
				mustWait(t, c)
			}
			log.silent.Store(false)
			log.answers <- outcome
			for i, c := range callers {
				if l := <-c; !errors.Is(l.err, outcome) {
					t.Errorf("caller %d has left after %v with %v, want %v", i, l.after, l.err, outcome)
				}
			}
			if s.Durable(ticket) != (outcome == nil) {
				t.Errorf("the outcome is %v, and the commit durable: %v", outcome, s.Durable(ticket))
			}
			if err := s.WaitDurable(ticket); !errors.Is(err, outcome) {
				t.Errorf("a caller after the outcome %v: %v", outcome, err)
			}
		})
	}
}

// A reader that came while a sync was under way waits for the next one, because the first shows too little.
//
// Proves O7 and N4 over a log.
func TestReaderWaitsForASyncAfterItsRead(t *testing.T) {
	overSilentLog(t, func(t *testing.T, s *Store, log *silentLog) {
		commit := aCommit(t, s)
		writer := caller(func() error { return s.WaitDurable(commit) })
		before := log.asked.Load()
		reader := caller(func() error { return s.WaitFollowed(t.Context(), nil, s.Seen(commit)) })
		log.answers <- nil
		if l := <-writer; l.err != nil {
			t.Errorf("the writer: %v", l.err)
		}
		mustWait(t, reader)
		log.answers <- nil
		if l := <-reader; l.err != nil || log.asked.Load() != before+1 {
			t.Errorf("the reader has left after %d syncs more: %v", log.asked.Load()-before, l.err)
		}
	})
}

// A store over a log that does not answer is closed after 10 s, and not before, and its directory is free then.
func TestCloseGivesUpASilentLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := memOptions(vfs.NewMem())
		o.Pebble.NoLog, o.Pebble.NoCompactions = true, true
		var log *silentLog
		o.Over = func(view engine.Engine) (engine.Engine, error) {
			log = newSilentLog(view)
			return log, nil
		}
		s := open(t, o)
		log.silent.Store(true)
		ticket := aCommit(t, s)
		waits := []<-chan left{caller(func() error { return s.WaitDurable(ticket) }), caller(func() error { return followed(t.Context(), s, ticket) })}
		closed := caller(s.Close)
		time.Sleep(10*time.Second - time.Nanosecond)
		mustWait(t, closed)
		if l := <-closed; !errors.Is(l.err, errGaveUp) || l.after != 10*time.Second {
			t.Errorf("Close has ended after %v: %v", l.after, l.err)
		}
		for _, c := range waits {
			if l := <-c; !errors.Is(l.err, ErrStorage) || errors.Is(l.err, ErrUnconfirmed) {
				t.Errorf("a caller has left after %v: %v", l.after, l.err)
			}
		}
		checkAndClose(t, open(t, o))
	})
}

// Close waits for a log that answers within 10 s.
func TestCloseWaitsForALogThatAnswers(t *testing.T) {
	overSilentLog(t, func(t *testing.T, s *Store, log *silentLog) {
		aCommit(t, s)
		closed := caller(s.Close)
		time.Sleep(10*time.Second - time.Nanosecond)
		log.silent.Store(false)
		log.answers <- nil
		if l := <-closed; l.err != nil {
			t.Errorf("Close: %v", l.err)
		}
		select {
		case <-log.gaveUp: // Close makes the engine give up what remains
		default:
			t.Error("the log was not told that the store has ended")
		}
	})
}

// Abandon ends a sync that waits for the log, and waits for no time.
func TestAbandonOfASilentLog(t *testing.T) {
	overSilentLog(t, func(t *testing.T, s *Store, _ *silentLog) {
		ticket := aCommit(t, s)
		waits := caller(func() error { return s.WaitDurable(ticket) })
		if l := <-caller(s.Abandon); l.err != nil || l.after != 0 {
			t.Errorf("Abandon has taken %v: %v", l.after, l.err)
		}
		if l := <-waits; !errors.Is(l.err, ErrClosed) {
			t.Errorf("a caller: %v", l.err)
		}
	})
}

// A commit is refused while the log has no space, and is accepted when it has. All looks at the space agree, and those that
// store nothing are no refused commits.
//
// Proves O17 and N8 over a log.
func TestFullLogRefusesCommits(t *testing.T) {
	log := newSilentLog(memstore.New())
	s := open(t, Options{Engine: log, Shards: 4})
	for range 2 {
		log.full.Store(true)
		applied := s.Applied()
		if err := s.LookAtSpace(); !errors.Is(err, ErrNoSpace) || !errors.Is(err, errLogFull) {
			t.Errorf("LookAtSpace: %v", err)
		}
		if at := s.RefusedAt(); !at.IsZero() {
			t.Errorf("a look was counted as a refused commit at %v", at)
		}
		if _, err := s.Commit(metaBatch("row", 10)); !errors.Is(err, ErrNoSpace) || !errors.Is(err, errLogFull) {
			t.Errorf("Commit: %v", err)
		}
		if err := s.Space(); !errors.Is(err, ErrNoSpace) || s.RefusedAt().IsZero() || s.Applied() != applied {
			t.Errorf("Space: %v, refused at %v", err, s.RefusedAt())
		}
		log.full.Store(false)
		if err := errors.Join(s.LookAtSpace(), s.Space(), s.WaitDurable(aCommit(t, s))); err != nil {
			t.Errorf("with space: %v", err)
		}
		s.space.refusedAt.Store(0)
	}
	checkAndClose(t, s)
}

// Seen costs nothing on one machine, and takes a ticket of its own over a log.
func TestSeen(t *testing.T) {
	plain := memStore(t)
	ticket := aCommit(t, plain)
	if cost := testing.AllocsPerRun(100, func() { _ = plain.Seen(ticket) }); cost != 0 || plain.Seen(ticket) != ticket || plain.Applied() != ticket || plain.OverLog() {
		t.Errorf("on one machine Seen(%d) is %d, with %v allocations", ticket, plain.Seen(ticket), cost)
	}
	s := open(t, Options{Engine: newSilentLog(memstore.New()), Shards: 4})
	ticket = aCommit(t, s)
	if seen := s.Seen(ticket); seen != ticket+1 || s.Applied() != seen || !s.OverLog() {
		t.Errorf("over a log Seen(%d) is %d, and %d was applied", ticket, seen, s.Applied())
	}
	checkAndClose(t, s)
}

// A confirmation tells of the moment at which its sync began, and not of that of its answer, because another process may have
// taken the log over in between.
//
// Proves N5.
func TestConfirmedIsTheBeginOfTheSync(t *testing.T) {
	overSilentLog(t, func(t *testing.T, s *Store, log *silentLog) {
		time.Sleep(time.Second)
		began := s.seams.Steady()
		if age := began.Sub(s.Confirmed()); age != time.Second {
			t.Errorf("the opening was confirmed %v ago, want 1s", age)
		}
		ends := caller(func() error { return s.WaitDurable(s.Seen(0)) })
		time.Sleep(5 * time.Second)
		if got := s.Confirmed(); !got.Equal(began.Add(-time.Second)) {
			t.Errorf("a sync without an answer has confirmed %v after the begin", got.Sub(began))
		}
		log.answers <- nil
		if e := <-ends; e.err != nil {
			t.Fatal(e.err)
		}
		if got := s.Confirmed(); !got.Equal(began) {
			t.Errorf("the answer confirms %v after the begin of the sync, want 0", got.Sub(began))
		}
	})
}

// The owner of a log is lost if another node takes the store over, and the last one has not closed it.
//
// Proves A8 over a log.
func TestOwnerLost(t *testing.T) {
	for what, c := range map[string]struct{ first, clean, replaced, lost bool }{
		"a new store":                      {true, false, true, false},
		"an end in order, the same node":   {false, true, false, false},
		"an end in order, another node":    {false, true, true, false},
		"an unclean end, the same node":    {false, false, false, false},
		"an unclean end, and another node": {false, false, true, true},
	} {
		view := memstore.New()
		if !c.first {
			s := open(t, Options{Engine: newSilentLog(view), Shards: 4})
			if c.clean {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			view = view.Crash(0)
			_ = s.Abandon() // the view has ended
		}
		log := newSilentLog(view)
		log.replaced = c.replaced
		s := open(t, Options{Engine: log, Shards: 4})
		if got := s.OwnerLost(); got != c.lost {
			t.Errorf("%s: OwnerLost is %t", what, got)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	s := memStore(t)
	if s.OwnerLost() {
		t.Error("a store on one machine has lost an owner")
	}
}
