package harness_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// ledger is a program over seams and a store, without a host: two counters that
// must stay equal, and that each acknowledged deposit is in. Its bugs are planted.
type ledger struct {
	seams seam.Seams
	store *storage.Store
	turn  chan struct{} // one token: its holder may change the store
	bug   string
}

var account = storage.ID{Class: "ledger", Name: "one"}

func (l *ledger) boot(_ context.Context, p *harness.Process) (err error) {
	l.seams, l.turn = p.Seams, make(chan struct{}, 1)
	l.turn <- struct{}{}
	l.store, err = storage.Open(p.Store)
	return err
}

func read(store *storage.Store, key string) uint64 {
	o, err := store.Find(account)
	if err != nil || o.Number == 0 {
		return 0
	}
	v, ok, err := store.Data(nil, o, key)
	if err != nil || !ok {
		return 0
	}
	return binary.BigEndian.Uint64(v)
}

// deposit adds one to both counters and waits until that is durable.
func (l *ledger) deposit(ctx context.Context) error {
	t, err := l.change(ctx)
	if err == nil && l.bug != "no gate" {
		err = l.store.WaitDurable(t)
	}
	l.seams.At("ack/before", account.String())
	return err
}

func (l *ledger) change(ctx context.Context) (storage.Ticket, error) {
	if l.bug != "no turns" {
		if err := l.seams.Executor.Wait(ctx, l.turn); err != nil {
			return 0, err
		}
		defer func() { l.turn <- struct{}{} }()
	}
	l.seams.At("handler/enter", account.String())
	credit, debit := read(l.store, "credit"), read(l.store, "debit")
	if l.bug == "ack before commit" {
		l.seams.Executor.Go("late", func() { _, _ = l.write(credit+1, debit+1) })
		return 0, nil
	}
	return l.write(credit+1, debit+1)
}

func (l *ledger) write(credit, debit uint64) (storage.Ticket, error) {
	o, err := l.store.Find(account)
	if err != nil {
		return 0, err
	}
	var b storage.Batch
	b.For(account)
	if o.Number == 0 {
		o.Number = l.store.NewNumber()
		b.SetHeader(o)
	}
	b.SetData(o, "credit", binary.BigEndian.AppendUint64(nil, credit))
	if l.bug == "two commits" {
		if _, err := l.store.Commit(&b); err != nil {
			return 0, err
		}
		b.Reset()
		b.For(account)
	}
	b.SetData(o, "debit", binary.BigEndian.AppendUint64(nil, debit))
	return l.store.Commit(&b)
}

// ledgerScenario makes deposits, one by one and from two clients at a time.
func ledgerScenario(bug string) harness.Scenario {
	return func(s *harness.Sim) {
		acked, unknown := 0, 0
		l := &ledger{bug: bug}
		deposit := func() {
			switch err := s.Call(account.String(), l.deposit); {
			case err == nil:
				acked++
			case harness.Unknown(err):
				unknown++
			default:
				s.Fatalf("deposit: %v", err)
			}
		}
		s.Boot(l.boot)
		deposit()
		if bug == "forgets on restart" && s.Crashes() > 0 {
			acked++
		}
		for range 2 {
			s.Go("client", func() { s.Sleep(time.Second); deposit() })
		}
		s.Advance(2 * time.Second)
		s.Sometimes("a crash", s.Crashes() > 0)
		s.Finally("balance", func() error {
			store := s.Store()
			credit, debit := read(store, "credit"), read(store, "debit")
			if credit != debit {
				return fmt.Errorf("credit is %d, debit is %d", credit, debit)
			}
			if c := int(credit); c < acked || c > acked+unknown {
				return fmt.Errorf("%d deposits are stored, %d were acknowledged and %d are unknown", c, acked, unknown)
			}
			return nil
		})
	}
}

func TestLedgerWithoutBugs(t *testing.T) {
	for seed := range uint64(3) {
		harness.Exhaust(t, ledgerScenario(""), harness.Depth(2), harness.Seed(seed), harness.NoLostAck)
	}
	harness.Exhaust(t, ledgerScenario(""), harness.PebbleStore(), harness.NoLostAck, harness.NoTornBatch)
}

// Each planted bug is found, on both stores, by the check that names it; and the
// line that the failure prints finds it again.
func TestLedgerBugsAreFound(t *testing.T) {
	tests := []struct {
		bug, want string
		opts      []harness.Option
	}{
		{"ack before commit", "deposits are stored", nil},
		{"two commits", ", debit is ", nil},
		{"no gate", "deposits are stored", nil},
		{"no gate", "let out before the commit", []harness.Option{harness.NoLostAck}},
		{"no turns", "deposits are stored", []harness.Option{harness.Seed(1)}},
		{"forgets on restart", "deposits are stored", nil},
	}
	for _, tt := range tests {
		for name, store := range map[string]harness.Option{"map": harness.MapStore(), "pebble": harness.PebbleStore()} {
			t.Run(tt.bug+"/"+name, func(t *testing.T) {
				opts := append(tt.opts, store)
				report, err := harness.Explore(ledgerScenario(tt.bug), opts...)
				var f *harness.Failure
				if !errors.As(err, &f) || !strings.Contains(f.Problem, tt.want) {
					t.Fatalf("after %d schedules: %v", report.Schedules, err)
				}
				again := harness.Failed(ledgerScenario(tt.bug), f.Schedule, opts...)
				if again == nil || again.Problem != f.Problem || again.Timeline != f.Timeline {
					t.Errorf("the replay of %s says %v, the first run said %v", f.Schedule, again, f)
				}
			})
		}
	}
}
