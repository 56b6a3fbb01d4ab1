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

// claimed is a task with the execution that a claim has opened.
type claimed struct {
	row       *row
	execution jobs.Execution
}

// claim opens executions for tasks that are ready.
func (p *partition) claim(ctx context.Context, c claimPart) ([]claimed, error) {
	if p.pending == 0 || !p.mayStart() {
		return nil, nil
	}
	return turn(ctx, p, func(ctx context.Context) ([]claimed, error) {
		if err := p.promote(ctx, p.st.Now()); err != nil {
			return nil, err
		}
		var got []claimed
		for len(got) < c.Limit && p.mayStart() {
			r, x, err := p.start(ctx, nil, c.For)
			if err != nil {
				return nil, err
			}
			if r == nil {
				break
			}
			got = append(got, claimed{r, x})
		}
		return got, nil
	})
}

// held finds the execution of a lease.
func (p *partition) held(l Lease) (jobs.Execution, error) {
	if a, runs := p.opened[l.ID.Number]; runs && a.token == l.Token {
		if x, open := p.engine.Lookup(a.token); open && x.Outside {
			return x, nil
		}
	}
	return jobs.Execution{}, fmt.Errorf("%s: %w: task %s", p.st.ID(), jobs.ErrStaleExecution, l.ID)
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
