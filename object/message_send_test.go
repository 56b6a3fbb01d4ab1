package object_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// mailFixture is a fixture with things that get messages of one text each. Most texts are a
// name, and what follows after a space, which only makes the message larger.
type mailFixture struct {
	*fixture
	mail  *object.Method[string, int]
	note  *object.Method[string, int] // sendable with an Outbox
	mu    sync.Mutex
	log   []string // receiver:text, at the begin of each handler
	react func(ctx context.Context, th *thing, text string) error
}

func newMail(t testing.TB, opts ...object.ClassOptions) *mailFixture {
	m := &mailFixture{fixture: newFixture(t, opts...)}
	m.mail = object.Handle(m.class, "mail", m.handle)
	m.note = object.Handle(m.class, "note", m.handle, object.Sent(func(string) int { return -1 }))
	return m
}

// handle keeps the text in the log and stores it in the thing's key of its name, and then
// does what the test wants.
func (m *mailFixture) handle(th *thing, ctx context.Context, text string) (int, error) {
	beat()
	m.mu.Lock()
	m.log = append(m.log, th.st.Name()+":"+text)
	n, react := len(m.log), m.react
	m.mu.Unlock()
	if react != nil {
		if err := react(ctx, th, text); err != nil {
			return 0, err
		}
	}
	var count int
	key, _, _ := strings.Cut(text, " ")
	if _, err := th.st.Storage().GetInto(ctx, key, &count); err != nil {
		return 0, err
	}
	return n, th.st.Storage().Put(ctx, key, count+1)
}

// on has handlers of messages do what fn does.
func (m *mailFixture) on(fn func(ctx context.Context, th *thing, text string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.react = fn
}

// got returns what has begun since the last call of got.
func (m *mailFixture) got() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := strings.Join(m.log, " ")
	m.log = nil
	return all
}

// sends is an action that sends texts to a thing.
func (m *mailFixture) sends(to string, texts ...string) action {
	return func(th *thing, ctx context.Context) (any, error) {
		for _, text := range texts {
			if err := m.mail.Send(ctx, th.st, to, text); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
}

// came fails the test unless these messages have begun since the last look, and no other.
func (m *mailFixture) came(want ...string) {
	m.t.Helper()
	pass(0)
	if got := m.got(); got != strings.Join(want, " ") {
		m.t.Errorf("%q came, want %q", got, want)
	}
}

// cameInAnyOrder is came for messages that have no order among them (M4).
func (m *mailFixture) cameInAnyOrder(want ...string) {
	m.t.Helper()
	pass(0)
	got := strings.Fields(m.got())
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		m.t.Errorf("%q came, want %q in any order", got, want)
	}
}

// left fails the test unless n messages are stored.
func (m *mailFixture) left(n int) {
	m.t.Helper()
	if got, err := underWay(m.host.Store()); got != n || err != nil {
		m.t.Errorf("%d messages are stored, %v, want %d", got, err, n)
	}
}

// Proves M1, M3: a message is sent if its part of the turn commits, and not otherwise.
func TestSendIsPartOfTheCommit(t *testing.T) {
	tests := []struct {
		name string
		act  func(m *mailFixture, th *thing, ctx context.Context) error
		want string
	}{
		{"turn", func(m *mailFixture, th *thing, ctx context.Context) error { return m.mail.Send(ctx, th.st, "b", "1") }, "b:1"},
		{"two to two", func(m *mailFixture, th *thing, ctx context.Context) error {
			return errors.Join(m.mail.Send(ctx, th.st, "b", "1"), m.mail.Send(ctx, th.st, "b", "2"))
		}, "b:1 b:2"},
		{"failing turn", func(m *mailFixture, th *thing, ctx context.Context) error {
			return errors.Join(m.mail.Send(ctx, th.st, "b", "1"), errOnPurpose)
		}, ""},
		{"panic", func(m *mailFixture, th *thing, ctx context.Context) error {
			_ = m.mail.Send(ctx, th.st, "b", "1")
			panic("on purpose")
		}, ""},
		{"failing turn after a Sync", func(m *mailFixture, th *thing, ctx context.Context) error {
			return errors.Join(m.mail.Send(ctx, th.st, "b", "1"), th.st.Sync(ctx), m.mail.Send(ctx, th.st, "b", "2"), errOnPurpose)
		}, "b:1"},
		{"Release", func(m *mailFixture, th *thing, ctx context.Context) error {
			return errors.Join(m.mail.Send(ctx, th.st, "b", "1"), th.st.Release(ctx, func(context.Context) error {
				m.came("b:1")
				return nil
			}), m.mail.Send(ctx, th.st, "b", "2"))
		}, "b:2"},
		{"undone transaction", func(m *mailFixture, th *thing, ctx context.Context) error {
			err := m.mail.Send(ctx, th.st, "b", "1")
			_ = th.st.Storage().Transaction(ctx, func(ctx context.Context, tx *object.Storage) error {
				return errors.Join(m.mail.Send(ctx, th.st, "b", "undone"), m.mail.Send(ctx, th.st, "c", "undone"), errOnPurpose)
			})
			return errors.Join(err, m.mail.Send(ctx, th.st, "b", "2"))
		}, "b:1 b:2"},
		{"nested transactions", func(m *mailFixture, th *thing, ctx context.Context) error {
			return th.st.Storage().Transaction(ctx, func(ctx context.Context, tx *object.Storage) error {
				err := m.mail.Send(ctx, th.st, "b", "1")
				_ = tx.Transaction(ctx, func(ctx context.Context, tx *object.Storage) error {
					return errors.Join(m.mail.Send(ctx, th.st, "b", "undone"), errOnPurpose)
				})
				inner := tx.Transaction(ctx, func(ctx context.Context, tx *object.Storage) error { return m.mail.Send(ctx, th.st, "b", "2") })
				return errors.Join(err, inner)
			})
		}, "b:1 b:2"},
		{"failing outer transaction", func(m *mailFixture, th *thing, ctx context.Context) error {
			_ = th.st.Storage().Transaction(ctx, func(ctx context.Context, tx *object.Storage) error {
				inner := tx.Transaction(ctx, func(ctx context.Context, tx *object.Storage) error { return m.mail.Send(ctx, th.st, "b", "undone") })
				return errors.Join(inner, errOnPurpose)
			})
			return nil
		}, ""},
		{"block that fails", func(m *mailFixture, th *thing, ctx context.Context) error {
			err := m.mail.Send(ctx, th.st, "b", "1")
			return errors.Join(err, th.st.BlockConcurrencyWhile(ctx, func(ctx context.Context) error {
				return errors.Join(m.mail.Send(ctx, th.st, "b", "2"), errOnPurpose)
			}))
		}, ""},
		{"block that ends well", func(m *mailFixture, th *thing, ctx context.Context) error {
			return th.st.BlockConcurrencyWhile(ctx, func(ctx context.Context) error { return m.mail.Send(ctx, th.st, "b", "1") })
		}, "b:1"},
		{"routine", func(m *mailFixture, th *thing, ctx context.Context) error {
			return th.st.Go(ctx, "sends", func(ctx context.Context) {
				if err := m.mail.Send(ctx, th.st, "b", "without a turn"); !errors.Is(err, object.ErrNoTurn) {
					m.t.Errorf("in a routine: %v", err)
				}
				_ = th.st.Do(ctx, func(ctx context.Context) error { return m.mail.Send(ctx, th.st, "b", "1") })
			})
		}, "b:1"},
		{"to oneself", func(m *mailFixture, th *thing, ctx context.Context) error {
			if err := m.mail.Send(ctx, th.st, "a", "1"); err != nil {
				return err
			}
			m.came() // not while the turn runs
			return nil
		}, "a:1"},
		{"purge of the sender", func(m *mailFixture, th *thing, ctx context.Context) error {
			return errors.Join(th.st.Storage().Put(ctx, "k", 1), m.mail.Send(ctx, th.st, "b", "1"), th.st.Driver().Purge(ctx))
		}, "b:1"},
		{"purge of the sender, which then is the receiver", func(m *mailFixture, th *thing, ctx context.Context) error {
			return errors.Join(th.st.Storage().Put(ctx, "k", 1), m.mail.Send(ctx, th.st, "a", "1"), th.st.Driver().Purge(ctx))
		}, "a:1"},
		{"DeleteAll of the sender", func(m *mailFixture, th *thing, ctx context.Context) error {
			return errors.Join(th.st.Storage().Put(ctx, "k", 1), m.mail.Send(ctx, th.st, "b", "1"), th.st.Storage().DeleteAll(ctx))
		}, "b:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := newMail(t)
				m.open()
				defer m.close()
				_, _ = m.call("a", func(th *thing, ctx context.Context) (any, error) { return nil, tt.act(m, th, ctx) })
				m.came(strings.Fields(tt.want)...)
				m.left(0)
			})
		})
	}
}

// Proves M1: a constructor sends with its own commit, and one that fails sends nothing.
func TestSendInAConstructor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		fails := true
		m.handleConstruct(func(ctx context.Context, th *thing) error {
			if th.st.Name() != "a" {
				return nil
			}
			err := m.mail.Send(ctx, th.st, "b", "1")
			if fails {
				err = errors.Join(err, errOnPurpose)
			}
			return err
		})
		if _, err := m.call("a", nothing); !errors.Is(err, object.ErrConstructor) {
			t.Errorf("the call says %v", err)
		}
		m.came()
		fails = false
		pass(time.Minute)
		m.must("a", nothing)
		m.came("b:1")
	})
}

// Proves M1: Send needs a turn of its own State.
func TestSendOutsideOfATurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		var state *object.State
		var turn context.Context
		m.must("a", func(th *thing, ctx context.Context) (any, error) {
			state, turn = th.st, ctx
			return nil, nil
		})
		for name, ctx := range map[string]context.Context{"no turn": context.Background(), "a turn that is over": turn} {
			if err := m.mail.Send(ctx, state, "b", "1"); !errors.Is(err, object.ErrNoTurn) {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := m.note.Call(ctx, state.Outbox(), "b", "1"); !errors.Is(err, object.ErrNoTurn) {
				t.Errorf("%s, with an outbox: %v", name, err)
			}
		}
		m.must("c", func(th *thing, ctx context.Context) (any, error) {
			if err := m.mail.Send(ctx, state, "b", "1"); !errors.Is(err, object.ErrNoTurn) {
				t.Errorf("with the state of another object: %v", err)
			}
			return nil, nil
		})
		m.came()
		m.left(0)
	})
}

// Proves M1: the bounds of names and sizes, on both sides, and nothing is sent beyond them.
func TestLimitsOfASend(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.options.MaxValueBytes, m.options.MaxBatchBytes = 1000, 3000
		m.open()
		defer m.close()
		text := func(n int) string { return "t " + strings.Repeat("x", n-2-len(`""`)) } // as JSON
		for _, tt := range []struct {
			name string
			to   []string
			text string
			want error
		}{
			{"no name", []string{""}, "1", object.ErrBadName},
			{"longest name", []string{strings.Repeat("n", 1024)}, "1", nil},
			{"too long a name", []string{strings.Repeat("n", 1025)}, "1", object.ErrBadName},
			{"no UTF-8", []string{"\xff"}, "1", object.ErrBadName},
			{"largest argument", []string{"b"}, text(1000), nil},
			{"too large an argument", []string{"b"}, text(1001), object.ErrValueTooLarge},
			{"two in a turn", []string{"b", "b"}, text(1000), nil},
			{"three in a turn", []string{"b", "b", "b"}, text(1000), object.ErrBatchTooLarge},
		} {
			var last error
			m.must("a", func(th *thing, ctx context.Context) (any, error) {
				for i, to := range tt.to {
					if last = m.mail.Send(ctx, th.st, to, tt.text); last != nil && i+1 < len(tt.to) {
						t.Errorf("%s: message %d: %v", tt.name, i, last)
					}
				}
				return nil, nil
			})
			if !errors.Is(last, tt.want) || (last == nil) != (tt.want == nil) {
				t.Errorf("%s: %v, want %v", tt.name, last, tt.want)
			}
			pass(0)
			sent := len(tt.to)
			if tt.want != nil {
				sent--
			}
			if got := strings.Count(m.got(), ":"); got != sent {
				t.Errorf("%s: %d messages came, want %d", tt.name, got, sent)
			}
		}
		bad := object.Handle(object.Define("bad", func(context.Context, *object.State) (*thing, error) { return nil, nil }), "m",
			func(*thing, context.Context, chan int) (int, error) { return 0, nil })
		m.must("a", func(th *thing, ctx context.Context) (any, error) {
			if err := bad.Send(ctx, th.st, "b", nil); err == nil || !strings.Contains(err.Error(), "encode the argument of m") {
				t.Errorf("an argument that cannot be encoded: %v", err)
			}
			return nil, nil
		})
		m.left(0)
	})
}

// Proves M1: an Outbox sends calls of methods that have an answer for it, and refuses
// others; a Caller passes a request on once.
func TestOutbox(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		m.must("a", func(th *thing, ctx context.Context) (any, error) {
			if n, err := m.note.Call(ctx, th.st.Outbox(), "b", "1"); n != -1 || err != nil {
				t.Errorf("the answer is %d, %v", n, err)
			}
			if _, err := m.mail.Call(ctx, th.st.Outbox(), "b", "2"); !errors.Is(err, object.ErrNeedsAnswer) {
				t.Errorf("without an answer: %v", err)
			}
			if _, err := m.note.Call(ctx, twice{th.st.Outbox()}, "b", "3"); err == nil || !strings.Contains(err.Error(), "passed on a request twice") {
				t.Errorf("twice: %v", err)
			}
			if _, err := m.note.Call(ctx, th.st.Outbox(), "", "4"); !errors.Is(err, object.ErrBadName) {
				t.Errorf("without a name: %v", err)
			}
			return nil, nil
		})
		m.came("b:1", "b:3")
	})
}

// twice is a Caller that passes each request on twice.
type twice struct{ object.Caller }

func (c twice) Invoke(ctx context.Context, r *object.Request) error {
	return errors.Join(c.Caller.Invoke(ctx, r), c.Caller.Invoke(ctx, r))
}

// Proves M4: a message and a call under one key share one answer, and the time of the key
// counts from the delivery.
func TestMessagesWithAKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		once := object.Idempotent("key", time.Hour)
		send := func(text string) {
			m.must("a", func(th *thing, ctx context.Context) (any, error) {
				return nil, m.mail.Send(ctx, th.st, "b", text, once)
			})
		}
		call := func(text string) int {
			n, err := m.mail.Call(context.Background(), m.host, "b", text, once)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		send("1")
		pass(0)
		answer := call("2")
		send("3")
		m.came("b:1")
		if again := call("4"); again != answer {
			t.Errorf("the answers are %d and %d", answer, again)
		}
		m.left(0)
		pass(time.Hour - time.Second)
		send("5")
		m.came()
		pass(time.Second + time.Second/2)
		send("6")
		m.came("b:6")
		pass(2 * time.Hour)
		call("7")
		send("8")
		m.came("b:7")
		m.must("a", func(th *thing, ctx context.Context) (any, error) { // two in one turn, and one under another method
			return nil, errors.Join(m.mail.Send(ctx, th.st, "c", "1", once), m.mail.Send(ctx, th.st, "c", "2", once), m.note.Send(ctx, th.st, "c", "3", once))
		})
		m.came("c:1", "c:3")

		// A message that waited on disk keeps its key, and the key's time begins with its delivery.
		m.handleConstruct(func(context.Context, *thing) error { return errOnPurpose })
		m.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, m.mail.Send(ctx, th.st, "d", "1", once) })
		pass(2 * time.Hour)
		m.handleConstruct(nil)
		pass(time.Minute)
		m.came("d:1")
		pass(time.Hour - time.Minute - time.Second)
		m.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, m.mail.Send(ctx, th.st, "d", "2", once) })
		m.came()
	})
}

// Proves M4, O1: messages make no object exist, neither as they wait nor when a handler has
// written nothing.
func TestMessagesMakeNoObject(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		m.handleConstruct(func(_ context.Context, th *thing) error {
			if th.st.Name() == "b" {
				return errOnPurpose
			}
			return nil
		})
		exists := func() bool {
			t.Helper()
			all, err := m.host.Objects(context.Background(), "thing", object.ObjectsOptions{Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(all, func(o object.ObjectInfo) bool { return o.ID.Name == "b" })
		}
		m.must("a", m.sends("b", "1", "2"))
		pass(time.Second)
		m.left(2)
		if exists() {
			t.Error("messages that wait make their receiver exist")
		}
		m.handleConstruct(nil)
		m.on(func(ctx context.Context, th *thing, text string) error {
			return th.st.Driver().Purge(ctx) // nothing of what it writes stays
		})
		pass(time.Minute)
		m.came("b:1", "b:2")
		m.left(0)
		if exists() {
			t.Error("a handler that leaves nothing makes its object exist")
		}
	})
}

// Proves M6: messages to a class that is not registered wait for a host that has it, and
// Parked names the class; those to a method that is not registered wait in order.
func TestMessagesToUnknownClassesAndMethods(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		later := newMail(t)
		later.class = object.Define("later", func(_ context.Context, st *object.State) (*thing, error) { return &thing{st: st}, nil })
		later.mail = object.Handle(later.class, "mail", later.handle)
		newMethod := object.Handle(object.Define("thing", func(context.Context, *object.State) (*thing, error) { return nil, nil }), "new",
			func(*thing, context.Context, string) (int, error) { return 0, nil })
		m.open()
		m.must("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, errors.Join(later.mail.Send(ctx, th.st, "x", "1"), newMethod.Send(ctx, th.st, "b", "2"), m.mail.Send(ctx, th.st, "b", "3"))
		})
		m.came()
		if parked, err := m.host.Parked(); fmt.Sprint(parked, err) != "[later] <nil>" {
			t.Errorf("parked: %v, %v", parked, err)
		}
		paused := m.host.PausedReceivers()
		if len(paused) != 1 || paused[0].ID != m.id("b") || paused[0].Waiting != 2 || !errors.Is(paused[0].Reason, object.ErrUnknownMethod) {
			t.Errorf("paused: %+v", paused)
		}
		pass(time.Hour)
		m.came()
		m.left(3)
		m.close()
		object.Handle(m.class, "new", m.handle)
		m.open(later.class)
		pass(0)
		m.came("b:2", "b:3")
		later.came("x:1")
		m.left(0)
		m.close()
	})
}

// Proves M4, M7: a stored message names its sender, its receiver and its method.
func TestStoredMessageTellsItsSender(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		m.handleConstruct(func(_ context.Context, th *thing) error {
			if th.st.Name() == "b" {
				return errOnPurpose
			}
			return nil
		})
		m.must("a", m.sends("b", "1"))
		pass(0)
		in, err := m.host.Inspect(context.Background(), m.id("b"))
		if err != nil || len(in.Messages) != 1 || in.Messages[0].From != (storage.ID{Class: "thing", Name: "a"}) || in.Messages[0].Method != "mail" || in.Paused == "" {
			t.Errorf("inspected: %+v, %v", in, err)
		}
	})
}
