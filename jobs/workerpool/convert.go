package workerpool

import (
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// Rows into the types of the users.

func (p *partition) encode(what string, v any) ([]byte, error) {
	b, err := p.st.Codec().Encode(v)
	if err != nil {
		return nil, fmt.Errorf("%s: encode %s: %w", p.st.ID(), what, err)
	}
	return b, nil
}

func (p *partition) decode(what string, num uint64, b []byte, v any) error {
	if err := p.st.Codec().Decode(b, v); err != nil {
		return fmt.Errorf("%s: decode %s of task %s: %w", p.st.ID(), what, p.id(num), err)
	}
	return nil
}

// timeOf is the time of nanoseconds as they are stored.
func timeOf(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

func taskOf[In any](p *partition, r *row, x *jobs.Execution) (*Task[In], error) {
	t := &Task[In]{
		ID: p.id(r.num), Key: r.key, Queue: r.queue, Priority: r.priority,
		Attempt: x.Run.Failed() + 1, OutsideKey: x.Key, Enqueued: timeOf(r.enqueued), st: p.st,
	}
	return t, p.decode("input", r.num, r.input, &t.In)
}

func infoOf[Out any](p *partition, r *row, err error) (Info[Out], error) {
	if err != nil {
		return Info[Out]{}, err
	}
	f := Info[Out]{
		ID: p.id(r.num), State: r.state, Key: r.key, Queue: r.queue, Priority: r.priority,
		Enqueued: timeOf(r.enqueued), Ended: timeOf(r.ended), NotBefore: timeOf(r.notBefore),
		Attempt: max(r.attempts, r.begun()), Failures: r.rare.Failures, Cancelling: r.rare.Cancelling,
	}
	if r.state != Done {
		return f, nil
	}
	return f, p.decode("output", r.num, r.output, &f.Result)
}

func letterOf[In any](p *partition, r *row) (DeadLetter[In], error) {
	d := DeadLetter[In]{
		ID: p.id(r.num), Key: r.key, Queue: r.queue, Priority: r.priority,
		Failures: r.rare.Failures, Reason: r.rare.Reason, Died: timeOf(r.ended),
	}
	return d, p.decode("input", r.num, r.input, &d.In)
}

func claimOf[In any](p *partition, c *claimed, lease time.Duration) (Claim[In], error) {
	t, err := taskOf[In](p, c.row, &c.execution)
	return Claim[In]{Lease{ID: t.ID, Token: c.execution.Token, For: lease, Until: c.execution.Lease}, *t}, err
}

// mapAll converts each of some values.
func mapAll[A, B any](as []A, err error, f func(A) (B, error)) ([]B, error) {
	if err != nil || len(as) == 0 {
		return nil, err
	}
	bs := make([]B, len(as))
	for i, a := range as {
		if bs[i], err = f(a); err != nil {
			return nil, err
		}
	}
	return bs, nil
}
