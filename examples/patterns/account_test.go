package patterns

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

var owners = []string{"alice", "bob"}

// transfers opens two accounts, which send to each other at the same time. Their clients
// ask until they have an answer, with a key that is remembered for ttl.
func transfers(ttl time.Duration) harness.Scenario {
	return func(s *harness.Sim) {
		s.Host(Accounts)
		for _, name := range owners {
			s.OK(s.Retry(func() error {
				_, err := Open.Call(s.Context(), s, name, 100, object.Idempotent("open", time.Hour))
				return err
			}))
		}
		for i, t := range []Transfer{{"bob", 30}, {"alice", 20}, {"bob", 5}} {
			s.Go("client", func() {
				s.OK(s.Retry(func() error {
					_, err := Send.Call(s.Context(), s, owners[i%2], t, object.Idempotent(fmt.Sprint("transfer ", i), ttl))
					return err
				}))
			})
		}
		s.Advance(time.Minute)
		s.Finally("each transfer has arrived once", func() error {
			m, err := count(s.Store())
			if err == nil && (m.received != 55 || m.toSend != 0) {
				err = fmt.Errorf("%+v", m)
			}
			return err
		})
	}
}

// constant is checked in each state that a crash leaves: the money of the accounts and
// the money under way are what was paid in, and what is under way is in an outbox.
func constant(store *storage.Store) error {
	m, err := count(store)
	if underWay := m.sent - m.received; err == nil && (m.cents+underWay != m.paidIn || underWay < 0 || underWay > m.toSend) {
		err = fmt.Errorf("%+v", m)
	}
	return err
}

// money is the sums over all accounts, in cents.
type money struct{ paidIn, cents, sent, received, toSend int }

func count(store *storage.Store) (m money, err error) {
	for _, name := range owners {
		var row accountRow
		opened, err := harness.Stored(store, Accounts.ID(name), "row", &row)
		if err != nil {
			return m, err
		}
		if opened {
			m.paidIn += 100
		}
		m.cents += row.Cents
		m.sent += row.Sent
		m.received += row.Received
		cents, err := outbox(store, Accounts.ID(name))
		if err != nil {
			return m, err
		}
		m.toSend += cents
	}
	return m, nil
}

// outbox is the sum of the transfers that an account is to send.
func outbox(store *storage.Store, id storage.ID) (cents int, err error) {
	o, err := store.Find(id)
	if err != nil || o.Number == 0 {
		return 0, err
	}
	rows, err := store.ListData(nil, o, "out/", storage.PrefixEnd("out/"), false)
	if err != nil {
		return 0, err
	}
	for rows.Next() {
		var t Transfer
		if err := json.Unmarshal(rows.Value(), &t); err != nil {
			return 0, errors.Join(err, rows.Close())
		}
		cents += t.Cents
	}
	return cents, errors.Join(rows.Err(), rows.Close())
}

func TestNoMoneyIsMadeOrLost(t *testing.T) {
	promises := []harness.Option{harness.Invariant("no money is made or lost", constant), harness.NoLostAck, harness.OneAlarm}
	harness.Exhaust(t, transfers(month), append(promises, harness.Depth(2), harness.Budget(250))...)
	harness.Exhaust(t, transfers(month), append(promises, harness.Seed(7), harness.Downtime(48*time.Hour))...)
	harness.Exhaust(t, transfers(month), append(promises, harness.PebbleStore(), harness.Budget(60))...)
}

// A key that is forgotten before the client repeats its call is none.
func TestKeysMustOutliveTheDowntime(t *testing.T) {
	f := found(t, transfers(time.Hour), harness.Downtime(48*time.Hour))
	if !strings.HasPrefix(f.Problem, "each transfer has arrived once: ") {
		t.Errorf("found something else:\n%v", f)
	}
}
