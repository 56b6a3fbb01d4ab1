package object_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object"
)

// retryable is an error that tells by itself whether it is worth another attempt.
type retryable bool

func (retryable) Error() string     { return "told" }
func (r retryable) Retryable() bool { return bool(r) }

// final is an error that tells by itself whether it is permanent.
type final bool

func (final) Error() string     { return "final" }
func (f final) Permanent() bool { return bool(f) }

// exactly is a MessageRetry without jitter: after 10, 20 and 40 s.
func exactly(attempts int) object.ClassOptions {
	return object.ClassOptions{MessageRetry: alarm.Retry{MaxAttempts: attempts, Backoff: alarm.Exponential(10*time.Second, 10*time.Minute)}}
}

// Proves M3, M5: each error of a handler has its effect: an attempt, a dead letter at once,
// or a pause that costs no attempt.
func TestErrorsOfMessages(t *testing.T) {
	const attempt, dead, pause = "attempt", "dead", "pause"
	tests := []struct {
		name   string
		err    error
		effect string
	}{
		{"any error", errOnPurpose, attempt},
		{"a deadlock", object.ErrDeadlock, attempt},
		{"no turn", object.ErrNoTurn, attempt},
		{"a timeout", object.ErrTimeout, attempt},
		{"the end of a context", context.Canceled, attempt},
		{"not retryable by its own word", retryable(false), attempt},
		{"not final by its own word", final(false), attempt},
		{"Permanent", object.Permanent(errOnPurpose), dead},
		{"Permanent, wrapped", fmt.Errorf("wrapped: %w", object.Permanent(errOnPurpose)), dead},
		{"final by its own word", fmt.Errorf("wrapped: %w", final(true)), dead},
		{"Permanent of an overload", object.Permanent(object.ErrOverloaded), dead},
		{"Permanent of an error that is retryable by its own word", object.Permanent(retryable(true)), dead},
		{"retryable by its own word", fmt.Errorf("wrapped: %w", retryable(true)), pause},
		{"ErrShutdown of another host", object.ErrShutdown, pause},
		{"ErrNoSpace", object.ErrNoSpace, pause},
		{"ErrReset", object.ErrReset, pause},
		{"ErrConstructor of another object", object.ErrConstructor, pause},
		{"ErrConstructor that is permanent", errors.Join(object.ErrConstructor, object.Permanent(errOnPurpose)), pause},
		{"ErrOverloaded", object.ErrOverloaded, pause},
		{"ErrUnknownMethod", object.ErrUnknownMethod, pause},
		{"ErrOutboxFull", object.ErrOutboxFull, pause},
		{"ErrStorage of another store", object.ErrStorage, pause},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := newMail(t, exactly(3))
				m.open()
				defer m.close()
				fails := true
				m.on(func(_ context.Context, _ *thing, text string) error {
					if fails && text == "1" {
						return tt.err
					}
					return nil
				})
				m.must("a", m.sends("b", "1", "2"))
				if tt.effect == pause {
					m.came("b:1")
				} else {
					m.came("b:1", "b:2") // those behind pass
				}
				in, err := m.host.Inspect(context.Background(), m.id("b"))
				if err != nil {
					t.Fatal(err)
				}
				got := pause
				switch {
				case len(in.DeadLetters) == 1:
					got = dead
					if d := in.DeadLetters[0]; d.Reason != "permanent error" || d.Attempts != 1 || d.LastError != tt.err.Error() {
						t.Errorf("the dead letter is %+v", d)
					}
				case in.Messages[0].Attempts == 1:
					got = attempt
				}
				if got != tt.effect || (in.Paused != "") != (tt.effect == pause) {
					t.Errorf("the effect is %s: %+v", got, in)
				}
				fails = false
				pass(time.Minute)
				switch tt.effect {
				case pause:
					m.came("b:1", "b:2")
				case attempt:
					m.came("b:1")
				default:
					m.came()
				}
				m.left(0)
			})
		})
	}
}

// Proves M4, M5: retries come at their times, neither half a second early nor late, and the
// last attempt that fails makes a dead letter.
func TestTimesOfRetries(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t, exactly(4))
		m.open()
		defer m.close()
		m.on(func(context.Context, *thing, string) error { return errOnPurpose })
		m.must("a", m.sends("b", "1"))
		m.came("b:1")
		pass(9*time.Second + 500*time.Millisecond)
		for _, wait := range []time.Duration{20, 40, 0} {
			m.came()
			m.left(1)
			pass(time.Second)
			m.came("b:1")
			pass(max(wait-1, 0) * time.Second)
		}
		m.left(0)
		pass(time.Hour)
		m.came()
		letters, err := lettersOf(m.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
		if err != nil || len(letters) != 1 || letters[0].ID != m.id("b") || letters[0].Attempts != 4 || letters[0].Reason != "retries used up" {
			t.Errorf("dead letters: %+v, %v", letters, err)
		}
	})
}

// Proves M5: the default is ten attempts over about an hour.
func TestDefaultRetriesOfMessages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		n := 0
		m.on(func(context.Context, *thing, string) error { n++; return errOnPurpose })
		m.must("a", m.sends("b", "1"))
		const waits = 10 + 20 + 40 + 80 + 160 + 320 + 600 + 600 + 600
		pass(waits*time.Second - time.Second/2)
		if n >= 10 {
			t.Errorf("%d attempts half a second before the earliest time of the tenth", n)
		}
		pass(waits * time.Second / 4)
		pass(time.Second)
		if n != 10 {
			t.Errorf("%d attempts, want 10", n)
		}
		m.left(0)
	})
}

// Proves M5: one attempt means that nothing is tried again, and MaxElapsed ends the retries
// whose next attempt would come later than this after the first.
func TestEndOfRetries(t *testing.T) {
	elapsed := func(d time.Duration) object.ClassOptions {
		o := exactly(100)
		o.MessageRetry.MaxElapsed = d
		return o
	}
	for _, tt := range []struct {
		name     string
		options  object.ClassOptions
		attempts int
	}{
		{"one attempt", exactly(1), 1},
		{"two attempts", exactly(2), 2},
		{"70 s, at which the fourth attempt is due", elapsed(70 * time.Second), 4},
		{"a moment less", elapsed(70*time.Second - 1), 3},
		{"less than the first wait", elapsed(9 * time.Second), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := newMail(t, tt.options)
				m.open()
				defer m.close()
				n := 0
				m.on(func(context.Context, *thing, string) error { n++; return errOnPurpose })
				m.must("a", m.sends("b", "1"))
				pass(time.Hour)
				if n != tt.attempts {
					t.Errorf("%d attempts, want %d", n, tt.attempts)
				}
				m.left(0)
				letters, err := lettersOf(m.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
				if err != nil || len(letters) != 1 || letters[0].Attempts != tt.attempts {
					t.Errorf("dead letters: %+v, %v", letters, err)
				}
			})
		})
	}
}

// Proves M4, M5: RetryAfter says when the next attempt comes, which counts all the same; the
// state of a message survives the process.
func TestRetryAfterOfMessages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t, exactly(3))
		m.open()
		wait := time.Hour
		m.on(func(context.Context, *thing, string) error { return object.RetryAfter(wait, errOnPurpose) })
		m.must("a", m.sends("b", "1"))
		m.came("b:1")
		pass(time.Hour - time.Second/2)
		m.came()
		m.close()
		m.open()
		defer m.close()
		m.came()
		wait = -time.Second // at once
		pass(time.Second)
		m.came("b:1", "b:1")
		m.left(0)
	})
}

// Proves M3: a message that is tried again holds up none of those behind it, and the others
// keep their order.
func TestFailingMessagesAndThoseBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t, exactly(5))
		m.open()
		defer m.close()
		left := map[string]int{"1": 1, "3": 2}
		m.on(func(_ context.Context, _ *thing, text string) error {
			if left[text]--; left[text] >= 0 {
				return errOnPurpose
			}
			return nil
		})
		m.must("a", m.sends("b", "1", "2", "3", "4", "5", "6"))
		m.came("b:1", "b:2", "b:3", "b:4", "b:5", "b:6")
		m.must("a", m.sends("b", "7"))
		m.came("b:7")
		m.left(2)
		pass(10*time.Second + time.Second/2)
		m.came("b:1", "b:3")
		pass(20 * time.Second)
		m.came("b:3")
		m.left(0)
		if got := m.stored("b", "3"); got != "1" {
			t.Errorf("message 3 took effect %s times", got)
		}
	})
}

// Proves M3: pauses take 1 s, which doubles to 30 s, until a message is handled; all keep
// their order, also messages that are sent meanwhile.
func TestPausesOfAReceiver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		m.open()
		defer m.close()
		fails := true
		m.on(func(_ context.Context, _ *thing, text string) error {
			if fails && text == "1" {
				return object.ErrOverloaded
			}
			return nil
		})
		m.must("a", m.sends("b", "1", "2", "3"))
		m.came("b:1")
		early := 500 * time.Millisecond
		pass(1*time.Second - early)
		for _, next := range []time.Duration{2, 4, 8, 16, 30, 30, 30} {
			m.came()
			pass(2 * early)
			m.came("b:1")
			pass(next*time.Second - 2*early)
		}
		m.must("a", m.sends("b", "4"))
		m.came()
		m.must("c", m.sends("d", "5")) // others do not wait
		m.came("d:5")
		fails = false
		pass(2 * early)
		m.came("b:1", "b:2", "b:3", "b:4")
		m.left(0)
		fails = true
		m.must("a", m.sends("b", "1")) // the count of pauses begins anew
		m.came("b:1")
		pass(time.Second + early)
		m.came("b:1")
		fails = false
		pass(time.Minute)
		m.came("b:1")
		m.left(0)
		if len(m.host.PausedReceivers()) != 0 {
			t.Error("the receiver is still paused")
		}
	})
}

// Proves M3: a message that waits for its next attempt and meets a failure that is not its
// own is tried again a second later, at no attempt, and pauses no other.
func TestRetryThatMeetsAPause(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t, exactly(2))
		m.open()
		defer m.close()
		causes := []error{errOnPurpose, object.ErrOverloaded, object.ErrOverloaded, nil}
		m.on(func(_ context.Context, _ *thing, text string) error {
			if text != "1" {
				return nil
			}
			err := causes[0]
			causes = causes[1:]
			return err
		})
		m.must("a", m.sends("b", "1"))
		m.came("b:1")
		pass(10*time.Second + time.Second/2)
		m.came("b:1")
		m.must("a", m.sends("b", "2"))
		m.came("b:2")
		pass(time.Second)
		m.came("b:1")
		pass(time.Second)
		m.came("b:1")
		m.left(0)
		if letters, err := lettersOf(m.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage})); len(letters) != 0 || err != nil {
			t.Errorf("dead letters: %+v, %v", letters, err)
		}
	})
}

// Proves M5: a handler that panics or ends its goroutine has failed an attempt, and those
// behind it pass.
func TestMessagesThatPanic(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("on purpose") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := newMail(t, exactly(2))
				m.open()
				defer m.close()
				m.on(func(ctx context.Context, th *thing, text string) error {
					if text == "1" {
						_ = th.st.Storage().Put(ctx, "lost", 1)
						_ = m.mail.Send(ctx, th.st, "c", "lost")
						end()
					}
					return nil
				})
				m.must("a", m.sends("b", "1", "2"))
				m.came("b:1", "b:2")
				m.left(1)
				in, err := m.host.Inspect(context.Background(), m.id("b"))
				if err != nil || len(in.Messages) != 1 || in.Messages[0].Attempts != 1 {
					t.Errorf("after the attempt: %+v, %v", in, err)
				}
				pass(time.Minute)
				m.came("b:1")
				m.left(0)
				letters, err := lettersOf(m.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
				if err != nil || len(letters) != 1 || letters[0].Attempts != 2 {
					t.Errorf("dead letters: %+v, %v", letters, err)
				}
				if m.stored("b", "lost") != "" {
					t.Error("a write of a handler that panicked is stored")
				}
			})
		})
	}
}

// Proves M3: an argument that the method cannot decode costs no attempt.
func TestMessageWithAnArgumentOfAnotherVersion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t)
		other := object.Handle(object.Define("thing", func(context.Context, *object.State) (*thing, error) { return nil, nil }), "mail",
			func(*thing, context.Context, int) (int, error) { return 0, nil })
		m.open()
		defer m.close()
		m.must("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, errors.Join(other.Send(ctx, th.st, "b", 7), m.mail.Send(ctx, th.st, "b", "8"))
		})
		m.came()
		pass(time.Hour)
		m.came()
		paused := m.host.PausedReceivers()
		if len(paused) != 1 || paused[0].Waiting != 2 {
			t.Errorf("paused: %+v", paused)
		}
		m.left(2)
	})
}
