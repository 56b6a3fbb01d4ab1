package workerpool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// Claim is a task in the hands of an outside worker, until Until.
type Claim[In any] struct {
	Lease `json:"lease"`
	Task  Task[In] `json:"task"`
}

// Lease is a worker's right to a claimed task. Its token fences: once the task
// has ended, or was given to somebody else, Heartbeat, Ack and Nack with an old
// Lease return jobs.ErrStaleExecution and change nothing.
type Lease struct {
	ID    TaskID        `json:"id"`
	Token jobs.Token    `json:"token"`
	For   time.Duration `json:"forNs"` // what a Heartbeat extends it by; 0: Config.Lease
	Until time.Time     `json:"until"` // the attempt has failed then, unless there was a Heartbeat
	// Cancelling says that the task was asked to end: Nack it. Heartbeat tells.
	Cancelling bool `json:"cancelling,omitempty"`
}

// claimPart asks for up to Limit tasks.
type claimPart struct {
	Limit int
	For   time.Duration // 0: Config.Lease
}

// claim opens executions for tasks that are ready, and hands them out. A task that
// cannot be handed out has failed with the error of hand.
func (p *partition) claim(ctx context.Context, c claimPart, hand func(*row, jobs.Execution) error) error {
	if p.pending == 0 || !p.mayStart() {
		return nil
	}
	_, err := turn(ctx, p, func(ctx context.Context) (struct{}, error) {
		err := p.promote(ctx, p.st.Now())
		for n := 0; n < c.Limit && err == nil && p.mayStart(); {
			full, bad := p.nearlyFull(ctx)
			if full || bad != nil {
				return struct{}{}, bad
			}
			r, x, bad := p.start(ctx, nil, c.For)
			if r == nil || bad != nil {
				return struct{}{}, bad
			}
			if refused := hand(r, x); refused != nil {
				err = p.engine.Finish(ctx, x.Token, jobs.Result{}, refused)
				continue
			}
			n++
		}
		return struct{}{}, err
	})
	return err
}

// held finds the execution of a lease.
func (p *partition) held(l Lease) (jobs.Execution, error) {
	if a, runs := p.opened[l.ID.Number]; runs && a.token == l.Token {
		if x, open := p.engine.Lookup(a.token); open && x.Outside {
			return x, nil
		}
	}
	return jobs.Execution{}, fmt.Errorf("task %s: %w", l.ID, p.engine.Stale(l.Token))
}

func (p *partition) heartbeat(ctx context.Context, l Lease) (Lease, error) {
	if _, err := p.held(l); err != nil {
		return l, err
	}
	return turn(ctx, p, func(ctx context.Context) (Lease, error) {
		r, err := p.rowOf(ctx, l.ID.Number)
		if err != nil {
			return l, err
		}
		l.Cancelling = r.rare.Cancelling
		l.Until, err = p.engine.Renew(ctx, l.Token, l.For)
		return l, err
	})
}

// ack ends a claimed task as done.
func (p *partition) ack(ctx context.Context, l Lease, output []byte) (struct{}, error) {
	x, err := p.held(l)
	if err != nil {
		return struct{}{}, err
	}
	return turn(ctx, p, func(ctx context.Context) (struct{}, error) {
		r, err := p.rowOf(ctx, l.ID.Number)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, p.engine.Finish(ctx, l.Token, p.result(r, x.Run.Failed()+1, output), nil)
	})
}

// refusal is a Nack.
type refusal struct {
	Lease     Lease
	Cause     string
	Permanent bool           `json:",omitempty"`
	After     *time.Duration `json:",omitempty"` // of jobs.RetryAfter
	Snooze    *time.Duration `json:",omitempty"` // of jobs.Snooze
}

// refused is the Nack that tells the cause given.
func refused(l Lease, cause error) refusal {
	if cause == nil {
		return refusal{Lease: l, Cause: "nack"}
	}
	n := refusal{Lease: l, Cause: cause.Error(), Permanent: object.IsPermanent(cause)}
	if d, ok := object.RetryDelay(cause); ok {
		n.After = &d
	}
	if d, ok := jobs.SnoozeDelay(cause); ok {
		n.Snooze = &d
	}
	return n
}

// err is the error that the attempt ends with.
func (n *refusal) err() error {
	err := errors.New(n.Cause)
	switch {
	case n.Snooze != nil:
		return jobs.Snooze(*n.Snooze)
	case n.Permanent:
		return jobs.Permanent(err)
	case n.After != nil:
		return jobs.RetryAfter(*n.After, err)
	}
	return err
}

// nack ends an attempt at a claimed task without its success.
func (p *partition) nack(ctx context.Context, n refusal) (struct{}, error) {
	if _, err := p.held(n.Lease); err != nil {
		return struct{}{}, err
	}
	return turn(ctx, p, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.engine.Finish(ctx, n.Lease.Token, jobs.Result{}, n.err())
	})
}
