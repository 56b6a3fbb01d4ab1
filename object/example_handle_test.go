package object_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/object"
)

// Seats is an object that knows the passenger of each seat of a train.
type Seats struct{ st *object.State }

// NewSeats reads nothing, because each call reads the one key that it needs.
func NewSeats(_ context.Context, st *object.State) (*Seats, error) { return &Seats{st}, nil }

// Booking is the argument of a call. A host's codec, JSON by default, encodes it.
type Booking struct {
	Seat      string
	Passenger string
}

// ErrTaken is an error that callers find with errors.Is.
var ErrTaken = errors.New("seat is taken")

// Book is a turn. The check and the write are one commit, and no other turn of the
// same train comes between them.
func (s *Seats) Book(ctx context.Context, b Booking) (string, error) {
	var holder string
	taken, err := s.st.Storage().GetInto(ctx, b.Seat, &holder)
	if err != nil {
		return "", err
	}
	if taken {
		return holder, ErrTaken
	}
	return b.Passenger, s.st.Storage().Put(ctx, b.Seat, b.Passenger)
}

// A method is a handler and its name in the store. The handler is a method of the object,
// or a function that takes the object first.
var (
	Trains = object.Define("train", NewSeats)
	Book   = object.Handle(Trains, "book", (*Seats).Book)
	Cancel = object.Handle(Trains, "cancel", func(s *Seats, ctx context.Context, seat string) (bool, error) {
		return s.st.Storage().Delete(ctx, seat)
	})
)

func ExampleHandle() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "trains") // a program names a directory that stays
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	host, err := object.Open(object.Options{Dir: dir}, Trains)
	if err != nil {
		log.Fatal(err)
	}

	holder, err := Book.Call(ctx, host, "TGV 6607", Booking{Seat: "12A", Passenger: "Alice"})
	fmt.Println(holder, err)
	_, err = Book.Call(ctx, host, "TGV 6607", Booking{Seat: "12A", Passenger: "Bob"})
	fmt.Println(err, errors.Is(err, ErrTaken))
	cancelled, err := Cancel.Call(ctx, host, "TGV 6607", "12A")
	fmt.Println(cancelled, err)

	if err := host.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Alice <nil>
	// seat is taken true
	// true <nil>
}
