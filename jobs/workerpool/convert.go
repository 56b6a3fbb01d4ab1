package workerpool

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
)

// Rows into the types of the users. An input comes with the version that it was
// stored under.

func (p *partition) encode(what string, v any) ([]byte, error) {
	b, err := p.st.Codec().Encode(v)
	if err != nil {
		return nil, fmt.Errorf("%s: encode %s: %w", p.st.ID(), what, err)
	}
	return b, nil
}

// input reads the input of a task.
func (p *Pool[In, Out]) input(part *partition, r *row, version string, in *In) error {
	if bad := p.reader.Read(part.st.Codec(), version, r.input, in); bad != nil {
		return &undecodable{bad.Of(part.st.ID(), "input of task "+part.id(r.num).String())}
	}
	return nil
}

// undecodable is the error of an input that cannot be read. To try a task again does
// not change it.
type undecodable struct{ err error }

func (u *undecodable) Error() string { return u.err.Error() }
func (u *undecodable) Unwrap() error { return u.err }

// retryable is the RetryIf of a pool: that of its Config, but for inputs that cannot
// be read.
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

func (p *Pool[In, Out]) taskOf(part *partition, r *row, x *jobs.Execution, version string) (*Task[In], error) {
	t := &Task[In]{
		ID: part.id(r.num), Key: r.key, Queue: r.queue, Priority: r.priority,
		Attempt: x.Run.Failed() + 1, OutsideKey: x.Key, Enqueued: timeOf(r.enqueued), pool: p, st: part.st,
	}
	return t, p.input(part, r, version, &t.In)
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
	if err := p.st.Codec().Decode(r.output, &f.Result); err != nil {
		var none Out
		f.Result, f.Raw = none, r.output
		f.DecodeError = fmt.Sprintf("%s: decode output of task %s: %v", p.st.ID(), p.id(r.num), err)
	}
	return f, nil
}

func (p *Pool[In, Out]) letterOf(part *partition, r *row, version string) DeadLetter[In] {
	d := DeadLetter[In]{
		ID: part.id(r.num), Key: r.key, Queue: r.queue, Priority: r.priority,
		Failures: r.rare.Failures, Reason: r.rare.Reason, Stack: r.rare.Stack, Died: timeOf(r.ended),
	}
	if err := p.input(part, r, version, &d.In); err != nil {
		d.Raw, d.DecodeError = r.input, err.Error()
	}
	return d
}

// pageOf is the dead letters of a partition that g asks for, as many as fit in a page.
func (p *Pool[In, Out]) pageOf(part *partition, ctx context.Context, g page) (out lettersPage[In], err error) {
	rows, err := part.letters(ctx, g, part.mergeBytes())
	for _, r := range rows {
		out.Bytes += r.size()
		out.Letters = append(out.Letters, p.letterOf(part, r, part.inputVersion(r.num)))
	}
	return out, err
}

// claimAll gives up to g.Limit tasks to an outside worker.
func (p *Pool[In, Out]) claimAll(part *partition, ctx context.Context, g claimPart) (all []Claim[In], err error) {
	err = part.claim(ctx, g, func(r *row, x jobs.Execution) error {
		t, err := p.taskOf(part, r, &x, part.inputVersion(r.num))
		if err == nil {
			all = append(all, Claim[In]{Lease{ID: t.ID, Token: x.Token, For: g.For, Until: x.Lease}, *t})
		}
		return err
	})
	return all, err
}
