package journal_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/object/journal"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Paid is the event of an account, and Account the state that the events lead to.
type (
	Paid    struct{ Cents int }
	Account struct{ Cents, Payments int }
)

// add is the fold: it has no clock, no random number and no memory of its own.
func add(a Account, e Paid) (Account, error) {
	return Account{a.Cents + e.Cents, a.Payments + 1}, nil
}

// Purse is an object whose state is a journal.
type Purse struct {
	journal *journal.Journal[Account, Paid]
}

// open reads the journal when the object comes into memory.
func open(ctx context.Context, state *object.State) (*Purse, error) {
	j, err := journal.Attach(ctx, state, journal.Options[Account, Paid]{Apply: add, Keep: -1})
	return &Purse{j}, err
}

// Pay decides with the state of before, appends the decision, and answers with the state of
// after.
func (p *Purse) Pay(ctx context.Context, cents int) (Account, error) {
	if p.journal.State().Cents+cents < 0 {
		return p.journal.State(), errors.New("there is not so much in the purse")
	}
	err := p.journal.Append(ctx, Paid{cents})
	return p.journal.State(), err
}

// Before is the state before the last event.
func (p *Purse) Before(ctx context.Context, _ struct{}) (Account, error) {
	return p.journal.At(ctx, p.journal.Seq()-1)
}

// After lists the events after one that the caller has seen.
func (p *Purse) After(ctx context.Context, seen uint64) (events []string, err error) {
	for e, err := range p.journal.Since(ctx, seen) {
		if err != nil {
			return nil, err
		}
		events = append(events, fmt.Sprint(e.Seq, ": ", e.Event.Cents))
	}
	return events, nil
}

var (
	purses = object.Define("purse", open)
	pay    = object.Handle(purses, "pay", (*Purse).Pay)
	before = object.Handle(purses, "before", (*Purse).Before)
	after  = object.Handle(purses, "after", (*Purse).After)
)

// ctx and host are of a program that keeps purses in memory.
var ctx, host = context.Background(), func() *object.Host {
	h, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, purses)
	if err != nil {
		log.Fatal(err)
	}
	return h
}

// A purse is made of payments. One that is refused is no event.
func ExampleAttach() {
	h := host()
	defer h.Shutdown(ctx)
	fmt.Println(pay.Call(ctx, h, "anna", 500))
	fmt.Println(pay.Call(ctx, h, "anna", -120))
	_, err := pay.Call(ctx, h, "anna", -400)
	fmt.Println(err)
	// Output:
	// {500 1} <nil>
	// {380 2} <nil>
	// there is not so much in the purse
}

// The state as of an earlier event is folded from the rows.
func ExampleJournal_At() {
	h := host()
	defer h.Shutdown(ctx)
	for _, cents := range []int{500, -120, 30} {
		if _, err := pay.Call(ctx, h, "bob", cents); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(before.Call(ctx, h, "bob", struct{}{}))
	// Output: {380 2} <nil>
}

// A reader that remembers the last event it has seen asks for those after it.
func ExampleJournal_Since() {
	h := host()
	defer h.Shutdown(ctx)
	for _, cents := range []int{500, -120, 30} {
		if _, err := pay.Call(ctx, h, "carl", cents); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(after.Call(ctx, h, "carl", 1))
	// Output: [2: -120 3: 30] <nil>
}
