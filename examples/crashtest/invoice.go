package main

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Charge takes money from a card. A bank that is given a key again takes nothing.
type Charge func(ctx context.Context, key string, cents int) error

// Bill is the argument of Issue: an amount, and how long after the issue it is charged.
type Bill struct {
	Cents int
	In    time.Duration
}

// invoice is an object that charges a card once, when it is due.
type invoice struct {
	st     *object.State
	charge Charge
	row    invoiceRow
}

// invoiceRow is the stored row of an invoice.
type invoiceRow struct {
	Cents int
	Paid  bool
}

func loadInvoice(ctx context.Context, st *object.State, charge Charge) (invoice, error) {
	i := invoice{st: st, charge: charge}
	_, err := st.Storage().GetInto(ctx, "invoice", &i.row)
	return i, err
}

// issue stores the invoice and the time of its charge, in one commit. It reports
// false for one that was issued before.
func (i *invoice) issue(ctx context.Context, b Bill) (bool, error) {
	if i.row.Cents != 0 {
		return false, nil
	}
	i.row.Cents = b.Cents
	if err := i.st.Storage().Put(ctx, "invoice", i.row); err != nil {
		return false, err
	}
	return true, i.st.SetAlarm(ctx, i.st.Now().Add(b.In))
}

// Alarm charges the card. After a crash it runs again, so its key is the same
// each time: the name of the invoice.
func (i *invoice) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	if err := i.charge(ctx, i.st.Name(), i.row.Cents); err != nil {
		return err
	}
	i.row.Paid = true
	return i.st.Storage().Put(ctx, "invoice", i.row)
}

// Invoices has the class to open a host with, and its methods.
type Invoices struct {
	object.Definition
	Issue *object.Method[Bill, bool]
}

// NewInvoices defines invoices that are charged in the given way.
func NewInvoices(charge Charge) Invoices {
	class := object.Define("invoice", func(ctx context.Context, st *object.State) (*invoice, error) {
		i, err := loadInvoice(ctx, st, charge)
		return &i, err
	})
	return Invoices{class, object.Handle(class, "issue", (*invoice).issue)}
}
