package object_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// tally counts the messages that reach it. Those with a negative number fail.
type tally struct{ st *object.State }

func (c *tally) add(ctx context.Context, n int) (sum int, err error) {
	if n < 0 {
		return 0, fmt.Errorf("no %d", n)
	}
	if _, err := c.st.Storage().GetInto(ctx, "sum", &sum); err != nil {
		return 0, err
	}
	sum += n
	return sum, c.st.Storage().Put(ctx, "sum", sum)
}

// tallies is a class of tallies and one of objects that send to them.
type tallies struct {
	tally, sender *object.Class[tally]
	add           *object.Method[int, int]
	send          *object.Method[[]int, int]
}

func newTallies() *tallies {
	make := func(_ context.Context, st *object.State) (*tally, error) { return &tally{st}, nil }
	p := &tallies{tally: object.Define("tally", make), sender: object.Define("sender", make)}
	p.add = object.Handle(p.tally, "add", (*tally).add)
	p.send = object.Handle(p.sender, "send", func(c *tally, ctx context.Context, ns []int) (int, error) {
		for _, n := range ns {
			if err := p.add.Send(ctx, c.st, "t", n); err != nil {
				return 0, err
			}
		}
		return 0, nil
	})
	return p
}

// opened opens a host over mem with the given classes.
func opened(t *testing.T, mem *memstore.Store, defs ...object.Definition) *object.Host {
	t.Helper()
	h, err := object.Open(object.Options{Storage: storage.Options{Engine: mem, Shards: 2}, Logger: slog.New(slog.DiscardHandler)}, defs...)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Proves M4. Delete with WithMessages removes the messages to the object: those that wait for
// another attempt, those behind a pause, and those of a class that is not registered.
// Without the option they stay. A later message reaches a fresh object.
func TestDeleteWithMessages(t *testing.T) {
	var many []int // more than one commit removes
	for range 2001 {
		many = append(many, 1)
	}
	for _, test := range []struct {
		name   string
		parked bool
		sent   []int
		with   bool
		left   int // messages after Delete
		sum    int // of a later message of 5
	}{
		{"failed", false, []int{1, -1, 2, -2}, false, 2, 5},
		{"failed, with messages", false, []int{1, -1, 2, -2}, true, 0, 5},
		{"parked", true, many, false, 2001, 2006},
		{"parked, with messages", true, many, true, 0, 5},
		{"parked, one commit", true, many[:1000], true, 0, 5},
		{"parked, one more", true, many[:1001], true, 0, 5},
		{"none", true, nil, true, 0, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				p, mem, ctx := newTallies(), memstore.New(), context.Background()
				defs := []object.Definition{p.sender, p.tally}
				if test.parked {
					defs = defs[:1]
				}
				h := opened(t, mem, defs...)
				if _, err := p.send.Call(ctx, h, "s", test.sent); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				var opts []object.DeleteOption
				if test.with {
					opts = append(opts, object.WithMessages())
				}
				if err := h.Delete(ctx, p.tally.ID("t"), opts...); err != nil {
					t.Fatal(err)
				}
				if n, err := underWay(h.Store()); n != test.left || err != nil {
					t.Errorf("%d messages are left, %v, want %d", n, err, test.left)
				}
				if err := h.Store().Check(); err != nil {
					t.Error(err)
				}
				if test.parked {
					if err := h.Shutdown(ctx); err != nil {
						t.Fatal(err)
					}
					h = opened(t, mem.Crash(0), p.sender, p.tally) // all is synced
				}
				if _, err := p.send.Call(ctx, h, "s", []int{5}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if sum, err := p.add.Call(ctx, h, "t", 0); sum != test.sum || err != nil {
					t.Errorf("the sum is %d, %v, want %d", sum, err, test.sum)
				}
				if err := h.Shutdown(ctx); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// A message on trial or in a mailbox that Delete with WithMessages has removed is not
// handled afterwards, wherever the receiver is: it is held back until the end of Delete.
func TestDeleteWithMessagesWhileTheyAreHandled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p, ctx := newTallies(), context.Background()
		began := make(chan struct{}, 1)
		runs := 0
		note := object.Handle(p.tally, "note", func(*tally, context.Context, int) (int, error) { runs++; return 0, nil })
		send := object.Handle(p.sender, "send notes", func(c *tally, ctx context.Context, n int) (int, error) {
			for range n {
				if err := note.Send(ctx, c.st, "t", n); err != nil {
					return 0, err
				}
			}
			return 0, nil
		})
		wait := object.Handle(p.tally, "wait", func(_ *tally, ctx context.Context, _ int) (int, error) {
			began <- struct{}{}
			<-ctx.Done()
			return 0, ctx.Err()
		})
		h := opened(t, memstore.New(), p.sender, p.tally)
		go func() { _, _ = wait.Call(ctx, h, "t", 0) }()
		<-began
		if _, err := send.Call(ctx, h, "s", 3); err != nil {
			t.Fatal(err)
		}
		if err := h.Delete(ctx, p.tally.ID("t"), object.WithMessages()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if runs != 0 {
			t.Errorf("%d messages were handled", runs)
		}
		if n, err := underWay(h.Store()); n != 0 || err != nil {
			t.Errorf("%d messages are left, %v", n, err)
		}
		if err := h.Shutdown(ctx); err != nil {
			t.Fatal(err)
		}
	})
}

// halting is an engine that calls a function once, before the next batch is applied, and one after
// it.
type halting struct {
	engine.Engine
	next, then atomic.Pointer[func()]
}

func (e *halting) Apply(repr []byte) error {
	if f := e.next.Swap(nil); f != nil {
		(*f)()
	}
	then := e.then.Swap(nil)
	err := e.Engine.Apply(repr)
	if then != nil {
		(*then)()
	}
	return err
}

// newHalting is a mail fixture over an engine of that kind, with a turn of b that lasts until its
// instance ends. A second call waits behind it, and takes a second.
func newHalting(t *testing.T) (*mailFixture, *halting) {
	m := newMail(t)
	e := &halting{Engine: m.mem}
	m.options.Storage.Engine = e
	m.open()
	m.busy("b", func(_ *thing, ctx context.Context) (any, error) { <-ctx.Done(); return nil, ctx.Err() })
	m.busy("b", func(*thing, context.Context) (any, error) { time.Sleep(time.Second); return nil, nil })
	return m, e
}

// busy has a thing run an action on a goroutine of its own, or lets it wait in the mailbox.
func (m *mailFixture) busy(name string, act action) {
	go func() { _, _ = m.call(name, act) }()
	synctest.Wait()
}

// deletes begins a Delete with messages of b, and returns the channel that gets its error.
func (m *mailFixture) deletes(ctx context.Context) <-chan error {
	done := make(chan error, 1)
	go func() { done <- m.host.Delete(ctx, m.id("b"), object.WithMessages()) }()
	return done
}

// Proves M4. A delayed message that is due before a Delete with messages ends is not handled: it
// waits, and is gone then.
func TestDueMessageWaitsForADelete(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m, _ := newHalting(t)
		defer m.close()
		m.must("a", m.delays(time.Second, "b", "1"))
		pass(2 * time.Second) // it is in the mailbox
		if err := <-m.deletes(context.Background()); err != nil {
			t.Error(err)
		}
		pass(time.Minute)
		m.came()
		m.left(0)
	})
}

// Proves M4. The context of a Delete with messages ends while its turn commits. No message that it
// removes is handled, also if the receiver's reader goes on meanwhile.
func TestDeleteWithMessagesWhoseCallerLeaves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m, e := newHalting(t)
		defer m.close()
		m.must("a", m.sends("b", "1", "2"))
		ctx, cancel := context.WithCancel(context.Background())
		done := m.deletes(ctx)
		pass(500 * time.Millisecond) // it waits behind the call that takes a second
		leave := func() {
			cancel()
			if err := <-done; !errors.Is(err, object.ErrUnknown) {
				t.Errorf("the caller that leaves got %v", err)
			}
			time.Sleep(time.Second)
		}
		e.next.Store(&leave)
		pass(time.Minute)
		m.came()
		m.left(0)
		m.must("a", m.sends("b", "3"))
		m.came("b:3")
	})
}

// Proves M4. Delete with messages removes the messages of each commit that has ended, also while an
// older commit, to another object, is under way.
func TestDeleteWithMessagesWaitsForAnOlderCommit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m, e := newHalting(t)
		defer m.close()
		open := make(chan struct{})
		wait := func() { <-open }
		e.next.Store(&wait)
		m.busy("a", m.sends("c", "1"))
		m.must("x", m.sends("b", "2"))
		done := m.deletes(context.Background())
		pass(10 * time.Second)
		close(open)
		if err := <-done; err != nil {
			t.Error(err)
		}
		pass(time.Minute)
		m.came("c:1")
		m.left(0)
	})
}
