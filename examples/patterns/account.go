package patterns

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// ErrFunds says that an account has less than it is to send.
var ErrFunds = errors.New("not enough money")

// Transfer is money on its way to another account.
type Transfer struct {
	To    string
	Cents int
}

// account is an account, and the outbox of its transfers.
type account struct {
	st  *object.State
	row accountRow
}

// accountRow is what is stored of an account. Its outbox is in rows of its own.
type accountRow struct {
	Cents          int
	Sent, Received int // cents, since the account was opened
}

func loadAccount(ctx context.Context, st *object.State) (*account, error) {
	a := &account{st: st}
	_, err := st.Storage().GetInto(ctx, "row", &a.row)
	return a, err
}

// month is how long a receiver remembers a transfer: longer than the sender may try,
// with the time that the process may be down.
const month = 30 * 24 * time.Hour

// Accounts and the calls to them.
var (
	Accounts = object.Define("account", loadAccount)
	Open     = object.Handle(Accounts, "open", (*account).open)
	Send     = object.Handle(Accounts, "send", (*account).send)
	Deposit  = object.Handle(Accounts, "deposit", (*account).deposit)
)

func (a *account) open(ctx context.Context, cents int) (int, error) {
	return cents, a.put(ctx, accountRow{Cents: cents})
}

// send takes the money and stores the transfer and the alarm that delivers it: one
// commit.
func (a *account) send(ctx context.Context, t Transfer) (int, error) {
	if t.Cents <= 0 || t.Cents > a.row.Cents {
		return 0, ErrFunds
	}
	row := a.row
	row.Cents -= t.Cents
	row.Sent += t.Cents
	key := fmt.Sprintf("out/%016x", a.st.NextSequence()) // no other transfer of the store has it
	if err := a.st.Storage().Put(ctx, key, t); err != nil {
		return 0, err
	}
	if err := a.put(ctx, row); err != nil {
		return 0, err
	}
	return row.Cents, a.st.SetAlarm(ctx, a.st.Now())
}

// Alarm delivers the transfers, each until it is answered. After a crash it runs
// again, and the receiver recognises a repeat by its key.
func (a *account) Alarm(ctx context.Context, _ object.AlarmInfo) error {
	for item, err := range a.st.Storage().List(ctx, object.ListOptions{Prefix: "out/"}) {
		var t Transfer
		if err == nil {
			err = a.st.Codec().Decode(item.Value, &t)
		}
		if err != nil {
			return err
		}
		err = a.st.Release(ctx, func(ctx context.Context) error { // other turns run meanwhile
			_, err := Deposit.Call(ctx, a.st, t.To, t.Cents, object.Idempotent(item.Key, month))
			return err
		})
		if err != nil {
			return err
		}
		if err := a.st.Storage().Remove(ctx, item.Key); err != nil {
			return err
		}
	}
	return nil
}

func (a *account) deposit(ctx context.Context, cents int) (int, error) {
	row := a.row
	row.Cents += cents
	row.Received += cents
	return row.Cents, a.put(ctx, row)
}

// put stores row. Memory follows storage, so that a turn that fails has changed neither.
func (a *account) put(ctx context.Context, row accountRow) error {
	err := a.st.Storage().Put(ctx, "row", row)
	if err == nil {
		a.row = row
	}
	return err
}
