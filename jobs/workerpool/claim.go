package workerpool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// Claim is a task in the hands of an outside worker, until Until.
type Claim[In any] struct {
	Lease
	Task Task[In]
}

// Lease is a worker's right to a claimed task. Its token fences: once the task
// has ended, or was given to somebody else, Heartbeat, Ack and Nack with an old
// Lease return jobs.ErrStaleExecution and change nothing.
type Lease struct {
	ID    TaskID
	Token jobs.Token
	For   time.Duration // what a Heartbeat extends it by; 0: Config.Lease
	Until time.Time     // the attempt has failed then, unless there was a Heartbeat
	// Cancelling says that the task was asked to end: Nack it. Heartbeat tells.
	Cancelling bool
}

// claimPart asks for up to Limit tasks.
type claimPart struct {
	Limit int
	For   time.Duration // 0: Config.Lease
}

// claim opens executions for tasks that are ready.
func (p *partition) claim(ctx context.Context, c claimPart) ([]*active, error) {
	if p.pending == 0 || !p.mayStart() {
		return nil, nil
	}
	return turn(ctx, p, func(ctx context.Context) ([]*active, error) {
		if err := p.promote(ctx, p.st.Now()); err != nil {
			return nil, err
		}
		var got []*active
		for len(got) < c.Limit && p.mayStart() {
			a, err := p.start(ctx, nil, c.For)
			if err != nil {
				return nil, err
			}
			if a == nil {
				break
			}
			got = append(got, a)
		}
		return got, nil
	})
}

// held finds the claimed task of a lease.
func (p *partition) held(l Lease) (*active, error) {
	a := p.opened[l.ID.Number]
	if a == nil || a.execution.Token != l.Token || !a.execution.Outside {
		return nil, fmt.Errorf("%s: %w: task %s", p.st.ID(), jobs.ErrStaleExecution, l.ID)
	}
	return a, nil
}

func (p *partition) heartbeat(ctx context.Context, l Lease) (Lease, error) {
	a, err := p.held(l)
	if err != nil {
		return l, err
	}
	return turn(ctx, p, func(ctx context.Context) (Lease, error) {
		r, err := p.rowOf(ctx, l.ID.Number, a)
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
	a, err := p.held(l)
	if err != nil {
		return struct{}{}, err
	}
	return turn(ctx, p, func(ctx context.Context) (struct{}, error) {
		r, err := p.rowOf(ctx, l.ID.Number, a)
		if err != nil {
			return struct{}{}, err
		}
		return struct{}{}, p.engine.Finish(ctx, l.Token, p.result(r, a.execution.Run.Attempt, output), nil)
	})
}

// refusal is a Nack.
type refusal struct {
	Lease Lease
	Cause string
}

// nack ends an attempt at a claimed task as failed.
func (p *partition) nack(ctx context.Context, n refusal) (struct{}, error) {
	if _, err := p.held(n.Lease); err != nil {
		return struct{}{}, err
	}
	return turn(ctx, p, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.engine.Finish(ctx, n.Lease.Token, jobs.Result{}, errors.New(n.Cause))
	})
}
