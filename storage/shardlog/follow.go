package shardlog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

const (
	// followEvery is how far apart the begins of two steps of a waiting process are at least, because each step asks the log.
	followEvery = 100 * time.Millisecond
	// followFor bounds the reading of one step, because Options.Turn is called between two steps.
	followFor = 5 * time.Second
)

// await follows the log until Options.Turn gives this process its turn and a claim succeeds. It returns the state that the claim found.
func (e *Engine) await() (State, error) {
	e.patience, e.between = math.MaxInt64, func() error { _, _, err := e.o.Turn(); return err }
	defer func() { e.patience, e.between = e.o.Patience, func() error { return nil } }()
	steady := e.o.Seams.Steady
	for {
		next := steady().Add(followEvery)
		if err := e.follow(); err != nil {
			return State{}, err
		}
		claim, seen, err := e.o.Turn()
		if err != nil {
			return State{}, err
		}
		if claim {
			if found, owned, err := e.attempt(seen); owned || err != nil {
				return found, err
			}
		}
		_ = e.o.Seams.Sleep(e.calls, next.Sub(steady()))
		if err := seam.Cause(e.calls); err != nil {
			return State{}, err
		}
	}
}

// attempt claims the term after seen, if the view is fit for it and Options.Turn still says so. Owned is false if another
// process has the log.
func (e *Engine) attempt(seen uint64) (found State, owned bool, err error) {
	head, err := e.ready()
	if err != nil {
		return State{}, false, err
	}
	switch claim, now, err := e.o.Turn(); {
	case err != nil:
		return State{}, false, err
	case !claim || now != seen:
		return State{}, false, nil
	}
	found, err = e.ownAfter(seen, head)
	if errors.Is(err, ErrFenced) && !errors.As(err, new(final)) {
		return State{}, false, nil
	}
	return found, err == nil, err
}

// follow makes one step: it reads the records that the log has got since the last one. It asks for no head, because that takes the
// row of the shard from its owner for a moment, unless the log does not go on from the view: then the head tells why. A log that does not
// answer is asked again in the next step.
func (e *Engine) follow() error {
	e.o.Seams.At("follow", "")
	at := e.last
	goesOn, err := e.readBehind(max(at, 1))
	if errors.Is(err, ErrTruncated) && at > 0 {
		// The record at the position is gone, and those after it may be there.
		goesOn, err = e.readBehind(at + 1)
		goesOn = goesOn || e.tables.at <= at
	}
	switch {
	case errors.As(err, new(final)) || settles(err) && !errors.Is(err, ErrHole):
		return err
	case e.last > at:
		e.unanswered.over()
		return writePosition(e.view, e.last, e.chain)
	case err != nil && !settles(err):
		e.unanswered.tell("read", e.silentFor(), err)
		return nil
	case err == nil && (goesOn || at == 0 && e.tables.at == 0):
		e.unanswered.over()
		return nil
	}
	head, err := e.head()
	if err != nil {
		return err
	}
	return e.catchUp(head)
}

// readBehind reads the records from a position on and applies each that has a later one. goesOn says that the log has a record there, and
// all those of which a table of the view may have a part.
func (e *Engine) readBehind(from Position) (goesOn bool, err error) {
	t := trail{e: e, until: e.o.Seams.Steady().Add(followFor)}
	err = e.once(func(ctx context.Context) error {
		if err := e.o.Log.Read(ctx, e.o.Shard, from, t.next); !errors.Is(err, errEnough) {
			return err
		}
		return nil
	})
	return t.met && max(e.last, t.held.At) >= e.tables.at, err
}

// trail reads behind the end of a log. A record of the log is known to be acknowledged when a later one is there, because
// an owner appends one after the other. The last may be lost in a fail-over, and another record may take its place.
type trail struct {
	e     *Engine
	until time.Time // steady; the end of the step
	met   bool      // a record has come
	held  Record    // the last record that has come; At is 0 if the view has it, or if none has
}

// next takes the next record.
func (t *trail) next(r Record) error {
	e := t.e
	if !t.met && r.At == e.last {
		if r.Chain != e.chain {
			return fmt.Errorf("%w: record %d is another than the view has", ErrHole, r.At)
		}
		t.met = true
		return nil
	}
	before := Record{At: e.last, Term: e.term, Chain: e.chain}
	if t.held.At > 0 {
		before = t.held
	}
	if err := r.Follows(before, math.MaxUint64); err != nil {
		return err
	}
	if t.held.At > 0 {
		if err := e.replay(t.held, math.MaxUint64); err != nil {
			return err
		}
	}
	t.met = true
	r.Payload = append(t.held.Payload[:0], r.Payload...)
	t.held = r
	if !e.o.Seams.Steady().Before(t.until) {
		return errEnough
	}
	return nil
}
