package workflow

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
)

// Branch is a function that Go has begun, and that returns a T.
type Branch[T any] struct {
	l     *lone
	value T // set before the branch has ended
}

// Waiter is a *Branch of any type.
type Waiter interface{ begun() *lone }

func (b *Branch[T]) begun() *lone { return b.l }

// Go begins fn as a branch beside the function: a goroutine with a scope of its own, as those
// of Each. fn may use all operations on its own Context, but not on that of the function, and
// must not share memory that it changes. Branch.Wait returns its result.
//
// A function, or a branch, that returns while branches that it has begun run on cancels them and
// waits for them, so that nothing of them happens after its end. So wait for each branch
// with a result that matters. Under a Context of WithoutCancel the branch is not
// cancelled, and its end is waited for.
//
// Go returns no error; Wait and First return that of a branch which was not begun: ErrCancelled,
// ErrMisuse, also for the 1,001st branch of a scope that was not waited for, or a jobs.ErrInvalid
// for a name that Each would refuse.
func Go[T any](ctx *Context, name string, fn func(ctx *Context) (T, error)) *Branch[T] {
	b := &Branch[T]{l: &lone{name: name}}
	b.l.refused = ctx.beginBranch(b.l, func(c *Context) (err error) {
		b.value, err = fn(c)
		return err
	})
	return b
}

// Wait waits for the end of the branch and returns its result. Its error has the text of that of
// the branch, and is ErrCancelled or ErrTimeout if that one is. A branch that has lost a First
// returns ErrCancelled. Only the scope that has begun a branch may wait for it; any
// other gets ErrMisuse. A second Wait returns the same.
func (b *Branch[T]) Wait(ctx *Context) (T, error) {
	var none T
	if b.l.refused != nil {
		return none, b.l.refused
	}
	if err := ctx.enter("Wait for branch", b.l.name); err != nil {
		return none, err
	}
	err := ctx.join(b.l)
	ctx.leave()
	if err != nil {
		return none, err
	}
	return b.value, nil
}

// lone is a branch that Go has begun: the only one of its branches.
type lone struct {
	branches
	name    string
	place   uint64 // among those that its scope has begun, from 0
	refused error  // why it was not begun

	// The task of the parent uses these.
	joined bool  // Wait has returned
	result error // of Wait
	lost   bool  // a First
	won    bool  // a First, so that its end is known

	// stretch.mu guards the fields below.
	ended    bool
	returned bool  // its function has, with errs[0]; false if its task ended behind its entries
	left     error // entries that its function did not ask for
	rank     int   // how many branches of the stretch have ended before it
	watching []*waiter
}

// fate is how the history tells that a branch ended.
type fate uint8

const (
	fateOpen   fate = iota // nothing tells of an end
	fateEnded              // it has returned
	fateLost               // it has lost a First and ended, because its scope has gone on
	fateLosing             // it has lost a First, and may still have to end
)

// fatesOf returns the fates of the branches of a scope with these entries, by their places.
func fatesOf(entries []history.Entry) map[uint64]fate {
	fates := make(map[uint64]fate)
	for i := range entries {
		switch places := placesOf(&entries[i]); entries[i].Kind {
		case history.Join:
			fates[places[0]] = fateEnded
		case history.First:
			for _, place := range places[1:] {
				if fates[place] != fateOpen {
					continue
				}
				if fates[place] = fateLost; i == len(entries)-1 {
					fates[place] = fateLosing
				}
			}
			fates[places[0]] = fateEnded
		}
	}
	return fates
}

// placesOf are the places of branches in the value of an entry: of First the winner and then all,
// in the order of the call. Another kind has none.
func placesOf(e *history.Entry) (places []uint64) {
	if e.Kind != history.Join && e.Kind != history.First {
		return nil
	}
	r := row.Read(e.Value)
	places = append(places, r.Uint())
	for r.Len() > 0 {
		places = append(places, r.Uint())
	}
	return places
}

// beginBranch begins a branch, or returns why it does not.
func (c *Context) beginBranch(l *lone, fn func(c *Context) error) error {
	if err := c.validBranch("Go", l.name); err != nil {
		return err
	}
	if err := c.enter("Go", l.name); err != nil {
		return err
	}
	defer c.leave()
	if c.sc.unjoined() >= maxBranches {
		return fmt.Errorf("%w: %s has begun %d branches and waited for none of them: wait for some before Go %q", ErrMisuse, history.ScopeName(c.sc.path), maxBranches, l.name)
	}
	begun, err := c.next(l.name, history.Go)
	if err != nil {
		return err
	}
	if begun == nil {
		if err := c.ready(); err != nil {
			return err
		}
		c.made(history.Entry{Kind: history.Go, Name: l.name})
	}
	l.place = uint64(len(c.sc.lones))
	c.sc.lones = append(c.sc.lones, l)
	l.branches = branches{
		parent: c, path: c.branchPath(l.name), count: 1, errs: make([]error, 1),
		fn: func(c *Context, _ int) error { return fn(c) },
	}
	if c.sc.fates == nil {
		c.sc.fates = fatesOf(c.s.entries[c.sc.path])
	}
	known := c.sc.fates[l.place]
	l.over = known == fateEnded
	l.leave = !l.over && (known == fateLost || c.sc.leaves || c.sc.over || c.s.failed)
	l.failed = !l.leave && known == fateLosing
	l.start(c)
	return nil
}

// unjoined is how many branches the scope has begun and has not learnt the end of.
func (sc *scope) unjoined() (n int) {
	for _, l := range sc.lones {
		if !l.joined && !l.lost && !l.won {
			n++
		}
	}
	return n
}

// start starts the task of the branch. One that only repeats and has no entries has nothing to do.
func (l *lone) start(c *Context) {
	s := c.s
	if l.leave && len(s.entries[l.pathOf(0)]) == 0 {
		l.ended = true
		return
	}
	l.steps, l.endSteps = context.WithCancelCause(c.stepContext())
	if l.failed { // it sees the cancel at the end of its entries, and may have to clean up
		l.endSteps(ErrCancelled)
	}
	sc := s.newScope(l.pathOf(0), c.sc.now)
	sc.leaves, sc.over, sc.of = l.leave, l.over, &l.branches
	s.mu.Lock()
	s.lones++
	s.mu.Unlock()
	s.spawn("branch", func() { l.run(&Context{s: s, sc: sc, shielded: c.shielded}) })
}

// run is the task of the branch.
func (l *lone) run(c *Context) {
	s := c.s
	defer l.end(s) // also if the task ends behind its entries
	err := l.call(s, c, 0)
	s.leaveIfOver()
	left := c.sc.reader.Left()
	s.hasRead(c.sc)
	if left == nil {
		c.closeBranches()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l.returned, l.errs[0], l.left = true, err, left
}

// end tells those that wait that the task of the branch has ended.
func (l *lone) end(s *stretch) {
	l.endSteps(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	l.ended, l.rank = true, s.ranks
	s.ranks++
	for _, w := range l.watching {
		s.wake(w)
	}
	if s.lones--; s.lones == 0 && s.unbranched != nil {
		s.wake(s.unbranched)
	}
}

// await waits until one of the branches has ended.
func (c *Context) await(ls ...*lone) {
	w := &waiter{ready: make(chan struct{})}
	c.s.mu.Lock()
	for _, l := range ls {
		if l.ended {
			c.s.mu.Unlock()
			return
		}
	}
	for _, l := range ls {
		l.watching = append(l.watching, w)
	}
	c.s.mu.Unlock()
	c.s.park(w)
}

// awaitBranches waits until all branches of the stretch have ended, because a repeat of a
// function that has failed does not wait for them, and their undos are needed.
func (s *stretch) awaitBranches() {
	w := &waiter{ready: make(chan struct{})}
	s.mu.Lock()
	if s.lones == 0 {
		s.mu.Unlock()
		return
	}
	s.unbranched = w
	s.mu.Unlock()
	s.park(w)
}

// closeBranches cancels the branches of a scope that has ended, and waits for them.
func (c *Context) closeBranches() {
	for _, l := range c.sc.lones {
		l.giveUp(c.s)
	}
	for _, l := range c.sc.lones {
		c.await(l)
	}
}

// giveUp cancels the branch if it has not ended.
func (l *lone) giveUp(s *stretch) {
	s.mu.Lock()
	cancels := !l.ended && l.cancel(s)
	s.mu.Unlock()
	if cancels {
		l.cancelSteps(s)
	}
}

// join returns the error of the branch once it has ended, and records that in the scope that waits.
func (c *Context) join(l *lone) error {
	switch {
	case l.parent.sc != c.sc:
		return fmt.Errorf("%w: %s waits for branch %q, which another scope has begun", ErrMisuse, history.ScopeName(c.sc.path), l.name)
	case l.joined:
		return l.result
	case l.lost:
		return ErrCancelled
	}
	e, err := c.next(l.name, history.Join)
	if err != nil {
		return err
	}
	if e != nil && placesOf(e)[0] != l.place {
		c.s.stuck(fmt.Errorf("%w: the code waits for branch %q, which is number %d of its scope, and had waited for number %d", ErrDiverged, l.name, l.place, placesOf(e)[0]))
	}
	if e == nil {
		c.restIfAsked()
	}
	c.await(l)
	failed := c.resultOf(l)
	if e == nil {
		c.restIfAsked()
		c.needsRoom()
		e = c.made(joinEntry(l, failed))
	} else if failed != nil && e.Flags&history.Failed == 0 {
		c.s.stuck(fmt.Errorf("%w: branch %q had succeeded, and has failed now: %w", ErrDiverged, l.name, failed))
	}
	l.joined = true
	if e.Flags&history.Failed != 0 {
		l.result = branchError(e)
	}
	return l.result
}

// resultOf is the error of a branch that has ended. Entries that its function did not ask for make
// the run stuck, because its result rests on them.
func (c *Context) resultOf(l *lone) error {
	c.s.mu.Lock()
	failed, left := l.errs[0], l.left
	c.s.mu.Unlock()
	if left != nil && !l.leave {
		c.s.stuck(fmt.Errorf("%w: %w", ErrDiverged, left))
	}
	return failed
}

// joinEntry is the entry of a Wait for a branch that has returned the error.
func joinEntry(l *lone, failed error) history.Entry {
	e := history.Entry{Kind: history.Join, Name: l.name, Value: row.Writer(nil).Uint(l.place)}
	if failed == nil {
		return e
	}
	e.Flags, e.Err = history.Failed|flagsOf(failed), engine.Shorten(fmt.Sprintf("branch %q: %s", l.name, failed))
	return e
}

// flagsOf are the flags of an entry with the error of a branch.
func flagsOf(failed error) (flags history.Flags) {
	if errors.Is(failed, ErrCancelled) {
		flags |= history.Cancelled
	}
	if errors.Is(failed, ErrTimeout) {
		flags |= history.TimedOut
	}
	return flags
}
