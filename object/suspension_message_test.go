package object_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// quietMail opens a host over a log with things that get messages and a long work, and stops right after the log has confirmed
// something.
func quietMail(t *testing.T) (*mailFixture, *quietLog) {
	t.Helper()
	m := newMail(t)
	log, _ := m.work("w")
	return m, log
}

// asideSends sends texts from a thing of which the reply waits for the log.
func (m *mailFixture) asideSends(from, to string, texts ...string) <-chan ending {
	return aside(func() error { _, err := m.call(from, m.sends(to, texts...)); return err })
}

// holdsUp has the handler of the text "hold" wait until the function that it returns is called.
func (m *mailFixture) holdsUp() (letGo func()) {
	gate := make(chan struct{})
	m.on(func(_ context.Context, _ *thing, text string) error {
		if text == "hold" {
			<-gate
		}
		return nil
	})
	return func() { close(gate) }
}

// A message begins while the log is silent for less than two seconds, and waits from then on until the log answers. It runs once, and
// the wait costs it no attempt.
//
// Proves N5.
func TestMessageOfASuspendedHost(t *testing.T) {
	for _, c := range []struct {
		silent time.Duration
		begins []string
	}{{1900 * time.Millisecond, []string{"b:1"}}, {2100 * time.Millisecond, nil}} {
		bubble(t, func(t *testing.T) {
			m, log := quietMail(t)
			defer m.end()
			answer := log.Stop()
			pass(c.silent)
			sent := m.asideSends("a", "b", "1")
			m.came(c.begins...)
			pass(7 * time.Second)
			m.came()
			paused := m.host.PausedReceivers()
			if waits := len(paused) == 1 && errors.Is(paused[0].Reason, object.ErrSuspended); waits != (c.begins == nil) {
				t.Errorf("silent for %v: paused are %+v", c.silent, paused)
			}
			answer()
			if e := <-sent; e.err != nil {
				t.Errorf("silent for %v: the send: %v", c.silent, e.err)
			}
			if c.begins == nil {
				m.came("b:1")
			}
			pass(time.Minute)
			m.came()
			m.left(0)
			if paused := m.host.PausedReceivers(); len(paused) != 0 {
				t.Errorf("silent for %v: when the log has answered, paused are %+v", c.silent, paused)
			}
			m.stopWork("w")
		})
	}
}

// The messages of one sender keep their order: those in the mailbox when the host suspends, and those that are sent later.
//
// Proves M3 and N5.
func TestOrderOverASuspension(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m, log := quietMail(t)
		defer m.end()
		letGo := m.holdsUp()
		m.must("a", m.sends("b", "hold", "1", "2"))
		m.came("b:hold")
		answer := log.Stop()
		pass(2500 * time.Millisecond)
		letGo()
		sent := []<-chan ending{m.asideSends("a", "b", "3", "4"), m.asideSends("a", "b", "5")}
		pass(3 * time.Second)
		m.came()
		answer()
		for _, s := range sent {
			if e := <-s; e.err != nil {
				t.Errorf("a send: %v", e.err)
			}
		}
		m.came("b:1", "b:2", "b:3", "b:4", "b:5")
		pass(time.Minute)
		m.came()
		m.left(0)
		m.stopWork("w")
	})
}

// Delayed messages that are due in a suspended host begin when the log answers, each once, also more of them than may be under way to
// their receiver.
//
// Proves M4 and N5.
func TestDelayedMessagesOfASuspendedHost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m, log := quietMail(t)
		defer m.end()
		var texts []string
		for i := range 100 {
			texts = append(texts, fmt.Sprint(i))
		}
		m.must("a", m.delays(2500*time.Millisecond, "b", texts...))
		answer := log.Stop()
		pass(2400 * time.Millisecond)
		m.came()
		pass(5 * time.Second)
		m.came()
		answer()
		pass(time.Second)
		got := strings.Fields(strings.ReplaceAll(m.got(), "b:", ""))
		if slices.Sort(got); len(got) != len(slices.Compact(got)) || len(got) != len(texts) {
			t.Errorf("%d of %d messages have come a second after the log has answered: %v", len(got), len(texts), got)
		}
		pass(time.Minute)
		m.came()
		m.left(0)
		m.stopWork("w")
	})
}

// A handler that has lent its turn out before the host suspends may wait for a message behind its own.
//
// Proves M3 and N5.
func TestLentTurnOverASuspension(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m, log := quietMail(t)
		defer m.end()
		second := make(chan struct{})
		m.on(func(ctx context.Context, th *thing, text string) error {
			switch text {
			case "first":
				return th.st.Release(ctx, func(ctx context.Context) error {
					select {
					case <-second:
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				})
			case "second":
				close(second)
			}
			return nil
		})
		m.must("a", m.sends("b", "first"))
		m.came("b:first")
		answer := log.Stop()
		pass(2500 * time.Millisecond)
		sent := m.asideSends("a", "b", "second")
		m.came()
		answer()
		if e := <-sent; e.err != nil {
			t.Errorf("the send: %v", e.err)
		}
		m.came("b:second")
		pass(time.Minute)
		m.came()
		m.left(0)
		m.stopWork("w")
	})
}

// A shutdown of a suspended host does not wait for messages that wait for the log, and begins none of them. Neither does a host
// that finds that it was replaced. The next owner has them.
//
// Proves N1, N5 and O14 over a log.
func TestNextOwnerHandlesWhatASuspendedHostDoesNot(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			m, log := quietMail(t)
			letGo := m.holdsUp()
			m.must("a", m.sends("b", "hold", "1"))
			m.must("a", m.delays(2500*time.Millisecond, "c", "2"))
			m.came("b:hold")
			answer := log.Stop()
			pass(2400 * time.Millisecond)
			letGo()
			pass(time.Second)
			m.came()
			if !replaced {
				down := aside(func() error { return m.host.Shutdown(ended()) })
				if e := <-down; e.after > 11*time.Second {
					t.Errorf("the shutdown took %v: %v", e.after, e.err)
				}
			}

			e, err := shardlog.Open(shardlog.Options{Log: log.Log.Log, Owner: "next"}, memstore.New())
			if err != nil {
				t.Fatal(err)
			}
			next := newMail(t)
			next.options.Storage.Engine = e
			next.open()
			defer next.end()
			pass(5 * time.Second)
			next.cameInAnyOrder("b:hold", "b:1", "c:2")
			answer()
			pass(time.Minute)
			m.came()
			if err := m.host.Err(); !replaced && !errors.Is(err, object.ErrShutdown) || replaced && !errors.Is(err, shardlog.ErrFenced) {
				t.Errorf("replaced %v: the host has ended with %v", replaced, err)
			}
			next.came()
			next.left(0)
			_ = m.host.Shutdown(ended())
		})
	}
}
