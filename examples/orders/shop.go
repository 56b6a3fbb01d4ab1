package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// shop has the workflow of an order, the warehouse, and the bank.
type shop struct {
	runs    *workflow.Workflow[order, receipt]
	bank    bank
	packing time.Duration    // how long an order is packed
	paid    func(number int) // told when the bank has answered a charge

	opened chan struct{} // closed when from is set
	from   object.Caller // calls the warehouse
}

// receipt is the output of an order that was shipped.
type receipt struct {
	Charge int // its number in the book of the payment server
}

// packingTime is longer than a workflow waits in memory, so that each order sleeps in the
// store alone.
const packingTime = 1200 * time.Millisecond

// approvalTime is how long an expensive order waits to be approved.
const approvalTime = 72 * time.Hour

var (
	approved = workflow.NewSignal[bool]("approved")
	stage    = workflow.NewVar[string]("stage")
)

// patient tries a step until it succeeds or fails with a Permanent error. A charge must not
// be given up after an error that leaves open whether it was made: no later step could tell
// whether there is anything to refund.
var patient = jobs.Retry{MaxAttempts: 1_000_000, Backoff: jobs.Exponential(100*time.Millisecond, 2*time.Second)}

func newShop(b bank, packing time.Duration, paid func(number int)) *shop {
	s := &shop{bank: b, packing: packing, paid: paid, opened: make(chan struct{})}
	s.runs = workflow.New[order, receipt]("order", workflow.Config{Signals: workflow.Signals{approved}, Retry: patient})
	s.runs.Func(s.fulfil)
	return s
}

func (s *shop) definitions() []object.Definition { return []object.Definition{s.runs, shelves} }

// open sets the caller of the warehouse. Runs that an earlier process has left may begin
// before object.Open returns, so their steps wait for it.
func (s *shop) open(from object.Caller) {
	s.from = from
	close(s.opened)
}

// fulfil is the workflow of an order. Each step is recorded when it has succeeded. After a
// crash a later process calls fulfil again, and gets the recorded results until it reaches
// the step that was under way.
func (s *shop) fulfil(ctx *workflow.Context, o order) (receipt, error) {
	if err := s.inWarehouse(ctx, "hold", hold, o); err != nil {
		return receipt{}, err
	}
	workflow.Undo(ctx, "release", func(ctx context.Context) error { return s.call(ctx, release, o) })
	if o.needsApproval() {
		stage.Set(ctx, "waits for approval")
		if ok, err := approved.Wait(ctx, approvalTime); err != nil || !ok {
			return receipt{}, errors.Join(errors.New("not approved"), err)
		}
	}
	charge, err := workflow.Step(ctx, "charge", func(ctx context.Context) (int, error) {
		number, err := s.bank.charge(ctx, workflow.Key(ctx), o) // the key is the same in each repeat
		if err == nil {
			s.paid(o.Number)
		}
		return number, err
	})
	if err != nil {
		return receipt{}, err
	}
	workflow.Undo(ctx, "refund", func(ctx context.Context) error { return s.bank.refund(ctx, workflow.Key(ctx), o, charge) })
	stage.Set(ctx, "is packed")
	if err := workflow.Sleep(ctx, s.packing); err != nil {
		return receipt{}, err
	}
	if err := s.inWarehouse(ctx, "ship", ship, o); err != nil {
		return receipt{}, err // the undos run: first the refund, then the release
	}
	return receipt{charge}, nil
}

// inWarehouse is a step that calls the shelf of the order's item.
func (s *shop) inWarehouse(ctx *workflow.Context, name string, m *object.Method[int, struct{}], o order) error {
	_, err := workflow.Step(ctx, name, func(ctx context.Context) (struct{}, error) { return struct{}{}, s.call(ctx, m, o) })
	return err
}

func (s *shop) call(ctx context.Context, m *object.Method[int, struct{}], o order) error {
	<-s.opened
	_, err := m.Call(ctx, s.from, o.Item, o.Number)
	return err
}

// place starts the workflow of an order, and approves it if it must be. An order that is
// there stays as it is.
func (s *shop) place(ctx context.Context, from object.Caller, o order) error {
	if _, err := s.runs.Start(ctx, from, o.id(), o); err != nil || !o.needsApproval() {
		return err
	}
	err := approved.Send(ctx, from, s.runs, o.id(), true, object.Idempotent("approval of "+o.id(), 24*time.Hour))
	if errors.Is(err, workflow.ErrEnded) {
		return nil // an earlier process has approved it
	}
	return err
}

// wait waits until an order has ended, and returns how.
func (s *shop) wait(ctx context.Context, from object.Caller, o order) (ending, error) {
	r, err := s.runs.Wait(ctx, from, o.id())
	switch {
	case err == nil:
		return ending{shipped, r.Charge}, nil
	case errors.Is(err, workflow.ErrFailed) && strings.Contains(err.Error(), errRefused.Error()):
		return ending{outcome: refunded}, nil
	}
	return ending{}, fmt.Errorf("order %d: %w", o.Number, err)
}
