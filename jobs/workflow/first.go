package workflow

import (
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
)

// First waits until one of the branches has ended, with a value or with an error, and returns
// its index. The others have lost: they are cancelled in the commit that records the winner, so
// that from then on they take no signal and begin no step, and First returns when they have
// ended. Branch.Wait returns the result of the winner, and ErrCancelled for the others. In a
// repeat the same branch wins. Undos of a loser count if it has recorded anything.
//
//	paid := workflow.Go(ctx, "paid", func(ctx *workflow.Context) (Payment, error) { return Paid.Wait(ctx, 0) })
//	late := workflow.Go(ctx, "late", func(ctx *workflow.Context) (int, error) { return 0, workflow.Sleep(ctx, week) })
//	i, err := workflow.First(ctx, paid, late)
//
// A signal that a loser had taken before stays taken. With an error the index is -1: that of a
// branch which was not begun, ErrCancelled once the scope has seen a Cancel, a jobs.ErrInvalid
// without branches, or ErrMisuse for a branch that stands there twice, that has lost before, or that
// another scope has begun.
func First(ctx *Context, branches ...Waiter) (int, error) {
	ls := make([]*lone, len(branches))
	for i, b := range branches {
		ls[i] = b.begun()
	}
	if err := ctx.mayCompete(ls); err != nil {
		return -1, err
	}
	if err := ctx.enter("First", ""); err != nil {
		return -1, err
	}
	defer ctx.leave()
	return ctx.first(ls)
}

// mayCompete returns why First cannot be asked for the branches, or nil.
func (c *Context) mayCompete(ls []*lone) error {
	if len(ls) == 0 {
		return fmt.Errorf("%w: workflow: First needs a branch", jobs.ErrInvalid)
	}
	for i, l := range ls {
		switch {
		case l.refused != nil:
			return l.refused
		case l.parent.sc != c.sc:
			return fmt.Errorf("%w: First of %s has branch %q, which another scope has begun", ErrMisuse, history.ScopeName(c.sc.path), l.name)
		case l.lost:
			return fmt.Errorf("%w: First has branch %q, which has lost before", ErrMisuse, l.name)
		case slices.Contains(ls[:i], l):
			return fmt.Errorf("%w: First has branch %q twice", ErrMisuse, l.name)
		}
	}
	return nil
}

// first returns the index of the winner, and records it.
func (c *Context) first(ls []*lone) (int, error) {
	e, err := c.next("", history.First)
	if err != nil {
		return -1, err
	}
	if e == nil {
		c.restIfAsked()
		c.await(ls...) // no rest follows: in a repeat another branch might end before the winner
		c.needsRoom()
		e = c.decide(ls)
	}
	winner := slices.IndexFunc(ls, func(l *lone) bool { return l.place == placesOf(e)[0] })
	if winner < 0 || !slices.Equal(placesOf(e), firstPlaces(ls[winner], ls)) {
		c.s.stuck(fmt.Errorf("%w: the code asks for the First of the branches %v of its scope, and had asked for %v", ErrDiverged, firstPlaces(ls[0], ls)[1:], placesOf(e)[1:]))
	}
	c.parksAtEnd() // a loser may have to clean up
	for i, l := range ls {
		l.won, l.lost = l.won || i == winner, i != winner && !l.joined
		c.await(l)
	}
	return winner, nil
}

// firstPlaces are the places in the entry of a First.
func firstPlaces(winner *lone, ls []*lone) []uint64 {
	places := []uint64{winner.place}
	for _, l := range ls {
		places = append(places, l.place)
	}
	return places
}

// decide records the branch that has ended first, and cancels the others, in one turn. A signal is
// taken in a turn too, so it is taken before, or not by a loser.
func (c *Context) decide(ls []*lone) *history.Entry {
	s := c.s
	winner := s.firstOf(ls)
	value := row.Writer(nil)
	for _, place := range firstPlaces(winner, ls) {
		value = value.Uint(place)
	}
	e := c.entry(history.Entry{Kind: history.First, Value: value})
	var losers []*lone
	s.turn(func(ctx context.Context) error {
		if err := s.storeNow(ctx, &e); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, l := range ls {
			if l != winner && !l.ended {
				l.cancel(s)
				losers = append(losers, l)
			}
		}
		return nil
	})
	c.note(&e)
	for _, l := range losers {
		l.cancelSteps(s)
	}
	return &e
}

// firstOf is the branch that has ended first.
func (s *stretch) firstOf(ls []*lone) (winner *lone) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range ls {
		if l.ended && (winner == nil || l.rank < winner.rank) {
			winner = l
		}
	}
	return winner
}
