package object_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Account is an object that holds some money.
type Account struct {
	st    *object.State
	cents int
}

// NewAccount makes an account in memory from its stored rows.
func NewAccount(ctx context.Context, st *object.State) (*Account, error) {
	a := &Account{st: st}
	_, err := st.Storage().GetInto(ctx, "cents", &a.cents)
	return a, err
}

// Deposit adds to the account.
func (a *Account) Deposit(ctx context.Context, cents int) (int, error) {
	a.cents += cents
	return a.cents, a.st.Storage().Put(ctx, "cents", a.cents)
}

// Transfer says how much goes to which account. ID is another one for each transfer.
type Transfer struct {
	ID    string
	To    string
	Cents int
}

// Send calls another object: the caller is then the State. This account's commit comes
// after that of the other, so a crash between the two is possible. A client that sends
// the transfer again finishes it, because the key makes the deposit once.
func (a *Account) Send(ctx context.Context, t Transfer) (int, error) {
	if a.cents < t.Cents {
		return a.cents, fmt.Errorf("%d cents are not enough for %d", a.cents, t.Cents)
	}
	if _, err := Deposit.Call(ctx, a.st, t.To, t.Cents, object.Idempotent(t.ID, 24*time.Hour)); err != nil {
		return a.cents, err
	}
	a.cents -= t.Cents
	return a.cents, a.st.Storage().Put(ctx, "cents", a.cents)
}

var (
	Accounts = object.Define("account", NewAccount)
	Deposit  = object.Handle(Accounts, "deposit", (*Account).Deposit)
	Send     = object.Handle(Accounts, "send", (*Account).Send)
)

// A program calls with the host as caller, and gets the answer when it is durable.
func ExampleMethod_Call() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "accounts") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Accounts)
	if err != nil {
		log.Fatal(err)
	}

	alice, err := Deposit.Call(ctx, host, "alice", 500)
	fmt.Println("alice", alice, err)
	transfer := Transfer{ID: "t-1", To: "bob", Cents: 200}
	alice, err = Send.Call(ctx, host, "alice", transfer, object.Idempotent(transfer.ID, 24*time.Hour))
	fmt.Println("alice", alice, err)
	bob, err := Deposit.Call(ctx, host, "bob", 0)
	fmt.Println("bob", bob, err)

	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// alice 500 <nil>
	// alice 300 <nil>
	// bob 200 <nil>
}
