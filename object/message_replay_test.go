package object_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/internal/testing/crashes"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Proves M5, A11. A dead letter of a message that is replayed has all its attempts again and keeps
// its argument, its sender and its idempotency key; the letter goes with the commit that
// sends it. While too many messages wait, the letter stays.
func TestReplayOfAMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, broken := context.Background(), true
		var runs int
		var letters []object.DeadLetter
		class := object.Define("c", func(_ context.Context, st *object.State) (*tally, error) { return &tally{st}, nil }, object.ClassOptions{MaxWaiting: 1})
		take := object.Handle(class, "take", func(c *tally, _ context.Context, text string) (string, error) {
			if runs++; broken {
				return "", object.Permanent(errors.New("no"))
			}
			return c.st.Name() + " took " + text, nil
		})
		send := object.Handle(class, "send", func(c *tally, ctx context.Context, text string) (int, error) {
			return 0, take.Send(ctx, c.st, "b", text, object.Idempotent("key", time.Hour))
		})
		h := opened(t, memstore.New(), class)
		if _, err := send.Call(ctx, h, "a", "it"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var err error
		if letters, err = lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage})); err != nil || len(letters) != 1 || runs != 1 {
			t.Fatalf("%d runs, dead letters %+v, %v", runs, letters, err)
		}
		again := func() error { return h.ReplayDeadLetter(ctx, letters[0].ID, letters[0].Seq) }
		if err := again(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if letters, err = lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage})); err != nil || len(letters) != 1 || runs != 2 || letters[0].Attempts != 1 || letters[0].From != class.ID("a") {
			t.Fatalf("after a replay %d runs, dead letters %+v, %v", runs, letters, err)
		}
		broken = false
		if err := again(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := again(); !errors.Is(err, object.ErrNoDeadLetter) {
			t.Errorf("a replay without a letter: %v", err)
		}
		// The call has the key of the message, so it gets the answer of the message's run.
		if got, err := take.Call(ctx, h, "b", "other", object.Idempotent("key", time.Hour)); got != "b took it" || err != nil || runs != 3 {
			t.Errorf("%d runs, the answer is %q, %v", runs, got, err)
		}
		if n, err := underWay(h.Store()); n != 0 || err != nil {
			t.Errorf("%d messages are left, %v", n, err)
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

// Proves M5, A11. Case MS7: a crash at any point of a replay leaves the letter or the message, and
// its effect comes once.
func TestReplayedMessageAfterACrashAtEveryPoint(t *testing.T) {
	crashes.Try(t, func(s *harness.Sim) {
		fixed := false
		class := object.Define("c", func(_ context.Context, st *object.State) (*tally, error) { return &tally{st}, nil })
		add := object.Handle(class, "add", func(c *tally, ctx context.Context, n int) (int, error) {
			if !fixed {
				return 0, object.Permanent(errors.New("no"))
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
		s.Advance(10 * time.Second)
		fixed = true
		s.OK(s.Retry(func() error {
			return s.WithHost(func(ctx context.Context, h *object.Host) error {
				letters, err := lettersOf(h.DeadLetters(ctx, object.DeadLettersOptions{Limit: object.MaxPage}))
				if err != nil || len(letters) == 0 {
					return err
				}
				err = h.ReplayDeadLetter(ctx, letters[0].ID, letters[0].Seq)
				if errors.Is(err, object.ErrNoDeadLetter) {
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

// sentOnce checks that the message of the story above stands in one place.
func sentOnce(st *storage.Store) error {
	var sent, sum, letters int
	if _, err := harness.Stored(st, storage.ID{Class: "c", Name: "s"}, "sent", &sent); err != nil {
		return err
	}
	if _, err := harness.Stored(st, storage.ID{Class: "c", Name: "t"}, "sum", &sum); err != nil {
		return err
	}
	_, err := st.ListDead(storage.DeadOptions{}, func(storage.ID, uint64, []byte) bool { letters++; return true })
	n, more := underWay(st)
	if err = errors.Join(err, more); err == nil && letters+n+sum/5 != sent {
		err = fmt.Errorf("%d letters, %d messages, a sum of %d, and %d were sent", letters, n, sum, sent)
	}
	return err
}
