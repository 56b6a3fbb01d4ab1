package patterns

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

var owners = []string{"alice", "bob"}

// Each account is opened with 100 cents, and each transfer has 10.
const opened, sent = 100, 10

// transfers opens two accounts, which send to each other at the same time. Their clients
// ask until they have an answer, with a key that is remembered for ttl.
func transfers(ttl time.Duration) harness.Scenario {
	return func(s *harness.Sim) {
		s.Host(Accounts)
		for _, name := range owners {
			s.OK(s.Retry(func() error {
				_, err := Open.Call(s.Context(), s, name, opened, object.Idempotent("open", time.Hour))
				return err
			}))
		}
		for i := range 3 {
			from, to := owners[i%2], owners[1-i%2]
			s.Go("client", func() {
				s.OK(s.Retry(func() error {
					_, err := Send.Call(s.Context(), s, from, Transfer{to, sent}, object.Idempotent(fmt.Sprint("transfer ", i), ttl))
					return err
				}))
			})
		}
		s.Advance(time.Minute)
		s.Finally("each transfer has arrived once", func() error {
			m, err := count(s.Store())
			if err == nil && (m.cents["alice"] != opened-sent || m.cents["bob"] != opened+sent || m.underWay != 0) {
				err = fmt.Errorf("%+v", m)
			}
			return err
		})
	}
}

// constant is checked in each state that a crash leaves: the accounts have the money that
// was paid in, but for the messages that are under way.
func constant(store *storage.Store) error {
	m, err := count(store)
	if err == nil && m.cents["alice"]+m.cents["bob"]+sent*m.underWay != opened*m.accounts {
		err = fmt.Errorf("%+v", m)
	}
	return err
}

// money is the money of the accounts, and the messages that have money for them.
type money struct {
	accounts, underWay int
	cents              map[string]int
}

func count(store *storage.Store) (money, error) {
	m := money{cents: map[string]int{}}
	for _, name := range owners {
		var cents int
		exists, err := harness.Stored(store, Accounts.ID(name), "cents", &cents)
		if err != nil {
			return m, err
		}
		if exists {
			m.accounts++
		}
		m.cents[name] = cents
	}
	messages, err := store.CountMessages()
	if err != nil {
		return m, err
	}
	for more := true; more && err == nil; {
		more, err = messages.Next(func(_ storage.ID, n int) bool { m.underWay += n; return true })
	}
	if closeErr := messages.Close(); err == nil {
		err = closeErr
	}
	return m, err
}

// Proves M2. Each transfer is in the account of its sender, in that of its receiver, or in
// a message, in each state that a crash leaves.
func TestCrashNoMoneyIsMadeOrLost(t *testing.T) {
	promises := []harness.Option{harness.Invariant("no money is made or lost", constant), harness.NoLostAck, harness.NoTornBatch, harness.NoLostMessage}
	harness.Exhaust(t, transfers(month), append(promises, harness.Depth(2), harness.Budget(250))...)
	harness.Exhaust(t, transfers(month), append(promises, harness.Seed(7), harness.Downtime(48*time.Hour))...)
	harness.Exhaust(t, transfers(month), append(promises, harness.PebbleStore(), harness.Budget(60))...)
}

// A key protects nothing if it is forgotten before the client repeats its call.
func TestKeysMustOutliveTheDowntime(t *testing.T) {
	f := found(t, transfers(time.Hour), harness.Downtime(48*time.Hour))
	if !strings.HasPrefix(f.Problem, "each transfer has arrived once: ") {
		t.Errorf("found something else:\n%v", f)
	}
}
