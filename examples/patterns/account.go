package patterns

import (
	"context"
	"errors"
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

// account is an account with money.
type account struct {
	st    *object.State
	cents int
}

func loadAccount(ctx context.Context, st *object.State) (*account, error) {
	a := &account{st: st}
	_, err := st.Storage().GetInto(ctx, "cents", &a.cents)
	return a, err
}

// month is how long a receiver remembers a key: longer than its client may try, with the
// time that the process may be down.
const month = 30 * 24 * time.Hour

// Accounts and the calls to them.
var (
	Accounts = object.Define("account", loadAccount)
	Open     = object.Handle(Accounts, "open", (*account).open)
	Send     = object.Handle(Accounts, "send", (*account).send)
	Deposit  = object.Handle(Accounts, "deposit", (*account).add)
)

func (a *account) open(ctx context.Context, cents int) (int, error) {
	return a.add(ctx, cents-a.cents)
}

// send takes the money and sends it to the other account: one commit.
func (a *account) send(ctx context.Context, t Transfer) (int, error) {
	if t.Cents <= 0 || t.Cents > a.cents {
		return 0, ErrFunds
	}
	if err := Deposit.Send(ctx, a.st, t.To, t.Cents); err != nil { // a message, which leaves with this turn's commit
		return 0, err
	}
	return a.add(ctx, -t.Cents)
}

// add adds to the money. Memory follows storage, so that a turn that fails has changed
// neither.
func (a *account) add(ctx context.Context, cents int) (int, error) {
	sum := a.cents + cents
	if err := a.st.Storage().Put(ctx, "cents", sum); err != nil {
		return 0, err
	}
	a.cents = sum
	return sum, nil
}
