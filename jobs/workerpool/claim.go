package workerpool

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/object"
)

// Claim is a task that an outside worker holds until Lease.Until.
type Claim[In any] struct {
	Lease `json:"lease"`
	Task  Task[In] `json:"task"`
}

// Lease is the right of an outside worker to end a claimed task. Its token is a
// fencing token: once the task has ended, or another worker has claimed it,
// Heartbeat, Ack and Nack with the old Lease return jobs.ErrStaleExecution and
// change nothing.
//
// A Lease is a plain value. A worker may store it, send it to another process,
// or encode it as JSON.
type Lease struct {
	ID    TaskID        `json:"id"`
	Token engine.Token  `json:"token"`
	For   time.Duration `json:"forNs"` // the length that a Heartbeat extends it by; 0 means Config.Lease
	Until time.Time     `json:"until"` // without a Heartbeat before this time the attempt fails
	// Cancelling says that Cancel was called for the task, so the worker should
	// stop and Nack it. Heartbeat sets it.
	Cancelling bool `json:"cancelling,omitempty"`
}

// Claim gives up to n ready tasks to an outside worker. Each must be ended with
// Ack or Nack within lease, or be extended with Heartbeat; otherwise the
// attempt fails and the task is retried. A lease of zero means Config.Lease; a
// negative one, and one of more than 24 hours, is a jobs.ErrInvalid.
//
// Claim does not wait: it returns no tasks if none may begin now. It asks the
// partitions one after another, from a random one on. If one fails, it returns
// the tasks claimed so far and the error.
func (p *Pool[In, Out]) Claim(ctx context.Context, from object.Caller, n int, lease time.Duration) ([]Claim[In], error) {
	var all []Claim[In]
	err := p.pool.claimFrom(ctx, from, n, lease, func(name string, part claimPart) (int, error) {
		some, err := p.claim(ctx, from, name, part)
		all = append(all, some...)
		return len(some), err
	})
	return all, err
}

// claimFrom calls claim for one partition after another, from a random one on, until that has claimed n tasks.
func (p *pool) claimFrom(ctx context.Context, from object.Caller, n int, lease time.Duration, claim func(name string, part claimPart) (int, error)) error {
	if err := validLease(lease); err != nil {
		return err
	}
	parts, err := p.partitions(ctx, from)
	if err != nil {
		return err
	}
	first := int(random(from) % uint64(parts))
	for i := 0; i < parts && n > 0; i++ {
		claimed, err := claim(strconv.Itoa((first+i)%parts), claimPart{n, lease})
		if err != nil {
			return err
		}
		n -= claimed
	}
	return nil
}

// maxLease is the longest lease of an outside worker, because a worker that is gone holds its tasks until
// their leases end.
const maxLease = 24 * time.Hour

// validLease returns a jobs.ErrInvalid for a length that no lease has.
func validLease(d time.Duration) error {
	switch {
	case d < 0:
		return engine.Invalidf("workerpool", "lease %v is negative", d)
	case d > maxLease:
		return engine.Invalidf("workerpool", "lease %v is longer than %v", d, maxLease)
	}
	return nil
}

// Heartbeat extends a lease by its length, counted from now, and returns the
// new Lease. Its Cancelling tells whether Cancel was called for the task.
// Errors: jobs.ErrStaleExecution if the task has ended or the lease has expired;
// jobs.ErrInvalid for a length that Claim does not take.
//
//go:noinline
func (p *control) Heartbeat(ctx context.Context, from object.Caller, l Lease) (Lease, error) {
	if err := validLease(l.For); err != nil {
		return l, err
	}
	return p.pool.calls.heartbeat(ctx, from, l.ID.object(), l)
}

// Ack ends a claimed task as done and stores its output. Error:
// jobs.ErrStaleExecution if the lease is not valid any more, for example in a
// second Ack.
func (p *Pool[In, Out]) Ack(ctx context.Context, from object.Caller, l Lease, out Out) error {
	_, err := p.ack(ctx, from, l.ID.object(), receipt[Out]{l, out})
	return err
}

// Nack ends the attempt at a claimed task as failed. The task is retried or
// becomes a dead letter as Config.Retry says; jobs.Permanent, jobs.RetryAfter
// and jobs.Snooze in cause work as in an error of Config.Work. Errors:
// jobs.ErrStaleExecution; jobs.ErrInvalid for a delay of more than 100 years.
//
//go:noinline
func (p *control) Nack(ctx context.Context, from object.Caller, l Lease, cause error) error {
	n := refused(l, cause)
	for _, d := range []*time.Duration{n.After, n.Snooze} {
		if d != nil && *d > maxNackDelay {
			return engine.Invalidf("workerpool", "a delay of %v is longer than 100 years", *d)
		}
	}
	_, err := p.pool.calls.nack(ctx, from, l.ID.object(), n)
	return err
}

// maxNackDelay is a hundred years with their leap days, as for object.After.
const maxNackDelay = 36525 * 24 * time.Hour

// claimPart is the argument of a claim from one partition.
type claimPart struct {
	Limit int           // the most tasks to hand out
	For   time.Duration // the length of each lease; 0 means Config.Lease
}

// claim opens executions for up to c.Limit ready tasks and passes each to hand.
// If hand returns an error, for example because the input cannot be decoded,
// that attempt fails with the error and the next task is tried.
func (p *partition) claim(ctx context.Context, c claimPart, hand func(*row, engine.Execution) error) error {
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
				err = p.engine.Finish(ctx, x.Token, engine.Result{}, refused)
				continue
			}
			n++
		}
		return struct{}{}, err
	})
	return err
}

// held returns the execution of a lease, or jobs.ErrStaleExecution if the lease
// is not valid any more.
func (p *partition) held(l Lease) (engine.Execution, error) {
	if a, runs := p.executing[l.ID.Number]; runs && a.token == l.Token {
		if x, open := p.engine.Lookup(a.token); open && x.Outside {
			return x, nil
		}
	}
	return engine.Execution{}, fmt.Errorf("task %s: %w", l.ID, p.engine.Stale(l.Token))
}

// heartbeat extends a lease and reports whether the task was asked to end.
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

// ack ends a claimed task as done and stores its output.
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

// refusal is a Nack as it is sent to the partition. An error value cannot be
// encoded, so its text and its instructions travel as fields.
type refusal struct {
	Lease     Lease
	Cause     string
	Permanent bool           `json:",omitempty"`
	After     *time.Duration `json:",omitempty"` // of jobs.RetryAfter
	Snooze    *time.Duration `json:",omitempty"` // of jobs.Snooze
}

// refused takes the text and the instructions out of a cause.
func refused(l Lease, cause error) refusal {
	if cause == nil {
		return refusal{Lease: l, Cause: "nack"}
	}
	n := refusal{Lease: l, Cause: cause.Error(), Permanent: object.IsPermanent(cause)}
	if d, ok := object.RetryDelay(cause); ok {
		n.After = &d
	}
	if d, ok := engine.SnoozeDelay(cause); ok {
		n.Snooze = &d
	}
	return n
}

// err rebuilds the error that the attempt ends with.
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

// nack ends an attempt at a claimed task as failed.
func (p *partition) nack(ctx context.Context, n refusal) (struct{}, error) {
	if _, err := p.held(n.Lease); err != nil {
		return struct{}{}, err
	}
	return turn(ctx, p, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.engine.Finish(ctx, n.Lease.Token, engine.Result{}, n.err())
	})
}

// claimAll claims up to g.Limit tasks of one partition for an outside worker.
func (p *Pool[In, Out]) claimAll(part *partition, ctx context.Context, g claimPart) (all []Claim[In], err error) {
	err = part.claim(ctx, g, func(r *row, x engine.Execution) error {
		t, err := p.taskOf(part, r, &x, part.inputVersion(r.num))
		if err == nil {
			all = append(all, Claim[In]{Lease{ID: t.ID, Token: x.Token, For: g.For, Until: x.Lease}, *t})
		}
		return err
	})
	return all, err
}
