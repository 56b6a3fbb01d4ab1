package main

import (
	"errors"
	"fmt"
)

// order is one order. Its number decides all of it, so each process can compute every
// order, and the judge can compute how it has to end.
type order struct {
	Number int
	Item   string
	Cents  int64
}

// items is how many items the shop sells.
const items = 8

func orderOf(number int) order {
	return order{Number: number, Item: itemName(number % items), Cents: 500 + int64(number)*3700%30000}
}

func itemName(i int) string { return fmt.Sprintf("item-%d", i) }

// id is the id of the order's workflow.
func (o order) id() string { return fmt.Sprintf("order-%06d", o.Number) }

// approvalCents is the price from which an order waits until it is approved.
const approvalCents = 20000

func (o order) needsApproval() bool { return o.Cents >= approvalCents }

// refusedEach says which orders the warehouse refuses to ship: each 7th.
const refusedEach = 7

func (o order) refused() bool { return o.Number%refusedEach == 0 }

// errRefused is the answer of the warehouse for an order that it cannot ship. The order
// has been paid by then, so it must be refunded.
var errRefused = errors.New("the parcel is too heavy")

// outcome is how an order has ended.
type outcome string

const (
	shipped  outcome = "shipped"
	refunded outcome = "refunded"
)

// wants is how the order has to end.
func (o order) wants() outcome {
	if o.refused() {
		return refunded
	}
	return shipped
}
