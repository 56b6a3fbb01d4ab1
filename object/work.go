package object

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage"
)

// maxBlockDepth bounds the nesting of BlockConcurrencyWhile.
const maxBlockDepth = 64

// BlockConcurrencyWhile runs fn and keeps every other event of the object out
// until it ends. In a turn that is so already, and what it adds is the limit
// (ClassOptions.BlockLimit) and the consequence: an error or a panic of fn, or
// the limit, resets the activation, and the calls that wait get ErrConstructor with
// the error. It nests up to 64 deep, then ErrTooDeep.
// From a work (see Go) it takes a turn for fn, as Do does.
func (s *State) BlockConcurrencyWhile(ctx context.Context, fn func(context.Context) error) error {
	t := turnOf(ctx)
	if t == nil || t.life != s || !t.holds() {
		return s.Do(ctx, func(ctx context.Context) error { return s.BlockConcurrencyWhile(ctx, fn) })
	}
	if t.depth >= maxBlockDepth {
		return named(s.act.id, ErrTooDeep)
	}
	t.depth++
	err := t.block(ctx, s.act.hosted.options.BlockLimit, fn)
	t.depth--
	if err == nil {
		return s.inTurn(t)
	}
	if !t.grasp() {
		return errors.Join(err, s.inTurn(t))
	}
	defer t.letGo()
	t.clear()
	t.reset(err)
	if !notTheCodes(err) {
		_ = s.act.refuseWaiting(err)
	}
	return err
}

// inTurn is nil while t holds the object.
func (s *State) inTurn(t *turn) error {
	switch {
	case s.err() != nil:
		return named(s.act.id, ErrReset)
	case !t.holds():
		return named(s.act.id, ErrNoTurn)
	}
	return nil
}

// Release lends the turn to others while fn does slow work outside. It commits
// first, like Sync; when fn has ended it takes the turn back, before calls that
// wait, and returns fn's error. In fn the object's state cannot be touched, and
// after it memory may have changed. It returns ErrReset if the activation ended
// meanwhile, and an error in a constructor, a block or a transaction, which let
// nobody in. Calls that fn makes with ctx are calls of this turn (ErrDeadlock); fn
// should wait for their end.
func (s *State) Release(ctx context.Context, fn func(context.Context) error) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	if t.depth > 0 {
		return fmt.Errorf("%s: object: release inside a constructor or BlockConcurrencyWhile", s.act.id)
	}
	if err := s.Sync(ctx); err != nil {
		return err
	}
	a := s.act
	if !t.grasp() { // another goroutine of the handler has lent it out, or the handler has returned
		return named(s.act.id, ErrNoTurn)
	}
	key, first := a.recall.lend(t)
	if first != nil {
		defer close(first.back)
	}
	a.current = nil
	what := a.what
	a.holds.Add(1) // an object whose turn is lent out stays in memory
	defer a.holds.Add(-1)
	t.phase.Store(phaseLent)
	a.yield()
	err = guard(&a.id, func() error { return fn(ctx) }, func(error) {})
	if !a.resume(what) {
		t.pass(phaseLent, phaseLost)
		return named(a.id, ErrReset)
	}
	if !t.pass(phaseLent, phaseBusy) { // the handler has returned
		a.yield()
		return s.inTurn(t)
	}
	t.resumed()
	a.recall.resume(key)
	t.letGo()
	a.hosted.host.waits.resumed(t)
	if s.err() != nil {
		return named(a.id, ErrReset)
	}
	return err
}

// resumed takes up what other turns have changed meanwhile. An alarm that they
// set in place of the one that t handles is not t's to remove.
func (t *turn) resumed() {
	a := t.act
	a.current, t.object = t, &a.object
	t.forgetMarked()
	if t.firing != nil && (a.row == nil || a.row.Gen != t.firing.Gen) {
		t.firing = nil
	}
}

// then does f when the turn's writes are committed. A turn that has nothing to
// commit does it at its end all the same.
func (t *turn) then(f func(storage.Ticket)) { t.after = &afterwards{do: f, earlier: t.after} }

// Do runs fn as a turn of the object, from a work. It returns when the turn's
// commit is durable, with fn's error if it has one; a turn that fails leaves no
// trace. With the context of another object's turn it is a call from there: it
// returns when the turn has ended, and that object's reply waits for the disk. It
// returns ErrReset if the activation has ended, and ErrDeadlock if ctx is the
// turn's of the same object.
func (s *State) Do(ctx context.Context, fn func(context.Context) error) error {
	if s.err() != nil {
		return named(s.act.id, ErrReset)
	}
	r := &Request{
		id: s.act.id, life: s, exempt: true, what: &whatWork,
		op: funcOp(func(ctx context.Context, _ *activation) error { return fn(ctx) }),
	}
	return s.act.hosted.host.Invoke(ctx, r)
}
