package pglog

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/seam"
)

// link is the connection for one purpose, opened when it is needed. A task that has taken it from free owns it until it puts it back.
type link struct {
	l       *Log
	purpose string
	free    chan struct{}
	c       *conn // nil: not connected
}

func (l *Log) newLink(purpose string) *link {
	k := &link{l: l, purpose: purpose, free: make(chan struct{}, 1)}
	k.free <- struct{}{}
	return k
}

// do is run for a statement of the log: its error says the outcome.
func (k *link) do(ctx context.Context, f func(context.Context, *conn) error) error {
	err := k.run(ctx, f)
	if err != nil {
		err = outcome(err)
	}
	return err
}

// once is do for a statement that must not be run twice in silence: an append that was stored, with its answer lost, would be
// told as one that stored nothing, if another term has begun meanwhile.
func (k *link) once(ctx context.Context, f func(context.Context, *conn) error) error {
	err := k.use(ctx, 1, 1, f)
	if err != nil {
		err = outcome(err)
	}
	return err
}

// run waits for the connection and runs f with it within Options.Timeout. f is run again, once, if the connection was an older one and broke
// by itself, because it may have been dead before; so a repeat of f must do no harm.
func (k *link) run(ctx context.Context, f func(context.Context, *conn) error) error {
	return k.use(ctx, 2, 1, f)
}

// use is run with at most so many tries, for a function with so many statements, which have Options.Timeout each.
func (k *link) use(ctx context.Context, tries, statements int, f func(context.Context, *conn) error) error {
	if err := k.l.o.Seams.Executor.Wait(ctx, k.free); err != nil {
		return fmt.Errorf("wait for the connection: %w", err)
	}
	defer func() { k.free <- struct{}{} }()
	if k.l.running.Err() != nil {
		return errClosed
	}
	ctx, cancel := k.l.withinAll(ctx, statements)
	defer cancel()
	if k.c != nil && k.c.at != int(k.l.first.Load()) {
		k.l.hangUp(k.c) // because the log has moved to another host, and a read from an old one never ends
		k.c = nil
	}
	if k.c != nil && tries > 1 {
		broke, err := k.try(ctx, f)
		if !broke {
			return err
		}
	}
	_, err := k.try(ctx, f)
	return err
}

// try runs f once and leaves the connection only if it is good. broke tells that an error ended it, and no time-out.
func (k *link) try(ctx context.Context, f func(context.Context, *conn) error) (broke bool, err error) {
	if k.c == nil {
		if k.c, err = k.l.connect(ctx, k.purpose); err != nil {
			return false, err
		}
	}
	c := k.c
	c.warning = ""
	err = f(ctx, c)
	if err == nil && c.warning != "" {
		k.l.warn("PostgreSQL warns during a statement, so its outcome is unknown", c.warning)
		err = fmt.Errorf("PostgreSQL warns: %s", c.warning)
	}
	if err == nil || refused(outcome(err)) {
		return false, err
	}
	broke = c.IsClosed() && ctx.Err() == nil
	if ctx.Err() != nil {
		k.l.late(ctx, c.at)
		err = fmt.Errorf("%w: %w", seam.Cause(ctx), err)
	}
	k.c = nil
	k.l.hangUp(c)
	return broke, err
}

// close waits until nothing is under way and ends the connection. The log is closed, so none is opened again.
func (k *link) close() {
	_ = k.l.o.Seams.Executor.Wait(context.Background(), k.free)
	defer func() { k.free <- struct{}{} }()
	if k.c != nil {
		ctx, cancel := k.l.within(context.Background())
		defer cancel()
		_ = k.c.Close(ctx) // nothing is lost with it
		k.c = nil
	}
}
