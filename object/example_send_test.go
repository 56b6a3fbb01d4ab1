package object_test

import (
	"context"
	"fmt"
	"log"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
)

// Piggy is a box with coins.
type Piggy struct{ state *object.State }

// coinsIn is the answer of insert: how many coins are in the box. An insert that is only sent does
// not know it.
type coinsIn struct {
	Sent bool
	Sum  int
}

// insert adds coins to the box.
func (p *Piggy) insert(ctx context.Context, n int) (coinsIn, error) {
	var sum int
	if _, err := p.state.Storage().GetInto(ctx, "coins", &sum); err != nil {
		return coinsIn{}, err
	}
	sum += n
	fmt.Println(p.state.ID(), "has", sum)
	return coinsIn{Sum: sum}, p.state.Storage().Put(ctx, "coins", sum)
}

// inside tells how many coins are in the box.
func (p *Piggy) inside(ctx context.Context, _ struct{}) (sum int, err error) {
	_, err = p.state.Storage().GetInto(ctx, "coins", &sum)
	return sum, err
}

var (
	piggies = object.Define("piggy", func(_ context.Context, st *object.State) (*Piggy, error) { return &Piggy{st}, nil })
	insert  = object.Handle(piggies, "insert", (*Piggy).insert, object.Sent(func(int) coinsIn { return coinsIn{Sent: true} }))
	inside  = object.Handle(piggies, "inside", (*Piggy).inside)
)

// Purse is a purse that pays coins into boxes.
type Purse struct {
	state *object.State
	coins int
}

// pay takes a coin out of the purse and sends it to a box. Both happen or neither does,
// because the message is a part of the turn's commit.
func (p *Purse) pay(ctx context.Context, box string) (left int, err error) {
	p.coins--
	if err := p.state.Storage().Put(ctx, "coins", p.coins); err != nil {
		return 0, err
	}
	return p.coins, insert.Send(ctx, p.state, box, 1)
}

// payTwice calls methods of a box with the Outbox, so that the calls are sent.
func (p *Purse) payTwice(ctx context.Context, box string) (left int, err error) {
	answer, err := insert.Call(ctx, p.state.Outbox(), box, 2)
	if err != nil {
		return 0, err
	}
	fmt.Println("sent:", answer.Sent)
	_, err = inside.Call(ctx, p.state.Outbox(), box, struct{}{}) // its answer cannot be known yet
	fmt.Println(err)
	p.coins -= 2
	return p.coins, p.state.Storage().Put(ctx, "coins", p.coins)
}

var (
	purseClass = object.Define("purse", func(_ context.Context, st *object.State) (*Purse, error) { return &Purse{st, 5}, nil })
	payOne     = object.Handle(purseClass, "pay", (*Purse).pay)
	payTwo     = object.Handle(purseClass, "pay twice", (*Purse).payTwice)
)

// A method that is sent runs if, and only if, the turn that sends it commits.
func ExampleMethod_Send() {
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, piggies, purseClass)
	if err != nil {
		log.Fatal(err)
	}
	left, err := payOne.Call(ctx, host, "anna", "pink")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("left in the purse:", left)
	sum, err := inside.Call(ctx, host, "pink", struct{}{}) // it stands behind the message
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("in the box:", sum)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Unordered output:
	// left in the purse: 4
	// piggy/pink has 1
	// in the box: 1
}

// With the Outbox of a State, a call becomes a message. Sent gives the answer that the
// caller gets then; a method without one refuses.
func ExampleState_Outbox() {
	ctx := context.Background()
	host, err := object.Open(object.Options{Storage: storage.Options{Engine: memstore.New()}}, piggies, purseClass)
	if err != nil {
		log.Fatal(err)
	}
	left, err := payTwo.Call(ctx, host, "anna", "blue")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("left in the purse:", left)
	sum, err := inside.Call(ctx, host, "blue", struct{}{}) // it stands behind the message
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("in the box:", sum)
	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Unordered output:
	// sent: true
	// piggy/blue: inside: object: method needs an answer: call it with the State, not with its Outbox
	// left in the purse: 3
	// piggy/blue has 2
	// in the box: 2
}
