package object_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Proves O11, M7. A mailbox that is full of calls takes messages, but only as many as may be under
// way to one receiver: 64, or 256 KiB. The others stay on disk. All are handled, each once, and
// no attempt is counted.
func TestFullMailboxTakesMessages(t *testing.T) {
	const share = 3 << 10 // of 256 KiB: the argument of one of 64, beside the 1 KiB that each takes in memory
	for _, test := range []struct{ messages, bytes, taken int }{
		{63, 1, 63}, {64, 1, 64}, {65, 1, 64}, {200, 1, 64}, {65, share - 10, 64}, {65, share + 100, 62}, {3, 300 << 10, 1},
	} {
		t.Run(fmt.Sprintf("%d messages of %d bytes", test.messages, test.bytes), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				m := newMail(t, object.ClassOptions{MailboxLimit: 2, MailboxAge: time.Hour})
				m.open()
				defer m.close()
				gate := make(chan struct{})
				var calls sync.WaitGroup
				for range 3 { // the first runs, two wait
					calls.Go(func() { m.must("b", until(gate)) })
					pass(0)
				}
				m.must("a", func(th *thing, ctx context.Context) (any, error) {
					var err error
					for i := range test.messages {
						err = errors.Join(err, m.mail.Send(ctx, th.st, "b", fmt.Sprint(i)+" "+strings.Repeat("x", test.bytes)))
					}
					return nil, err
				})
				pass(time.Minute)
				if got := m.explain("b").Mailbox; got.Calls != 2 || got.Others != test.taken || !got.Refusing {
					t.Errorf("O11: the mailbox is %+v, want 2 calls and %d messages", got, test.taken)
				}
				if _, err := m.call("b", nothing); !errors.Is(err, object.ErrOverloaded) {
					t.Errorf("O11: a call too many: %v", err)
				}
				close(gate)
				calls.Wait()
				pass(time.Minute)
				if got := strings.Count(m.got(), "b:"); got != test.messages {
					t.Errorf("M7: %d messages were handled, want %d", got, test.messages)
				}
				m.left(0)
			})
		})
	}
}

// Proves O11. Messages that wait in the mailbox count towards the limit of calls, to the last place,
// and not towards the age.
func TestMessagesCountInTheMailbox(t *testing.T) {
	bubble(t, func(t *testing.T) {
		m := newMail(t, object.ClassOptions{MailboxLimit: 3, MailboxAge: time.Second})
		m.open()
		defer m.close()
		gate := make(chan struct{})
		var calls sync.WaitGroup
		wait := func(act action) {
			calls.Go(func() { m.must("b", act) })
			pass(0)
		}
		refusing := func(want bool) {
			t.Helper()
			if got := m.explain("b").Mailbox; got.Refusing != want {
				t.Errorf("O11: the mailbox is %+v", got)
			}
		}
		wait(until(gate)) // it runs
		m.must("a", m.sends("b", "1", "2"))
		pass(time.Minute) // they have waited for longer than a call may
		refusing(false)
		wait(nothing)
		refusing(true)
		if _, err := m.call("b", nothing); !errors.Is(err, object.ErrOverloaded) {
			t.Errorf("O11: a call behind two messages and a call: %v", err)
		}
		close(gate)
		calls.Wait()
		m.came("b:1", "b:2")
		m.must("b", nothing)
	})
}
