package object_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/internal/testing/failing"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// numbered returns texts from first to last, and what came of them at a thing.
func numberedTexts(to string, first, last int) (texts, came []string) {
	for i := first; i <= last; i++ {
		texts = append(texts, fmt.Sprint(i))
		came = append(came, fmt.Sprint(to, ":", i))
	}
	return texts, came
}

// Proves M3, M4: the end of an activation, by Host.Delete, changes no order: the message
// whose handler is cut off and those behind it are handled again in their order, before one
// that is sent later, also while the old handler still runs. That one changes nothing.
func TestMessagesAcrossADelete(t *testing.T) {
	for name, end := range map[string]func(m *mailFixture, ctx context.Context) error{
		"well": func(*mailFixture, context.Context) error { return nil }, "error": func(*mailFixture, context.Context) error { return errOnPurpose },
		"panic": func(*mailFixture, context.Context) error { panic("on purpose") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := newMail(t)
				m.open()
				defer m.close()
				gate, first := make(chan struct{}), true
				m.on(func(ctx context.Context, _ *thing, text string) error {
					if text == "1" && first {
						first = false
						<-gate
						return end(m, ctx)
					}
					return nil
				})
				m.must("a", m.sends("b", "1", "2"))
				m.came("b:1")
				if err := m.host.Delete(context.Background(), m.id("b")); err != nil {
					t.Fatal(err)
				}
				m.must("a", m.sends("b", "3"))
				pass(10 * time.Millisecond) // for a reader that comes again
				m.came("b:1", "b:2", "b:3")
				close(gate)
				m.came()
				pass(time.Hour)
				m.came()
				m.left(0)
				m.check(t)
			})
		})
	}
}

// Proves M4: messages that wait reach a fresh object after a purge and after DeleteAll.
func TestMessagesToAPurgedReceiver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		for i, end := range []action{
			func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Driver().Purge(ctx) },
			func(th *thing, ctx context.Context) (any, error) { return nil, th.st.Storage().DeleteAll(ctx) },
		} {
			m.must("b", put("old", "1"))
			m.must("b", func(th *thing, ctx context.Context) (any, error) {
				m.must("a", m.sends("b", "1", "2"))
				m.came()
				return end(th, ctx)
			})
			m.came("b:1", "b:2")
			if m.stored("b", "old") != "" || m.stored("b", "2") == "" {
				t.Errorf("%d: after the end the object has %q and %q", i, m.stored("b", "old"), m.stored("b", "2"))
			}
			m.left(0)
			m.must("b", end)
		}
	})
}

// Proves M2: what a handler has committed before its failure stays, and what it sent too; the
// rest is dropped, and the message is removed by its last commit alone.
func TestHandlerWithSyncAndRelease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t, exactly(5))
		m.open()
		defer m.close()
		tries := 0
		add := func(ctx context.Context, th *thing, key string) error {
			var n int
			if _, err := th.st.Storage().GetInto(ctx, key, &n); err != nil {
				return err
			}
			return errors.Join(th.st.Storage().Put(ctx, key, n+1), m.mail.Send(ctx, th.st, "c", key))
		}
		m.on(func(ctx context.Context, th *thing, text string) error {
			if text != "1" {
				return nil
			}
			tries++
			err := errors.Join(add(ctx, th, "synced"), th.st.Sync(ctx))
			err = errors.Join(err, add(ctx, th, "released"), th.st.Release(ctx, func(context.Context) error {
				m.must("b", nothing)
				return nil
			}))
			err = errors.Join(err, add(ctx, th, "last"))
			if err == nil && tries == 1 {
				err = errOnPurpose
			}
			return err
		})
		m.must("a", m.sends("b", "1"))
		pass(0)
		m.came("b:1", "c:synced", "c:released")
		pass(time.Minute)
		m.came("b:1", "c:synced", "c:released", "c:last")
		for key, want := range map[string]string{"synced": "2", "released": "2", "last": "1", "1": "1"} {
			if got := m.stored("b", key); got != want {
				t.Errorf("%s: %s, want %s", key, got, want)
			}
		}
		m.left(0)
	})
}

// Proves M2, O7: a message that is read from the disk makes its receiver depend on the
// sender's commit. Here no handler has committed anything since that: the one of the first
// message, and then that of the second, lend their turns out. A call that looks at the memory of the object
// waits for the disk.
func TestReceiverDependsOnTheSender(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		d := m.slow()
		m.open()
		defer m.close()
		gate, paused := make(chan struct{}), false
		m.on(func(ctx context.Context, th *thing, text string) error {
			if !paused {
				paused = true
				return object.ErrOverloaded
			}
			if text == "2" {
				th.n = 7
			}
			return th.st.Release(ctx, func(context.Context) error { <-gate; return nil })
		})
		m.must("a", m.sends("b", "1"))
		m.came("b:1")
		d.hold.Store(true)
		var sent, seen atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() { m.must("a", m.sends("b", "2")); sent.Store(true) })
		pass(2 * time.Second)
		wg.Go(func() {
			if n := m.must("b", func(th *thing, _ context.Context) (any, error) { return th.n, nil }); n != 7 {
				t.Errorf("the object has %d", n)
			}
			seen.Store(true)
		})
		pass(time.Second)
		if sent.Load() || seen.Load() {
			t.Errorf("O7: before the sync the sender has its answer: %t, and the caller of the receiver: %t", sent.Load(), seen.Load())
		}
		d.hold.Store(false)
		close(d.gate)
		pass(time.Second)
		close(gate)
		wg.Wait()
	})
}

// Proves M7: a receiver with MaxWaiting messages on disk refuses more, and takes them again
// when one has gone; the error names the receiver and why it waits.
func TestMaxWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t, object.ClassOptions{MaxWaiting: 3})
		m.open()
		defer m.close()
		var works atomic.Bool
		m.on(func(_ context.Context, th *thing, text string) error {
			if !works.Load() && th.st.Name() == "b" {
				return object.ErrOverloaded
			}
			return nil
		})
		for i := range 3 {
			m.must("a", m.sends("b", fmt.Sprint(i)))
			pass(0)
		}
		_, err := m.call("a", m.sends("b", "3"))
		if !errors.Is(err, object.ErrOutboxFull) || !errors.Is(err, object.ErrOverloaded) || !strings.Contains(err.Error(), "thing/b") {
			t.Errorf("the fourth message: %v", err)
		}
		m.left(3)
		m.must("a", m.sends("c", "4"))
		works.Store(true)
		pass(2 * time.Second)
		m.must("a", m.sends("b", "5"))
		pass(0)
		if got := m.got(); !strings.HasSuffix(got, "b:0 b:1 b:2 b:5") {
			t.Errorf("%q came", got)
		}
		m.left(0)
	})
}

// Proves M7, M6: 100,000 messages wait at most for a receiver of a class that is not registered, also after a
// restart. They are taken again when a Delete has removed those that wait.
func TestMaxWaitingOfAnUnknownClass(t *testing.T) {
	const turns, each = 5, 20_000
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		unknown := object.Handle(object.Define("later", func(context.Context, *object.State) (*thing, error) { return nil, nil }), "new",
			func(*thing, context.Context, string) (int, error) { return 0, nil })
		sends := func(n int, opts ...object.CallOption) error {
			_, err := m.call("a", func(th *thing, ctx context.Context) (any, error) {
				for range n {
					if err := unknown.Send(ctx, th.st, "b", "1", opts...); err != nil {
						return nil, err
					}
				}
				return nil, nil
			})
			return err
		}
		m.open()
		defer func() { m.close() }() // another host than now
		for range turns {
			if err := sends(each); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			for _, opts := range [][]object.CallOption{nil, {object.After(time.Hour)}} {
				if err := sends(1, opts...); !errors.Is(err, object.ErrOutboxFull) || !strings.Contains(err.Error(), "later/b") {
					t.Errorf("a full receiver: %v", err)
				}
			}
			m.close()
			m.open()
			pass(0)
		}
		if err := m.host.Delete(context.Background(), storage.ID{Class: "later", Name: "b"}, object.WithMessages()); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(sends(1, object.After(time.Hour)), sends(1)); err != nil {
			t.Error(err)
		}
		m.left(2)
	})
}

// Proves M7: a store with MaxMessages messages refuses more, also when the next process has
// counted those that were left.
func TestMaxMessages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.options.MaxMessages = 3
		var works atomic.Bool
		m.on(func(_ context.Context, th *thing, text string) error {
			if !works.Load() {
				return object.ErrOverloaded
			}
			return nil
		})
		m.open()
		m.must("a", m.sends("b", "0", "1"))
		m.must("a", m.sends("c", "2"))
		for range 2 {
			if _, err := m.call("a", m.sends("d", "3")); !errors.Is(err, object.ErrOutboxFull) || !strings.Contains(err.Error(), "in the store") {
				t.Errorf("the fourth message: %v", err)
			}
			m.left(3)
			m.close()
			m.open()
			pass(0)
		}
		works.Store(true)
		pass(time.Minute)
		m.left(0)
		works.Store(false)
		m.must("a", m.sends("b", "0", "1", "2"))
		if _, err := m.call("a", m.sends("d", "3")); !errors.Is(err, object.ErrOutboxFull) {
			t.Errorf("the fourth message: %v", err)
		}
		m.close()
	})
}

// Proves M3, M7: a backlog is handled in order while more messages join it, and holds up no
// other receiver.
func TestBacklog(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		gate := make(chan struct{})
		m.on(func(_ context.Context, th *thing, text string) error {
			if th.st.Name() == "b" && text == "1" {
				<-gate
			}
			if th.st.Name() == "b" && text == "300" { // near the end of the backlog, from a turn of another
				m.must("a", m.sends("b", "501", "502"))
			}
			return nil
		})
		for i := range 5 {
			texts, _ := numberedTexts("b", 100*i+1, 100*i+100)
			m.must("a", m.sends("b", texts...))
		}
		m.came("b:1")
		m.must("a", m.sends("c", "1"))
		m.came("c:1")
		close(gate)
		_, want := numberedTexts("b", 2, 502)
		m.came(want...)
		m.left(0)
	})
}

// Proves M2, M3, O14: Shutdown waits for the handlers under way alone. The next process
// handles the messages that it leaves, in order and once.
func TestShutdownWithMessages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		m.on(func(context.Context, *thing, string) error { time.Sleep(time.Millisecond); return nil })
		texts, want := numberedTexts("b", 1, 1000)
		m.must("a", m.sends("b", texts...))
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		m.close()
		if took := time.Since(began); took > 10*time.Millisecond {
			t.Errorf("the shutdown took %v", took)
		}
		first := strings.Fields(m.got())
		if len(first) < 90 || len(first) > 110 {
			t.Errorf("%d messages came before the shutdown", len(first))
		}
		m.open()
		defer m.close()
		pass(time.Minute)
		m.came(want[len(first):]...)
		m.left(0)
	})
}

// Proves O14: two objects that message each other for ever do not hold up a shutdown, and go
// on in the next process.
func TestShutdownOfMessagesWithoutEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		m.on(func(ctx context.Context, th *thing, text string) error {
			time.Sleep(time.Millisecond)
			n, err := strconv.Atoi(text)
			if err != nil || n >= 500 {
				return err
			}
			to := map[string]string{"a": "b", "b": "a"}[th.st.Name()]
			return m.mail.Send(ctx, th.st, to, fmt.Sprint(n+1))
		})
		m.must("a", m.sends("b", "1"))
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		m.close()
		if took := time.Since(began); took > 10*time.Millisecond {
			t.Errorf("the shutdown took %v", took)
		}
		m.open()
		defer m.close()
		m.left(1)
		pass(time.Minute)
		m.left(0)
		if n := len(strings.Fields(m.got())); n != 500 {
			t.Errorf("%d messages came, want 500", n)
		}
	})
}

// Proves O13, M1, M2: an operation of the store that fails ends the host. The messages of
// acknowledged turns are handled once by the next process, and those of others once or never.
func TestEachOperationFailsUnderMessages(t *testing.T) {
	n, failed := 0, true
	for failed && !t.Failed() {
		n++
		bubble(t, func(t *testing.T) { failed = failingMessages(t, failing.At(n)) })
	}
	if n < 100 {
		t.Errorf("the scenario has only %d operations", n)
	}
}

// failingMessages is a story over three processes, one of which meets the failing
// operation. It reports whether it came.
func failingMessages(t *testing.T, disk *failing.Disk) bool {
	m := newMail(t, exactly(2))
	acked := map[string]bool{}
	mem, over := m.mem, false
	var mu sync.Mutex
	met := map[string]bool{} // the first attempt of some fails
	m.on(func(_ context.Context, th *thing, text string) error {
		mu.Lock()
		defer mu.Unlock()
		first := !met[text]
		met[text] = true
		text, _, _ = strings.Cut(text, " ")
		switch {
		case text == "dead" || text == "again" && first && !over:
			return errOnPurpose
		case text == "pauses" && first && !over:
			return object.ErrOverloaded
		}
		return nil
	})
	open := func() bool {
		o := m.options
		o.Storage.Engine, o.Storage.Shards = disk.Engine(mem), 2
		h, err := object.Open(o, m.class)
		if err != nil && !disk.Failed() {
			t.Fatalf("%v: %v", disk, err)
		}
		m.host = h
		return err == nil
	}
	for life := 0; life < 3 && !disk.Failed() && open(); life++ {
		synctest.Wait()
		for _, text := range []string{"plain", "again", "pauses", "dead", "last"} {
			if _, err := m.call("a", m.sends("b", fmt.Sprint(text, " ", life))); err == nil {
				acked[fmt.Sprint(text, " ", life)] = true
			} else if !disk.Failed() {
				t.Fatalf("%v: %v", disk, err)
			}
			pass(time.Second / 2)
		}
		if life > 0 {
			pass(time.Minute)
		}
		if disk.Failed() && !errors.Is(m.host.Err(), object.ErrStorage) {
			t.Fatalf("O13: %v has failed, and the host goes on: %v", disk, m.host.Err())
		}
		mem = mem.Crash(0)
		_ = m.host.Shutdown(ended())
	}
	over, m.mem, m.options.Storage.Engine = true, mem.Crash(0), nil
	m.open()
	pass(time.Hour)
	m.left(0)
	letters, err := lettersOf(m.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
	if err != nil {
		t.Fatal(err)
	}
	once := map[string]int{}
	for _, key := range []string{"plain", "again", "pauses", "last"} {
		once[key], _ = strconv.Atoi(m.stored("b", key))
	}
	once["dead"] = len(letters)
	for key, n := range once {
		count := 0
		for text := range acked {
			if strings.HasPrefix(text, key) {
				count++
			}
		}
		if n < count || n > 3 || !disk.Failed() && n != 3 {
			t.Errorf("%v: %d turns that sent %q were acknowledged, and it took effect %d times", disk, count, key, n)
		}
	}
	m.close()
	return disk.Failed()
}

// Proves W13, J7: an object knows when a Send of its class was last refused because too many messages wait, also after a
// reset, and none of another class does.
func TestOutboxFullAt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.options.MaxMessages = 1
		m.on(func(context.Context, *thing, string) error { return object.ErrOverloaded })
		other := object.Define("other", func(_ context.Context, st *object.State) (*thing, error) { return &thing{st: st}, nil })
		look := object.Handle(other, "look", func(th *thing, _ context.Context, _ string) (time.Time, error) {
			return th.st.Driver().OutboxFullAt(), nil
		})
		m.open(other)
		defer m.close()
		at := func(name string) time.Time {
			t.Helper()
			at, err := m.call(name, func(th *thing, _ context.Context) (any, error) { return th.st.Driver().OutboxFullAt(), nil })
			if err != nil {
				t.Fatal(err)
			}
			return at.(time.Time)
		}
		m.must("a", m.sends("b", "0"))
		if got := at("a"); !got.IsZero() {
			t.Errorf("W13: before any refusal: %v", got)
		}
		time.Sleep(time.Second)
		refused := time.Now()
		if _, err := m.call("a", m.sends("c", "1")); !errors.Is(err, object.ErrOutboxFull) {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		for _, name := range []string{"a", "d"} {
			if got := at(name); !got.Equal(refused) {
				t.Errorf("W13: %s knows of a refusal at %v, want %v", name, got, refused)
			}
		}
		if got, err := look.Call(t.Context(), m.host, "x", ""); err != nil || !got.IsZero() {
			t.Errorf("W13: an object of another class: %v, %v", got, err)
		}
	})
}
