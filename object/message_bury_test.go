package object_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// waiting returns the numbers of the messages that wait for b.
func (m *mailFixture) waiting() (seqs []uint64) {
	m.t.Helper()
	in, err := m.host.Inspect(context.Background(), m.id("b"))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, s := range in.Messages {
		seqs = append(seqs, s.Seq)
	}
	return seqs
}

// bury buries a message of b.
func (m *mailFixture) bury(seq uint64) {
	m.t.Helper()
	if err := m.host.BuryMessage(context.Background(), m.id("b"), seq); err != nil {
		m.t.Error(err)
	}
}

// Proves M8, M7: a message that pauses its receiver is buried, and those behind it are handled in their order.
// The receiver has room for another one at once. The letter can be replayed, and the message is at the end then.
func TestBuryMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t, object.ClassOptions{MaxWaiting: 3})
		m.open()
		defer m.close()
		stuck := true
		m.on(func(_ context.Context, _ *thing, text string) error {
			if text == "1" && stuck {
				return object.ErrOverloaded
			}
			return nil
		})
		m.must("a", m.sends("b", "1", "2", "3"))
		m.came("b:1")
		if _, err := m.call("a", m.sends("b", "4")); !errors.Is(err, object.ErrOutboxFull) {
			t.Errorf("a full receiver: %v", err)
		}
		first := m.waiting()[0]
		m.bury(first)
		if err := m.host.BuryMessage(context.Background(), m.id("b"), first); !errors.Is(err, object.ErrNoMessage) || !strings.Contains(err.Error(), "thing/b") {
			t.Errorf("a message that was buried: %v", err)
		}
		m.must("a", m.sends("b", "4"))
		m.left(3)
		pass(2 * time.Second)
		m.came("b:2", "b:3", "b:4")
		m.left(0)
		if n := object.StoredCount(m.host); n != 0 {
			t.Errorf("%d messages are counted", n)
		}
		letters := m.letters()
		if len(letters) != 1 || letters[0].Seq != first || letters[0].Reason != "buried" || letters[0].Kind != object.DeadMessage ||
			letters[0].From != m.id("a") || letters[0].LastError != "buried by an operator" || string(letters[0].Arg) != `"1"` {
			t.Fatalf("dead letters: %+v", letters)
		}
		stuck = false
		if err := m.host.ReplayDeadLetter(context.Background(), m.id("b"), first); err != nil {
			t.Fatal(err)
		}
		m.came("b:1")
	})
}

// Proves M8: a message that waits for its time or for another attempt is buried with its attempts and its
// last error. Its replay comes at once.
func TestBuryMessageWithATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t, exactly(5))
		m.open()
		defer m.close()
		fails := true
		m.on(func(context.Context, *thing, string) error {
			if fails {
				return errOnPurpose
			}
			return nil
		})
		m.must("a", m.delays(time.Hour, "b", "1"))
		m.must("a", m.sends("b", "2"))
		m.came("b:2")
		for _, seq := range m.waiting() {
			m.bury(seq)
		}
		pass(2 * time.Hour)
		m.came()
		m.left(0)
		if n := object.LaterCount(m.host, m.id("b")) + object.StoredCount(m.host); n != 0 {
			t.Errorf("%d messages are counted", n)
		}
		letters := m.letters()
		if len(letters) != 2 || letters[0].Attempts != 0 || letters[1].Attempts != 1 || letters[1].LastError != errOnPurpose.Error() {
			t.Fatalf("dead letters: %+v", letters)
		}
		fails = false
		for i, d := range letters {
			if err := m.host.ReplayDeadLetter(context.Background(), m.id("b"), d.Seq); err != nil {
				t.Fatal(err)
			}
			m.came(fmt.Sprint("b:", i+1))
		}
	})
}

// Proves M8: a handler that has lent its turn out commits nothing more once its message is buried: neither by
// a Sync nor at its end. The message is in the letter, and is not handled again.
func TestBuryMessageOfALentTurn(t *testing.T) {
	for name, delay := range map[string]time.Duration{"in the queue": 0, "by time": time.Hour} {
		for _, syncs := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", syncs ", syncs), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					m := newMail(t)
					m.open()
					defer m.close()
					gate := make(chan struct{})
					m.on(func(ctx context.Context, th *thing, text string) error {
						err := th.st.Storage().Put(ctx, "before", 1)
						err = errors.Join(err, th.st.Release(ctx, func(context.Context) error { <-gate; return nil }))
						err = errors.Join(err, th.st.Storage().Put(ctx, "after", 1))
						if syncs {
							_ = th.st.Sync(ctx)
						}
						return err
					})
					m.must("a", m.delays(delay, "b", "1"))
					pass(delay)
					m.came("b:1")
					m.bury(m.waiting()[0])
					close(gate)
					pass(time.Hour)
					m.came()
					m.left(0)
					if len(m.letters()) != 1 || m.stored("b", "before") != "1" || m.stored("b", "after") != "" || object.StoredCount(m.host) != 0 {
						t.Errorf("letters: %+v; stored: %q and %q", m.letters(), m.stored("b", "before"), m.stored("b", "after"))
					}
				})
			})
		}
	}
}

// Proves M8, M7: the end of a lent turn of a buried message takes no other from the count of those that wait.
func TestBuryMessageOfALentTurnBesideAPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t, object.ClassOptions{MaxWaiting: 3})
		m.open()
		defer m.close()
		gate := make(chan struct{})
		m.on(func(ctx context.Context, th *thing, text string) error {
			if text != "1" {
				return object.ErrOverloaded
			}
			return errors.Join(th.st.Release(ctx, func(context.Context) error { <-gate; return nil }), th.st.Storage().Put(ctx, "after", 1))
		})
		m.must("a", m.sends("b", "1"))
		m.came("b:1")
		m.must("a", m.sends("b", "2", "3"))
		m.came("b:2")
		m.bury(m.waiting()[0])
		close(gate)
		pass(0)
		m.must("a", m.sends("b", "4"))
		if _, err := m.call("a", m.sends("b", "5")); !errors.Is(err, object.ErrOutboxFull) {
			t.Errorf("a full receiver: %v", err)
		}
		m.left(3)
	})
}

// Proves M8: a message that is being handled ends first, and is gone then. A name, a class or a number that is
// not there is an error.
func TestBuryMessageThatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		m.on(func(context.Context, *thing, string) error { time.Sleep(time.Second); return nil })
		m.must("a", m.sends("b", "1", "2"))
		m.came("b:1")
		ctx := context.Background()
		for _, test := range []struct {
			id   storage.ID
			seq  uint64
			want error
		}{
			{m.id("b"), m.waiting()[0], object.ErrNoMessage}, {m.id("b"), 0, object.ErrNoMessage}, {m.id("b"), 1<<64 - 1, object.ErrNoMessage},
			{storage.ID{Class: "unknown", Name: "b"}, 1, object.ErrUnknownClass}, {storage.ID{Class: "thing"}, 1, object.ErrBadName},
		} {
			if err := m.host.BuryMessage(ctx, test.id, test.seq); !errors.Is(err, test.want) {
				t.Errorf("%v %d: %v", test.id, test.seq, err)
			}
		}
		pass(2 * time.Second)
		m.came("b:2")
		m.left(0)
	})
}

// Proves M8: a message of a commit that is visible and not handed over yet is buried once it is handed over, and
// not handled.
func TestBuryMessageBeforeItsHandOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		e := &halting{Engine: m.mem}
		m.options.Storage.Engine = e
		m.open()
		defer m.close()
		open := make(chan struct{})
		halt := func() { <-open }
		e.then.Store(&halt)
		m.busy("x", m.sends("b", "1", "2"))
		done := make(chan error, 1)
		go func() { done <- m.host.BuryMessage(context.Background(), m.id("b"), m.waiting()[0]) }()
		pass(time.Second)
		close(open)
		if err := <-done; err != nil {
			t.Error(err)
		}
		pass(time.Second)
		m.came("b:2")
		m.left(0)
		if n := len(m.letters()); n != 1 || object.StoredCount(m.host) != 0 {
			t.Errorf("%d letters, %d messages are counted", n, object.StoredCount(m.host))
		}
	})
}

// Proves M8, A11. Case MS11: a crash at any point of BuryMessage, or of the replay after it, leaves a message or a
// letter, and the effect comes once.
func TestBuriedMessageAfterACrashAtEveryPoint(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		fixed := false
		class := object.Define("c", func(_ context.Context, st *object.State) (*tally, error) { return &tally{st}, nil })
		add := object.Handle(class, "add", func(c *tally, ctx context.Context, n int) (int, error) {
			if !fixed {
				return 0, object.ErrOverloaded
			}
			return c.add(ctx, n)
		})
		send := object.Handle(class, "send", func(c *tally, ctx context.Context, n int) (int, error) {
			if err := c.st.Storage().Put(ctx, "sent", 1); err != nil {
				return 0, err
			}
			return n, add.Send(ctx, c.st, "t", n)
		})
		s.Host(class)
		s.OK(s.Retry(func() error {
			_, err := send.Call(s.Context(), s, "s", 5, object.Idempotent("sent", time.Hour))
			return err
		}))
		to := class.ID("t")
		s.OK(s.Retry(func() error {
			return s.WithHost(func(ctx context.Context, h *object.Host) error {
				in, err := h.Inspect(ctx, to)
				if err != nil || len(in.Messages) == 0 { // buried before, with the answer lost
					return err
				}
				return h.BuryMessage(ctx, to, in.Messages[0].Seq)
			})
		}))
		fixed = true
		s.OK(s.Retry(func() error {
			return s.WithHost(func(ctx context.Context, h *object.Host) error {
				letters, err := lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage}))
				if err != nil || len(letters) == 0 {
					return err
				}
				if err = h.ReplayDeadLetter(ctx, to, letters[0].Seq); errors.Is(err, object.ErrNoDeadLetter) {
					return nil // replayed before, with the answer lost
				}
				return err
			})
		}))
		s.Advance(time.Minute)
		s.Finally("the effect has come once", func() error {
			sum, err := add.Call(s.Context(), s, "t", 0)
			if n, more := underWay(s.Store()); sum != 5 || err != nil || n != 0 || more != nil {
				return fmt.Errorf("the sum is %d, %v; %d messages are left, %v", sum, err, n, more)
			}
			return nil
		})
	}, harness.NoLostAck, harness.NoTornBatch, harness.Invariant("what was sent is a message, a letter or done", sentOnce))
}
