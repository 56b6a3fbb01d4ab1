package main

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// Outbox is a job type, to open a host with. It delivers messages to somewhere outside:
// one after the other, in the order in which they were posted, each until it was taken
// or given up. After Post has returned, its message is never lost. It may be delivered
// more than once, though only after an error or a crash, and then with the same key.
type Outbox struct {
	*object.Class[box]
	deliver Deliver
	options engine.Options

	post   *object.Method[string, uint64]
	status *object.Method[struct{}, Status]
}

// Deliver hands a message to the outside. The key is the same each time that the
// message is delivered, and no other message has it.
type Deliver func(ctx context.Context, key, message string) error

// NewOutbox defines an outbox. The retry is that of each message.
func NewOutbox(name string, retry jobs.Retry, deliver Deliver) *Outbox {
	o := &Outbox{deliver: deliver, options: engine.Options{Retry: retry}}
	o.Class = object.Define(name, func(ctx context.Context, st *object.State) (*box, error) { return load(ctx, st, o) },
		engine.ClassOptions(object.ClassOptions{})) // a wake-up is tried until it succeeds
	o.post = object.Handle(o.Class, "post", (*box).post)
	o.status = object.Handle(o.Class, "status", (*box).status)
	return o
}

// Post adds a message to the outbox called id and returns its number. A repeat with
// the same idempotency key adds nothing.
func (o *Outbox) Post(ctx context.Context, from object.Caller, id, message string, opts ...object.CallOption) (uint64, error) {
	return o.post.Call(ctx, from, id, message, opts...)
}

// Status is how an outbox is.
type Status struct {
	Posted, Taken, GivenUp uint64
	Waiting                uint64 // Posted - Taken - GivenUp
}

// Status tells how the outbox called id is.
func (o *Outbox) Status(ctx context.Context, from object.Caller, id string) (Status, error) {
	return o.status.Call(ctx, from, id, struct{}{})
}

// box is an outbox in memory, and the policy of its engine: it starts a delivery and
// stores its end. The engine does leases, retries and recovery.
type box struct {
	outbox *Outbox
	st     *object.State
	engine *engine.Engine
	row    row // as stored
}

// row is stored beside the messages. Messages before First have ended.
type row struct {
	First, Next uint64    // the first message that waits, and the number of the next
	Open        bool      // First is being delivered
	Due         time.Time // when First is to be delivered, if it is there and not Open
	Run         jobs.Run  // how far the deliveries of First have come
	GivenUp     uint64
}

const rowKey = "row"

func messageKey(n uint64) string { return fmt.Sprintf("m/%016x", n) }

func load(ctx context.Context, st *object.State, o *Outbox) (*box, error) {
	b := &box{outbox: o, st: st}
	_, err := st.Storage().GetInto(ctx, rowKey, &b.row)
	if err == nil {
		b.engine, err = engine.Attach(ctx, st, o.options, b)
	}
	return b, err
}

// Alarm passes each wake-up to the engine.
func (b *box) Alarm(ctx context.Context, info object.AlarmInfo) error {
	return b.engine.Alarm(ctx, info)
}

func (b *box) post(ctx context.Context, message string) (n uint64, err error) {
	err = b.engine.Turn(ctx, func(ctx context.Context) error {
		r := b.row
		if r.First == r.Next {
			r.Due = b.st.Now()
		}
		n = r.Next
		r.Next++
		if err := b.st.Storage().Put(ctx, messageKey(n), message); err != nil {
			return err
		}
		return b.put(ctx, r)
	})
	return n, err
}

func (b *box) status(context.Context, struct{}) (Status, error) {
	r := b.row
	return Status{Posted: r.Next, Taken: r.First - r.GivenUp, GivenUp: r.GivenUp, Waiting: r.Next - r.First}, nil
}

// put stores r. Memory follows storage, never the reverse.
func (b *box) put(ctx context.Context, r row) error {
	err := b.st.Storage().Put(ctx, rowKey, r)
	if err == nil {
		b.row = r
	}
	return err
}

// Next is when Due has something to do.
func (b *box) Next() time.Time {
	if b.row.Open || b.row.First == b.row.Next {
		return time.Time{}
	}
	return b.row.Due
}

// Due begins the delivery of the first message, in the batch of the turn.
func (b *box) Due(ctx context.Context, now time.Time) error {
	if at := b.Next(); at.IsZero() || at.After(now) {
		return nil
	}
	r := b.row
	var message string
	if _, err := b.st.Storage().GetInto(ctx, messageKey(r.First), &message); err != nil {
		return err
	}
	r.Run.Number = r.First + 1
	_, err := b.engine.Begin(ctx, engine.Spec{Run: r.Run, Work: func(ctx context.Context, x engine.Execution) (engine.Result, error) {
		return engine.Result{}, b.outbox.deliver(ctx, x.Key, message)
	}})
	if err != nil {
		return err
	}
	r.Open = true
	return b.put(ctx, r)
}

// Ended stores the result of a delivery: the message goes, or waits for its next try.
func (b *box) Ended(ctx context.Context, _ engine.Execution, out engine.Outcome) error {
	r := b.row
	r.Open = false
	switch out.Kind {
	case engine.Again, engine.Recover:
		r.Run, r.Due = out.Run, out.Run.RetryAt
		return b.put(ctx, r)
	case engine.GaveUp:
		r.GivenUp++
	}
	if _, err := b.st.Storage().Delete(ctx, messageKey(r.First)); err != nil {
		return err
	}
	r.First++
	r.Run, r.Due = jobs.Run{}, b.st.Now()
	return b.put(ctx, r)
}
