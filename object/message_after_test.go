package object_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// delays is an action that sends texts to a thing with a delay.
func (m *mailFixture) delays(d time.Duration, to string, texts ...string) action {
	return func(th *thing, ctx context.Context) (any, error) {
		for _, text := range texts {
			if err := m.mail.Send(ctx, th.st, to, text, object.After(d)); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}
}

// Proves M4: a delayed message comes at its time, neither a moment early nor late. A delay of
// nothing or less is none. Those that were sent later pass it.
func TestAfter(t *testing.T) {
	for _, delay := range []time.Duration{-time.Hour, 0, 1, time.Second, 24 * time.Hour} {
		t.Run(delay.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := newMail(t)
				m.open()
				defer m.close()
				m.must("a", m.delays(delay, "b", "1"))
				if delay > 1 {
					m.must("a", m.sends("b", "2"))
					m.came("b:2")
					pass(delay - 1)
					m.came()
					m.left(1)
					pass(1)
				}
				pass(max(0, min(delay, 1)))
				m.came("b:1")
				m.left(0)
			})
		})
	}
}

// Proves M1, M4: a turn or a transaction that fails sends no delayed message.
func TestAfterIsPartOfTheCommit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		m.must("a", func(th *thing, ctx context.Context) (any, error) {
			_, before := m.delays(time.Second, "b", "1")(th, ctx)
			_ = th.st.Storage().Transaction(ctx, func(ctx context.Context, _ *object.Storage) error {
				_, err := m.delays(time.Second, "b", "undone", "undone")(th, ctx)
				return errors.Join(err, m.mail.Send(ctx, th.st, "b", "undone"), errOnPurpose)
			})
			_, after := m.delays(2*time.Second, "b", "2")(th, ctx)
			return nil, errors.Join(before, after, m.mail.Send(ctx, th.st, "b", "3"))
		})
		if _, err := m.call("a", func(th *thing, ctx context.Context) (any, error) {
			_, err := m.delays(time.Second, "b", "undone")(th, ctx)
			return nil, errors.Join(err, errOnPurpose)
		}); !errors.Is(err, errOnPurpose) {
			t.Error(err)
		}
		m.came("b:3")
		m.left(2)
		pass(time.Second)
		m.came("b:1")
		pass(time.Second)
		m.came("b:2")
	})
}

// Proves M4: a delayed message waits for its time over restarts and crashes, and one whose time
// passes while no process runs comes at the next Open. Inspect shows it and its time.
func TestAfterAcrossRestarts(t *testing.T) {
	for name, end := range map[string]func(*mailFixture){
		"shutdown": func(m *mailFixture) { m.close() },
		"crash":    func(m *mailFixture) { m.crash() },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := newMail(t)
				m.open()
				due := time.Now().Add(time.Hour)
				m.must("a", m.delays(time.Hour, "b", "1"))
				m.must("a", m.delays(2*time.Hour, "b", "2"))
				pass(30 * time.Minute)
				end(m)
				m.open()
				m.came()
				in, err := m.host.Inspect(context.Background(), m.id("b"))
				if err != nil || in.Exists || len(in.Messages) != 2 || !in.Messages[0].Due.Equal(due) || in.Messages[0].Attempts != 0 {
					t.Errorf("inspected: %+v, %v", in, err)
				}
				pass(30*time.Minute - time.Second)
				m.came()
				pass(time.Second)
				m.came("b:1")
				end(m)
				pass(3 * time.Hour)
				m.open()
				pass(0)
				m.came("b:2")
				m.left(0)
				m.close()
			})
		})
	}
}

// shifted is a clock that a test can put back.
type shifted struct {
	seam.Clock
	by atomic.Int64
}

func (c *shifted) Now() time.Time { return c.Clock.Now().Add(time.Duration(c.by.Load())) }

// Proves M4: a message is not early when the clock was put back: neither one that waits for
// its time, nor one that was due and waits for the turn of its receiver.
func TestAfterWithTheClockPutBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		clock := &shifted{Clock: seam.Seams{}.WithDefaults().Clock}
		m.options.Seams.Clock = clock
		m.open()
		defer m.close()
		m.must("a", m.delays(time.Hour, "b", "1"))
		pass(59 * time.Minute)
		clock.by.Store(-int64(time.Hour))
		pass(time.Hour)
		m.came()
		pass(time.Minute)
		m.came("b:1")

		m.must("a", m.delays(time.Minute, "b", "2"))
		m.must("b", func(*thing, context.Context) (any, error) { // the message waits for this turn
			time.Sleep(2 * time.Minute)
			clock.by.Add(-int64(time.Hour))
			return nil, nil
		})
		pass(59*time.Minute - time.Second)
		m.came()
		pass(2 * time.Second)
		m.came("b:2")
	})
}

// Proves M4: a call with After is refused before it runs, by each way to call, and a delay that is
// too long before anything is written.
func TestAfterIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		ctx := context.Background()
		for _, delay := range []time.Duration{-1, 0, time.Hour} {
			after := object.After(delay)
			_, call := m.mail.Call(ctx, m.host, "b", "1", after)
			_, named := m.host.CallBytes(ctx, "thing", "b", "mail", []byte(`"1"`), after)
			var inside error
			m.must("a", func(th *thing, ctx context.Context) (any, error) {
				_, inside = m.mail.Call(ctx, th.st, "b", "1", after)
				return nil, nil
			})
			for _, err := range []error{call, named, inside} {
				if !errors.Is(err, object.ErrDelayedCall) || !strings.Contains(err.Error(), "thing/b") {
					t.Error(err)
				}
			}
		}
		m.must("a", func(th *thing, ctx context.Context) (any, error) {
			for _, d := range []time.Duration{36525*24*time.Hour + 1, 1<<63 - 1} {
				if err := m.mail.Send(ctx, th.st, "b", "1", object.After(d)); !errors.Is(err, object.ErrBadDelay) {
					t.Error(err)
				}
			}
			return nil, m.mail.Send(ctx, th.st, "b", "1", object.After(36525*24*time.Hour))
		})
		pass(time.Hour)
		m.came()
		m.left(1)
	})
}

// Proves M4: the options of an Outbox hold for each call that has none of its own.
func TestOutboxWithOptions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		m.must("a", func(th *thing, ctx context.Context) (any, error) {
			box := th.st.Outbox(object.After(time.Hour), object.Idempotent("key", time.Hour))
			own := []object.CallOption{object.After(time.Minute), object.Idempotent("own", time.Hour)}
			n, first := m.note.Call(ctx, box, "b", "1")
			if n != -1 || box.(interface{ Seams() *seam.Seams }).Seams() == nil {
				t.Error("the answer of a message is", n)
			}
			_, second := m.note.Call(ctx, box, "b", "same key")
			_, third := m.note.Call(ctx, box, "b", "2", own...)
			_, fourth := m.note.Call(ctx, th.st.Outbox(object.After(2*time.Hour)), "b", "3")
			_, fifth := m.mail.Call(ctx, box, "b", "no answer")
			if !errors.Is(fifth, object.ErrNeedsAnswer) {
				t.Error(fifth)
			}
			return nil, errors.Join(first, second, third, fourth)
		})
		m.came()
		pass(time.Minute)
		m.came("b:2")
		pass(time.Hour)
		m.came("b:1")
		pass(time.Hour)
		m.came("b:3")
		m.left(0)
	})
}

// Proves M7: messages that wait for their time count in MaxWaiting and MaxMessages, also after
// a restart, and those to another object do not count.
func TestDelayedMessagesCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t, object.ClassOptions{MaxWaiting: 3})
		m.options.MaxMessages = 8
		m.open()
		defer func() { m.close() }() // another host than now
		other := "c"                 // counted in the same bucket
		for i := 0; !object.SameBucket(m.id("b"), m.id(other)); i++ {
			other = fmt.Sprint("c", i)
		}
		full := func(act action) {
			t.Helper()
			if _, err := m.call("a", act); !errors.Is(err, object.ErrOutboxFull) {
				t.Errorf("a full receiver: %v", err)
			}
		}
		for i := range 3 {
			m.must("a", m.delays(time.Duration(i+1)*time.Hour, "b", fmt.Sprint(i)))
		}
		for range 2 {
			full(m.delays(time.Hour, "b", "x"))
			full(m.sends("b", "x"))
			m.close()
			m.open()
			pass(0)
		}
		m.must("a", m.delays(10*time.Hour, other, "1", "2"))
		pass(time.Hour)
		m.came("b:0")
		m.must("a", m.delays(10*time.Hour, "b", "3"))
		full(m.delays(time.Hour, "b", "x"))
		if err := m.host.Delete(context.Background(), m.id("b"), object.WithMessages()); err != nil {
			t.Fatal(err)
		}
		m.left(2)
		m.must("a", m.delays(10*time.Hour, "b", "4"))
		m.must("a", m.delays(10*time.Hour, "b", "5"))
		m.must("a", m.sends("b", "6"))
		m.came("b:6")
		m.must("a", m.delays(10*time.Hour, "b", "7"))
		full(m.sends("b", "x"))
		m.must("a", m.delays(10*time.Hour, "d", "1", "2", "3"))
		m.left(8)
		full(m.delays(time.Hour, "e", "x"))
		pass(20 * time.Hour)
		m.left(0)
	})
}

// Proves M4: a delayed message outlives its receiver, and reaches a fresh object; with
// WithMessages it is gone. The receiver's alarm of the same moment rings too.
func TestAfterAndDelete(t *testing.T) {
	for _, with := range []bool{false, true} {
		t.Run(fmt.Sprint(with), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := newMail(t)
				m.open()
				defer m.close()
				rang := 0
				m.handleAlarm(func(*thing, context.Context, object.AlarmInfo) error { rang++; return nil })
				m.must("b", func(th *thing, ctx context.Context) (any, error) {
					return nil, errors.Join(th.st.Storage().Put(ctx, "k", 1), m.mail.Send(ctx, th.st, "b", "1", object.After(time.Hour)))
				})
				var opts []object.DeleteOption
				if with {
					opts = append(opts, object.WithMessages())
				}
				if err := m.host.Delete(context.Background(), m.id("b"), opts...); err != nil {
					t.Fatal(err)
				}
				m.must("b", func(th *thing, ctx context.Context) (any, error) {
					return nil, th.st.SetAlarm(ctx, th.st.Now().Add(time.Hour))
				})
				pass(time.Hour)
				if with {
					m.came()
				} else {
					m.came("b:1")
				}
				m.left(0)
				if rang != 1 || m.stored("b", "k") != "" {
					t.Errorf("the alarm rang %d times, and k is %q", rang, m.stored("b", "k"))
				}
			})
		})
	}
}

// Proves M5: a delayed message that fails is tried again, becomes a dead letter, and a replay
// of that comes at once.
func TestAfterThatFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t, exactly(2))
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
		pass(time.Hour)
		m.came("b:1")
		pass(10*time.Second - 1)
		m.came()
		pass(1)
		m.came("b:1")
		m.left(0)
		letters := m.letters()
		if len(letters) != 1 || letters[0].Attempts != 2 {
			t.Fatalf("dead letters: %+v", letters)
		}
		fails = false
		if err := m.host.ReplayDeadLetter(context.Background(), m.id("b"), letters[0].Seq); err != nil {
			t.Fatal(err)
		}
		m.came("b:1")
		m.left(0)
	})
}

// Proves M4, M6: messages that cannot be handled when they are due, however many, hold up no
// delayed message to another object. Those to an unknown method or class wait for the next
// Open, and those to an object whose constructor fails for half a minute.
func TestDelayedMessagesThatCannotBeHandled(t *testing.T) {
	const many = 1200 // more than are under way in three seconds, and more than the scheduler holds
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		var log loglines.Recorder
		m.options.Logger = log.Logger()
		later := object.Define("later", func(_ context.Context, st *object.State) (*thing, error) { return &thing{st: st}, nil })
		laterMail := object.Handle(later, "mail", m.handle)
		newMethod := object.Handle(object.Define("thing", func(context.Context, *object.State) (*thing, error) { return nil, nil }), "new",
			func(*thing, context.Context, string) (int, error) { return 0, nil })
		m.handleConstruct(func(_ context.Context, th *thing) error {
			if strings.HasPrefix(th.st.Name(), "b") {
				return errOnPurpose
			}
			return nil
		})
		m.open()
		m.must("a", func(th *thing, ctx context.Context) (any, error) {
			for i := range many { // one for each object of these, because an object has a share of the places
				if err := errors.Join(m.mail.Send(ctx, th.st, fmt.Sprint("b", i), "1", object.After(time.Hour)),
					newMethod.Send(ctx, th.st, "c", "2", object.After(time.Hour)),
					laterMail.Send(ctx, th.st, "d", "3", object.After(time.Hour))); err != nil {
					return nil, err
				}
			}
			for i := range 8 { // in both shards
				if err := m.mail.Send(ctx, th.st, fmt.Sprint("e", i), "4", object.After(time.Hour+time.Second)); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
		pass(time.Hour + 3*time.Second)
		if got := m.got(); strings.Count(got, ":4") != 8 || len(got) != len("e0:4 ")*8-1 {
			t.Errorf("in time came %q", got)
		}
		m.must("a", m.sends("c", "5"))
		m.came("c:5")
		m.handleConstruct(nil)
		pass(pauses)
		if got := strings.Fields(m.got()); len(got) != many || strings.Count(strings.Join(got, " "), ":1") != many {
			t.Errorf("%d came when the constructor was mended", len(got))
		}
		m.left(2 * many)
		if n := strings.Count(log.Text(slog.LevelWarn), "message waits for a method"); n != many {
			t.Errorf("%d messages to an unknown method are logged, want each once", n)
		}
		m.close()
		object.Handle(m.class, "new", m.handle)
		m.open(later)
		defer m.close()
		pass(time.Second)
		if got := m.got(); strings.Count(got, "c:2") != many || strings.Count(got, "d:3") != many {
			t.Errorf("%d came when the code was there", len(strings.Fields(got)))
		}
		m.left(0)
	})
}

// heard is a slog.Handler that calls a function with each line.
type heard struct {
	slog.Handler
	f func(line string)
}

func (heard) Enabled(context.Context, slog.Level) bool        { return true }
func (h heard) Handle(_ context.Context, r slog.Record) error { h.f(r.Message); return nil }

// Proves M6, M7: messages to an unknown method are fired and logged once each, also if their receiver has
// one place for all of them, because slow receivers have the others.
func TestMessagesThatRestInOnePlace(t *testing.T) {
	const many, slow, each = 5, 38, 40 // the slow ones take all places but two
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		gate, lines := make(chan struct{}), 0
		var mu sync.Mutex
		open := sync.OnceFunc(func() { close(gate) })
		m.options.Logger = slog.New(heard{slog.DiscardHandler, func(line string) {
			mu.Lock()
			defer mu.Unlock()
			if line == "message waits for a method" {
				lines++
			}
			if lines > 2*many { // so that it ends, if it would go on for ever
				open()
			}
		}})
		unknown := object.Handle(object.Define("thing", func(context.Context, *object.State) (*thing, error) { return nil, nil }), "new",
			func(*thing, context.Context, string) (int, error) { return 0, nil })
		m.on(func(context.Context, *thing, string) error { <-gate; return nil })
		m.open()
		defer m.close()
		defer open()
		m.must("a", func(th *thing, ctx context.Context) (any, error) {
			var err error
			for i := range slow {
				for range each {
					err = errors.Join(err, m.mail.Send(ctx, th.st, fmt.Sprint("slow", i), "1", object.After(time.Hour)))
				}
			}
			for range many {
				err = errors.Join(err, unknown.Send(ctx, th.st, "c", "2", object.After(time.Hour+1)))
			}
			return nil, errors.Join(err, m.mail.Send(ctx, th.st, "c", "later", object.After(2*time.Hour)))
		})
		pass(time.Hour + time.Second)
		open()
		pass(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if lines != many {
			t.Errorf("%d lines tell of %d messages", lines, many)
		}
	})
}

// pauses is longer than a message that could not be handled waits.
const pauses = 32 * time.Second

// Proves M4: a message that is due and fails while Host.Delete removes it leaves nothing.
func TestDeleteOfADueMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		m.on(func(context.Context, *thing, string) error {
			time.Sleep(time.Second)
			return errOnPurpose
		})
		for _, begin := range []time.Duration{time.Hour - time.Millisecond, time.Hour, time.Hour + time.Second} {
			m.must("a", m.delays(time.Hour, "b", "1", "2"))
			pass(begin)
			if err := m.host.Delete(context.Background(), m.id("b"), object.WithMessages()); err != nil {
				t.Fatal(err)
			}
			pass(time.Hour)
			m.left(0)
			if n := len(m.letters()); n != 0 {
				t.Errorf("%d dead letters", n)
			}
		}
	})
}

// Proves M7: the count of messages by time goes back to nothing, in each way in which such a
// message can end, also for one that gets its time by a failed attempt.
func TestLaterCountsGoBackToNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t, exactly(2))
		m.open()
		defer m.close()
		count := func(want int) {
			t.Helper()
			if got := object.LaterCount(m.host, m.id("b")); got != want {
				t.Errorf("the count is %d, want %d", got, want)
			}
		}
		m.on(func(_ context.Context, _ *thing, text string) error {
			if text == "fails" {
				return errOnPurpose
			}
			return nil
		})
		count(0)
		m.must("a", m.delays(time.Hour, "b", "1", "fails", "2"))
		m.must("a", m.sends("b", "fails"))
		pass(0)
		count(4)
		pass(time.Minute) // the one without a delay is a dead letter
		count(3)
		pass(time.Hour)
		count(0)
		m.must("a", m.delays(time.Hour, "b", "1", "2"))
		count(2)
		if err := m.host.Delete(context.Background(), m.id("b"), object.WithMessages()); err != nil {
			t.Fatal(err)
		}
		count(0)
	})
}
