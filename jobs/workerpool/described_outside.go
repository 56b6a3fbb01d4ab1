package workerpool

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
)

// span is a time.Duration that JSON has as text, for example "1m30s".
type span time.Duration

// MarshalText is the text of the duration.
func (d span) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads the text of a duration, such as 1h30m.
func (d *span) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return engine.Invalidf("workerpool", "duration %q: write it such as 30s or 1h30m", b)
	}
	*d = span(v)
	return nil
}

// claimArg is the argument of the verb claim.
type claimArg struct {
	// N is how many tasks the worker takes at most. Zero means 1.
	N int `json:"n,omitempty"`
	// Lease is the length of each lease. Zero means Config.Lease.
	Lease span `json:"lease,omitempty"`
}

// read reads the argument, and sets its default.
func (a *claimArg) read(read func(arg any) error) error {
	if err := read(a); err != nil {
		return err
	}
	if a.N < 0 || a.N > maxBatch {
		return engine.Invalidf("workerpool", "n is %d: claim 1 to %d tasks", a.N, maxBatch)
	}
	a.N = max(a.N, 1)
	return nil
}

// leaseArg is the argument of the verb heartbeat.
type leaseArg struct {
	Lease Lease `json:"lease"` // as claim or the last heartbeat has given it
}

// ackArg is the argument of the verb ack.
type ackArg[Out any] struct {
	Lease Lease `json:"lease"`
	Out   Out   `json:"out"`
}

// nackArg is the argument of the verb nack.
type nackArg struct {
	Lease Lease `json:"lease"`
	// Error is the text of the failure. Empty means "nack".
	Error string `json:"error,omitempty"`
	// Permanent says that the task is not tried again: jobs.Permanent.
	Permanent bool `json:"permanent,omitempty"`
	// After is when the next attempt may begin, from now on: jobs.RetryAfter.
	After *span `json:"after,omitempty"`
	// Snooze is After at no attempt: jobs.Snooze. It is not given with the other three.
	Snooze *span `json:"snooze,omitempty"`
}

// cause is the error with which the attempt ends.
func (a *nackArg) cause() (err error, bad error) {
	switch {
	case a.Snooze != nil && (a.Error != "" || a.Permanent || a.After != nil), a.Permanent && a.After != nil:
		return nil, engine.Invalidf("workerpool", "give snooze alone, or else one of permanent and after")
	case a.Snooze != nil && *a.Snooze < 0, a.After != nil && *a.After < 0:
		return nil, engine.Invalidf("workerpool", "a duration is negative")
	case a.Snooze != nil:
		return jobs.Snooze(time.Duration(*a.Snooze)), nil
	case a.Error == "":
		err = errors.New("nack")
	default:
		err = errors.New(a.Error)
	}
	switch {
	case a.Permanent:
		err = jobs.Permanent(err)
	case a.After != nil:
		err = jobs.RetryAfter(time.Duration(*a.After), err)
	}
	return err, nil
}

// leaseOf returns why a lease is not one of the task that the verb names.
func leaseOf(l Lease, id string) error {
	task, err := ParseTaskID(id)
	switch {
	case err != nil:
		return err
	case task != l.ID:
		return engine.Invalidf("workerpool", "the lease is of task %s, and the verb of task %s", l.ID, task)
	}
	return validLease(l.For)
}

func (p *pool) heartbeatDescribed(ctx context.Context, from object.Caller, id string, a leaseArg) (Lease, error) {
	if err := leaseOf(a.Lease, id); err != nil {
		return Lease{}, err
	}
	return (&control{p}).Heartbeat(ctx, from, a.Lease)
}

func (p *pool) nackDescribed(ctx context.Context, from object.Caller, id string, a nackArg) (verbs.None, error) {
	if err := leaseOf(a.Lease, id); err != nil {
		return verbs.None{}, err
	}
	cause, err := a.cause()
	if err != nil {
		return verbs.None{}, err
	}
	return verbs.None{}, (&control{p}).Nack(ctx, from, a.Lease, cause)
}
