package workerpool

import (
	"context"
	"errors"
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
		return &undecodable{fmt.Errorf("%s: decode %s of task %s: %w", p.st.ID(), what, p.id(num), err)}
	}
	return nil
}

// undecodable is the error of an input or an output that the codec cannot decode
// into its type. To try a task again does not change it.
type undecodable struct{ err error }

func (u *undecodable) Error() string { return u.err.Error() }
func (u *undecodable) Unwrap() error { return u.err }

// retryable is the RetryIf of a pool: that of its Config, but for inputs that cannot
// be decoded.
func retryable(asked func(error) bool) func(error) bool {
	return func(err error) bool {
		bad := (*undecodable)(nil)
		return !errors.As(err, &bad) && (asked == nil || asked(err))
	}
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
	t.pool, _ = p.set.pool.(Submitter[In])
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
	if err := p.decode("output", r.num, r.output, &f.Result); err != nil {
		var none Out
		f.Result, f.Raw, f.DecodeError = none, r.output, err.Error()
	}
	return f, nil
}

func letterOf[In any](p *partition, r *row) DeadLetter[In] {
	d := DeadLetter[In]{
		ID: p.id(r.num), Key: r.key, Queue: r.queue, Priority: r.priority,
		Failures: r.rare.Failures, Reason: r.rare.Reason, Stack: r.rare.Stack, Died: timeOf(r.ended),
	}
	if err := p.decode("input", r.num, r.input, &d.In); err != nil {
		var none In
		d.In, d.Raw, d.DecodeError = none, r.input, err.Error()
	}
	return d
}

// pageOf is the dead letters of a partition that g asks for, as many as fit in a page.
func pageOf[In any](p *partition, ctx context.Context, g page) (out lettersPage[In], err error) {
	rows, err := p.letters(ctx, g, p.mergeBytes())
	for _, r := range rows {
		out.Bytes += r.size()
		out.Letters = append(out.Letters, letterOf[In](p, r))
	}
	return out, err
}

// claimAll gives up to g.Limit tasks to an outside worker.
func claimAll[In any](p *partition, ctx context.Context, g claimPart) (all []Claim[In], err error) {
	err = p.claim(ctx, g, func(r *row, x jobs.Execution) error {
		t, err := taskOf[In](p, r, &x)
		if err == nil {
			all = append(all, Claim[In]{Lease{ID: t.ID, Token: x.Token, For: g.For, Until: x.Lease}, *t})
		}
		return err
	})
	return all, err
}
