package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/harness"
	"github.com/holdfast-dev/holdfast/object"
)

// draft is an invoice with two bugs. The tutorial, docs/TESTING.md, finds them.
type draft struct{ invoice }

func (d *draft) issue(ctx context.Context, b Bill) (bool, error) {
	if d.row.Cents != 0 {
		return false, nil
	}
	d.row.Cents = b.Cents
	if err := d.st.Storage().Put(ctx, "invoice", d.row); err != nil {
		return false, err
	}
	if err := d.st.Sync(ctx); err != nil { // safe on disk before anything else
		return false, err
	}
	return true, d.st.SetAlarm(ctx, d.st.Now().Add(b.In))
}

func (d *draft) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	key := fmt.Sprintf("%s-%d", d.st.Name(), d.st.Driver().Seams().Rand.Uint64()) // each charge has its key
	if err := d.charge(ctx, key, d.row.Cents); err != nil {
		return err
	}
	d.row.Paid = true
	return d.st.Storage().Put(ctx, "invoice", d.row)
}

// second is the draft after the first fix.
type second struct{ draft }

func (d *second) issue(ctx context.Context, b Bill) (bool, error) {
	return d.invoice.issue(ctx, b)
}

func newDraft(charge Charge) Invoices {
	class := object.Define("invoice", func(ctx context.Context, st *object.State) (*draft, error) {
		i, err := loadInvoice(ctx, st, charge)
		return &draft{i}, err
	})
	return Invoices{class, object.Handle(class, "issue", (*draft).issue)}
}

func newSecond(charge Charge) Invoices {
	class := object.Define("invoice", func(ctx context.Context, st *object.State) (*second, error) {
		i, err := loadInvoice(ctx, st, charge)
		return &second{draft{i}}, err
	})
	return Invoices{class, object.Handle(class, "issue", (*second).issue)}
}

// bank takes money once for each key, in the simulated world outside.
func bank(s *harness.Sim) Charge {
	return func(_ context.Context, key string, cents int) error {
		_, err := harness.DoOnce(s.World(), "charge/lunch", key, func() int { return cents })
		return err
	}
}

// lunch is the scenario: an invoice is issued, and a day and a half later it is
// paid.
func lunch(newInvoices func(Charge) Invoices) harness.Scenario {
	return func(s *harness.Sim) {
		invoices := newInvoices(bank(s))
		s.Host(invoices)
		s.OK(s.Retry(func() error {
			_, err := invoices.Issue.Call(s.Context(), s, "lunch", Bill{Cents: 1250, In: 24 * time.Hour})
			return err
		}))
		s.Advance(36 * time.Hour)
		s.Finally("the invoice is paid", func() error {
			if s.World().Count("charge/lunch") == 0 {
				return errors.New("a day and a half later nothing is charged")
			}
			return nil
		})
	}
}

func TestInvoiceSurvivesEveryCrash(t *testing.T) {
	once := harness.NoDoubleEffect("charge/")
	for _, store := range []harness.Option{harness.MapStore(), harness.PebbleStore()} {
		harness.Exhaust(t, lunch(NewInvoices), store, once, harness.Depth(2), harness.Budget(300), harness.NoLostAck, harness.OneAlarm)
	}
	harness.Exhaust(t, lunch(NewInvoices), once, harness.Seed(7), harness.Downtime(48*time.Hour))
}

// failure is the problem that the harness finds in a version of the invoice. Without a
// crash there is nothing to find.
func failure(t *testing.T, newInvoices func(Charge) Invoices) *harness.Failure {
	t.Helper()
	once := harness.NoDoubleEffect("charge/")
	harness.Run(t, lunch(newInvoices), once)
	_, err := harness.Explore(lunch(newInvoices), once)
	var found *harness.Failure
	if !errors.As(err, &found) {
		t.Fatalf("the bug was not found: %v", err)
	}
	return found
}

// The first bug: a crash between the two commits leaves an invoice that nothing will
// charge, and the client that asks again hears that all is done.
func TestDraftForgetsToCharge(t *testing.T) {
	f := failure(t, newDraft)
	if !strings.Contains(f.Promise, "the test's own: the invoice is paid") || !strings.Contains(f.Schedule, "invoice/lunch") {
		t.Errorf("found something else:\n%v", f)
	}
	isShown(t, f.Error())
}

// The second: a crash after the charge and before the commit that tells of it.
func TestSecondChargesTwice(t *testing.T) {
	f := failure(t, newSecond)
	if !strings.Contains(f.Promise, "A4: So state changes happen exactly once, outside effects at least once") {
		t.Errorf("found something else:\n%v", f)
	}
	isShown(t, f.Error())
}

const tutorial = "../../docs/TESTING.md"

// isShown checks that the tutorial shows the output of the harness, letter by letter.
func isShown(t *testing.T, text string) {
	t.Helper()
	document, err := os.ReadFile(tutorial)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(document), "\n```\n"+text+"\n```\n") {
		t.Errorf("docs/TESTING.md does not show this failure as it is now; paste it there:\n%s", text)
	}
}
