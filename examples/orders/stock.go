package main

import (
	"context"
	"strconv"

	"github.com/holdfast-dev/holdfast/object"
)

// stock is how many pieces of an item are held for orders, and how many have left.
type stock struct {
	Held    int `json:"held"`
	Shipped int `json:"shipped"`
}

// shelf is the object of one item. It has a row for each order, so that a step which is
// repeated after a crash finds that its work is done.
type shelf struct {
	st    *object.State
	stock stock
}

// place is where the piece of an order is.
type place string

const (
	onShelf  place = "held"
	onTheWay place = "shipped"
)

var (
	shelves = object.Define("shelf", newShelf)
	hold    = object.Handle(shelves, "hold", (*shelf).hold)
	release = object.Handle(shelves, "release", (*shelf).release)
	ship    = object.Handle(shelves, "ship", (*shelf).ship)
	count   = object.Handle(shelves, "count", (*shelf).count)
)

func newShelf(ctx context.Context, st *object.State) (*shelf, error) {
	s := &shelf{st: st}
	_, err := st.Storage().GetInto(ctx, "stock", &s.stock)
	return s, err
}

func rowOf(number int) string { return "order/" + strconv.Itoa(number) }

// hold takes a piece for an order.
func (s *shelf) hold(ctx context.Context, number int) (struct{}, error) {
	var at place
	if found, err := s.st.Storage().GetInto(ctx, rowOf(number), &at); found || err != nil {
		return struct{}{}, err
	}
	return struct{}{}, s.move(ctx, number, onShelf, stock{s.stock.Held + 1, s.stock.Shipped})
}

// release puts the piece of an order back, if it is held.
func (s *shelf) release(ctx context.Context, number int) (struct{}, error) {
	var at place
	if _, err := s.st.Storage().GetInto(ctx, rowOf(number), &at); err != nil || at != onShelf {
		return struct{}{}, err
	}
	return struct{}{}, s.move(ctx, number, "", stock{s.stock.Held - 1, s.stock.Shipped})
}

// ship sends the piece of an order away. Some orders are refused.
func (s *shelf) ship(ctx context.Context, number int) (struct{}, error) {
	if orderOf(number).refused() {
		return struct{}{}, object.Permanent(errRefused)
	}
	var at place
	if _, err := s.st.Storage().GetInto(ctx, rowOf(number), &at); err != nil || at != onShelf {
		return struct{}{}, err
	}
	return struct{}{}, s.move(ctx, number, onTheWay, stock{s.stock.Held - 1, s.stock.Shipped + 1})
}

// move stores where the piece of an order is now, and the counts.
func (s *shelf) move(ctx context.Context, number int, to place, counts stock) error {
	rows := s.st.Storage()
	if to == "" {
		if _, err := rows.Delete(ctx, rowOf(number)); err != nil {
			return err
		}
	} else if err := rows.Put(ctx, rowOf(number), to); err != nil {
		return err
	}
	if err := rows.Put(ctx, "stock", counts); err != nil {
		return err
	}
	s.stock = counts // after the writes: a turn that fails leaves memory as it was
	return nil
}

func (s *shelf) count(context.Context, struct{}) (stock, error) { return s.stock, nil }
