package object_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/engine"
)

// Proves M7: receivers that take a second for each of many messages that are due, delayed ones or
// retries, hold up none of another receiver while they are 39 or fewer. All theirs come too, each once,
// in no order that is promised (M4).
func TestSlowReceiversLeavePlaces(t *testing.T) {
	const each = 40 // more than a receiver has places
	for _, test := range []struct {
		slow int
		late bool
	}{{1, false}, {39, false}, {40, true}} {
		t.Run(fmt.Sprint(test.slow, " slow"), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := newMail(t)
				m.open()
				defer m.close()
				m.on(func(_ context.Context, th *thing, _ string) error {
					if strings.HasPrefix(th.st.Name(), "slow") {
						time.Sleep(time.Second)
					}
					return nil
				})
				for i := range test.slow {
					m.must("a", func(th *thing, ctx context.Context) (any, error) {
						var err error
						for j := range each {
							err = errors.Join(err, m.mail.Send(ctx, th.st, fmt.Sprint("slow", i), fmt.Sprint(j), object.After(time.Hour+time.Duration(i*each+j))))
						}
						return nil, err
					})
				}
				m.must("a", m.delays(time.Hour+time.Millisecond, "quick", "1", "2"))
				pass(time.Hour + 10*time.Millisecond)
				got := strings.Fields(m.got())
				if late := !slices.Contains(got, "quick:2"); late != test.late {
					t.Errorf("the messages of another receiver are late: %v", late)
				}
				pass(time.Minute)
				got = append(got, strings.Fields(m.got())...)
				slices.Sort(got)
				if n := len(slices.Compact(slices.Clone(got))); len(got) != test.slow*each+2 || n != len(got) {
					t.Errorf("%d messages came, %d of them different; want %d", len(got), n, test.slow*each+2)
				}
				m.left(0)
			})
		})
	}
}

// Proves M7: messages that have no place are removed by a Delete with messages too. Those that are sent
// after that come in their time.
func TestMessagesWithoutAPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		m.on(func(ctx context.Context, th *thing, text string) error {
			if text == "slow" {
				<-ctx.Done()
			}
			return nil
		})
		for _, text := range []string{"slow", "gone"} {
			m.must("a", func(th *thing, ctx context.Context) (any, error) {
				var err error
				for range 100 {
					err = errors.Join(err, m.mail.Send(ctx, th.st, "b", text, object.After(time.Hour)))
				}
				return nil, err
			})
		}
		pass(time.Hour)
		m.came("b:slow")
		if err := m.host.Delete(context.Background(), m.id("b"), object.WithMessages()); err != nil {
			t.Fatal(err)
		}
		m.left(0)
		m.must("a", m.delays(time.Second, "b", "1", "2"))
		pass(3 * time.Second)
		m.came("b:1", "b:2")
		m.left(0)
	})
}

// Proves M7: a message that has got a place and is deleted before it is under way gives the place back, so
// later messages of its receiver come in their time. Here it waits behind those of many others.
func TestDeletedMessageGivesItsPlaceBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		m.on(func(_ context.Context, th *thing, text string) error {
			switch {
			case text == "last":
			case th.st.Name() == "b":
				time.Sleep(time.Second)
			default:
				time.Sleep(time.Minute)
			}
			return nil
		})
		texts, _ := numberedTexts("b", 1, 60)
		m.must("a", m.delays(time.Hour, "b", texts...))
		m.must("a", func(th *thing, ctx context.Context) (any, error) {
			var err error
			for i := range 2 * 256 {
				err = errors.Join(err, m.mail.Send(ctx, th.st, fmt.Sprint("c", i), "1", object.After(time.Hour+time.Millisecond)))
			}
			return nil, err
		})
		pass(time.Hour + 28*time.Second + time.Millisecond) // those of b that had a place have come
		if n := strings.Count(m.got(), "b:"); n != 28 {
			t.Fatalf("%d messages of b have come", n)
		}
		if err := m.host.Delete(context.Background(), m.id("b"), object.WithMessages()); err != nil {
			t.Fatal(err)
		}
		pass(10 * time.Minute)
		m.got()
		m.must("a", m.delays(time.Minute, "b", "last"))
		pass(time.Minute)
		m.came("b:last")
		m.left(0)
	})
}

// Proves M4: messages that have no place, and are not due any more because the clock was put back, come
// at their time. Those that are due before them come before, although they are many.
func TestMessagesWithoutAPlaceWithTheClockPutBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		clock := &shifted{Clock: seam.Seams{}.WithDefaults().Clock}
		m.options.Seams.Clock = clock
		m.open()
		defer m.close()
		gate := make(chan struct{})
		m.on(func(_ context.Context, _ *thing, text string) error {
			if text == "1" {
				<-gate
			}
			return nil
		})
		texts, all := numberedTexts("b", 1, 60) // more than a receiver has places
		m.must("a", m.delays(time.Hour, "b", texts...))
		pass(time.Hour)
		m.came("b:1")
		clock.by.Store(-int64(time.Hour))
		close(gate)
		pass(2 * time.Second)
		for i := range 2 { // the first may leave the early ones more places than they had
			texts, before := numberedTexts("b", 100*(i+1), 100*(i+1)+39)
			m.must("a", m.delays(time.Minute, "b", texts...))
			pass(time.Minute)
			m.cameInAnyOrder(before...)
		}
		pass(time.Hour - 2*time.Minute - 3*time.Second)
		m.came()
		pass(time.Second)
		m.cameInAnyOrder(all[1:]...)
		m.left(0)
	})
}

// Proves M2, M3, M4, O7. The scheduler finds a delayed message on disk while the commit that has sent it is
// applied and has no ticket yet. It is not handled before the sender's task reports it. So that report
// follows none of an attempt, and the next attempt comes, also if the receiver has no place meanwhile.
func TestDelayedMessageBeforeItsReport(t *testing.T) {
	for _, full := range []bool{false, true} {
		t.Run(fmt.Sprint("full ", full), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := newMail(t, exactly(2))
				e := &halting{Engine: m.mem}
				m.options.Storage.Engine = e
				m.open()
				defer m.close()
				fails, gate := true, make(chan struct{})
				m.on(func(_ context.Context, _ *thing, text string) error {
					if text == "slow" {
						<-gate
					}
					if text == "late" && fails {
						fails = false
						return errOnPurpose
					}
					return nil
				})
				sends := func(n int, d time.Duration, text string) {
					m.must("a", m.delays(d, "b", slices.Repeat([]string{text}, n)...))
				}
				sends(600, time.Hour, "1") // more than the scheduler holds
				if full {
					sends(60, time.Hour+time.Second, "slow") // more than a receiver has places
				}
				pass(59 * time.Minute)
				open := make(chan struct{})
				halt := func() { <-open }
				e.then.Store(&halt)
				m.busy("x", m.delays(time.Minute+time.Millisecond, "b", "late"))
				pass(time.Minute + time.Second) // the scheduler reads the index when the others have come
				if got := m.got(); strings.Contains(got, "late") || strings.Count(got, "b:1") != 600 {
					t.Errorf("%d came: ...%s", len(strings.Fields(got)), got[max(0, len(got)-20):])
				}
				close(open)
				pass(2 * time.Second)
				close(gate)
				pass(2 * time.Second)
				if got := m.got(); strings.Count(got, "late") != 1 {
					t.Errorf("after the report came %q", got)
				}
				pass(10 * time.Second)
				m.came("b:late")
				m.left(0)
			})
		})
	}
}

// reading is an engine that counts the rows which are read.
type reading struct {
	engine.Engine
	rows atomic.Int64
}

func (e *reading) NewIter(lower, upper []byte) (engine.Iterator, error) {
	it, err := e.Engine.NewIter(lower, upper)
	return &readingIter{it, e}, err
}

type readingIter struct {
	engine.Iterator
	of *reading
}

func (i *readingIter) Next() bool { i.of.rows.Add(1); return i.Iterator.Next() }

// Proves M7: a receiver with as many messages by time as may wait is counted once. A Send that is
// refused after that reads none of them, and neither does one that is accepted because a
// message has ended. A refusal and the next Send after an end are exact.
func TestRefusedSendReadsNoMessages(t *testing.T) {
	const limit = 2000
	bubble(t, func(t *testing.T) {
		m := newMail(t, object.ClassOptions{MaxWaiting: limit})
		e := &reading{Engine: m.mem}
		m.options.Storage.Engine = e
		m.open()
		defer m.close()
		m.must("a", func(th *thing, ctx context.Context) (any, error) {
			var err error
			for i := range limit {
				err = errors.Join(err, m.mail.Send(ctx, th.st, "b", fmt.Sprint(i), object.After(time.Duration(i+1)*time.Hour)))
			}
			return nil, err
		})
		refused := func() {
			t.Helper()
			if _, err := m.call("a", m.sends("b", "x")); !errors.Is(err, object.ErrOutboxFull) {
				t.Errorf("a full receiver: %v", err)
			}
		}
		refused()
		e.rows.Store(0)
		for range 100 {
			refused()
		}
		for i := range 10 {
			pass(time.Hour)
			m.came(fmt.Sprint("b:", i))
			m.must("a", m.delays(limit*time.Hour, "b", "y"))
			refused()
		}
		if n := e.rows.Load(); n > limit {
			t.Errorf("%d rows were read", n)
		}
	})
}

// Proves M7: both limits are checked against the messages of commits that have ended. A turn may pass
// them by the messages that it sends, and so may one that runs at the same time; the next
// may not, before one has ended.
func TestTurnsThatPassTheLimits(t *testing.T) {
	for name, delay := range map[string]time.Duration{"by time": time.Hour, "in the queue": 0} {
		for _, store := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", of the store ", store), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					options := object.ClassOptions{MaxWaiting: 3}
					if store {
						options.MaxWaiting = 0
					}
					m := newMail(t, options)
					if store {
						m.options.MaxMessages = 3
					}
					m.open()
					defer m.close()
					m.handleConstruct(func(_ context.Context, th *thing) error {
						if th.st.Name() == "b" {
							return errOnPurpose
						}
						return nil
					})
					m.must("a", m.delays(delay, "b", "1", "2"))
					pass(0)
					open := make(chan struct{})
					m.busy("x", func(th *thing, ctx context.Context) (any, error) {
						_, err := m.delays(delay, "b", "3", "4", "5", "6")(th, ctx)
						<-open
						return nil, err
					})
					m.must("a", m.delays(delay, "b", "7", "8"))
					close(open)
					pass(0)
					m.left(8)
					if _, err := m.call("a", m.delays(delay, "b", "9")); !errors.Is(err, object.ErrOutboxFull) {
						t.Errorf("beyond the limit: %v", err)
					}
				})
			})
		}
	}
}

// Proves M4: messages whose handler asks for another try without an attempt keep no place from others
// of their receiver: those come in time, also the one that ends the failure.
func TestRetriesLeavePlacesToTheirReceiver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		mended := false
		m.on(func(_ context.Context, _ *thing, text string) error {
			switch {
			case text == "mend":
				mended = true
			case !mended:
				return retryable(true)
			}
			return nil
		})
		const many = 40 // more than a receiver has places
		m.must("a", func(th *thing, ctx context.Context) (any, error) {
			var err error
			for i := range many {
				err = errors.Join(err, m.mail.Send(ctx, th.st, "b", "again", object.After(time.Hour+time.Duration(i)*5*time.Millisecond)))
			}
			return nil, errors.Join(err, m.mail.Send(ctx, th.st, "b", "mend", object.After(time.Hour+time.Second/2)))
		})
		pass(time.Hour + 3*pauses)
		if got := m.got(); !strings.Contains(got, "b:mend") {
			t.Errorf("the message behind those that are tried again has not come in %d tries", len(got))
		}
		pass(3 * pauses)
		m.left(0)
	})
}
