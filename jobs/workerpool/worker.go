package workerpool

import (
	"context"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// Claim gives up to n tasks that are ready to an outside worker, for lease, or
// for Config.Lease if it is zero: from each partition what it has and may run. It
// returns none at once if there are none. A worker that holds a task beyond its
// lease has lost it, and the attempt has failed.
func (p *Pool[In, Out]) Claim(ctx context.Context, from object.Caller, n int, lease time.Duration) ([]Claim[In], error) {
	if lease < 0 {
		return nil, jobs.Invalidf("workerpool", "lease %v is negative", lease)
	}
	parts, err := p.partitions(ctx, from)
	if err != nil {
		return nil, err
	}
	var all []Claim[In]
	first := int(random(from) % uint64(parts))
	for i := 0; i < parts && len(all) < n; i++ {
		name := strconv.Itoa((first + i) % parts)
		some, err := p.claim.Call(ctx, from, name, claimPart{n - len(all), lease})
		all = append(all, some...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// Heartbeat extends a lease by its length, and tells if the task was asked to
// end. Error: jobs.ErrStaleExecution.
func (p *Pool[In, Out]) Heartbeat(ctx context.Context, from object.Caller, l Lease) (Lease, error) {
	return p.heartbeat.Call(ctx, from, l.ID.object(), l)
}

// Ack ends a claimed task as done, with its output. Error: jobs.ErrStaleExecution,
// also for a second Ack.
func (p *Pool[In, Out]) Ack(ctx context.Context, from object.Caller, l Lease, out Out) error {
	_, err := p.ack.Call(ctx, from, l.ID.object(), receipt[Out]{l, out})
	return err
}

// Nack ends an attempt at a claimed task as failed, for the cause given: the task
// is tried again, or dead, as Config.Retry says. jobs.Permanent, jobs.RetryAfter and
// jobs.Snooze mean the same in a cause as in the error of Config.Work. Error:
// jobs.ErrStaleExecution.
func (p *Pool[In, Out]) Nack(ctx context.Context, from object.Caller, l Lease, cause error) error {
	_, err := p.nack.Call(ctx, from, l.ID.object(), refused(l, cause))
	return err
}
