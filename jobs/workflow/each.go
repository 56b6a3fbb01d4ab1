package workflow

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
	"github.com/holdfast-dev/holdfast/seam"
)

// maxBranches is how many branches of one Each run at a time.
const maxBranches = 1000

// maxPathBytes bounds the path of a branch, because each of its entries has it beside a value.
const maxPathBytes = 512

// Each calls fn for each item, with at most atOnce of them at a time (zero, and more than
// 1,000: 1,000), and returns the results in the order of the items. Each call is a branch: a
// goroutine with a scope of its own, so that fn may use all operations on its Context, but
// not on the Context of the function. The branches must not share memory that they change.
//
// The first error cancels the other branches and begins no further item. When all have ended,
// Each returns the text of the error of the item with the lowest index that was not cancelled by
// that, as an error that is ErrCancelled or ErrTimeout if that one was.
// Each also returns ErrCancelled, ErrMisuse, or a jobs.ErrInvalid if the name is not UTF-8 of
// 1 to 128 bytes, has "]/" or "#" in it, or begins with "undo/", or if it makes the path of the
// branches, such as orders[3]/lines[14]/, longer than 512 bytes.
func Each[T, R any](ctx *Context, name string, items []T, atOnce int, fn func(ctx *Context, item T) (R, error)) ([]R, error) {
	if err := ctx.validBranch("Each", name); err != nil {
		return nil, err
	}
	if err := ctx.enter("Each", name); err != nil {
		return nil, err
	}
	results := make([]R, len(items))
	err := ctx.each(name, len(items), atOnce, func(c *Context, i int) (err error) {
		results[i], err = fn(c, items[i])
		return err
	})
	ctx.leave()
	if err != nil {
		return nil, err
	}
	return results, nil
}

// validBranch returns a jobs.ErrInvalid unless branches of the scope may have the name.
func (c *Context) validBranch(what, name string) error {
	if err := validName(what, name); err != nil {
		return err
	}
	if strings.Contains(name, "#") {
		return fmt.Errorf("%w: workflow: the name %q of %s has a \"#\", which counts those of one name", jobs.ErrInvalid, name, what)
	}
	if n := len(c.sc.path) + len(name) + len("#9999[9999999]/"); n > maxPathBytes {
		return fmt.Errorf("%w: workflow: the paths of the branches of %s %q have %d bytes, the limit is %d: use shorter names", jobs.ErrInvalid, what, name, n, maxPathBytes)
	}
	return nil
}

// branches are those of one Each, or one of Go.
type branches struct {
	parent *Context
	path   string // of the first part: the index follows
	count  int
	fn     func(c *Context, i int) error
	leave  bool // they repeat only recorded operations, because they were given up
	over   bool // the function has gone on behind them, so that nothing of them is new

	steps    context.Context // of the steps of the branches
	endSteps context.CancelCauseFunc

	// stretch.mu guards the fields below.
	next   int     // the next item
	lanes  int     // tasks that have not ended
	failed bool    // a branch has failed: the others are cancelled
	errs   []error // by item
	done   int     // branches that have ended
	waits  *waiter // the parent
}

// each runs the branches, or repeats them.
func (c *Context) each(name string, count, atOnce int, fn func(c *Context, i int) error) error {
	s := c.s
	begun, err := c.next(name, history.Each)
	if err != nil {
		return err
	}
	recorded := begun != nil
	if !recorded {
		if err := c.ready(); err != nil {
			return err
		}
		c.made(history.Entry{Kind: history.Each, Name: name})
	}
	b := &branches{parent: c, path: c.branchPath(name), count: count, fn: fn, errs: make([]error, count)}
	e := c.sc.reader.Peek()
	gaveUp := e != nil && e.Kind == history.Each && e.Name == name && e.Flags&history.Failed != 0
	b.leave = gaveUp || c.sc.leaves
	b.over = recorded && !b.leave && (c.sc.over || c.sc.reader.More())
	b.steps, b.endSteps = context.WithCancelCause(c.stepContext())
	defer b.endSteps(nil)
	if atOnce <= 0 || atOnce > maxBranches {
		atOnce = maxBranches
	}
	if recorded && !b.over {
		c.parksAtEnd()
	}
	b.run(s, min(atOnce, count))
	if gaveUp {
		e, _ = c.next(name, history.Each)
		return branchError(e)
	}
	failed := b.failure()
	switch {
	case failed == nil:
		return nil
	case b.leave: // the scope was given up with these branches
		c.exit()
	}
	if b.over { // it had succeeded
		s.stuck(fmt.Errorf("%w: Each %q had succeeded, and has failed now: %w", ErrDiverged, name, failed))
	}
	c.awaitRepeats()
	return branchError(c.made(history.Entry{Kind: history.Each, Name: name, Flags: history.Failed | flagsOf(failed), Err: engine.Shorten(failed.Error())}))
}

// branchPath is the path of the branches of an Each without their index. It counts how often
// the scope has begun one of that name.
func (c *Context) branchPath(name string) string {
	if c.sc.begun == nil {
		c.sc.begun = make(map[string]int)
	}
	c.sc.begun[name]++
	path := c.sc.path + name
	if n := c.sc.begun[name]; n > 1 {
		path += "#" + strconv.Itoa(n)
	}
	return path
}

// eachError is how an Each has failed: the same in each repeat of the run, which is why it
// holds the text of the error and not the error itself.
type eachError struct {
	text string // of the error of the branch

	is error
}

func (e *eachError) Error() string { return e.text }

// Is reports whether target is ErrCancelled or ErrTimeout, and the error of the branch was one.
func (e *eachError) Is(target error) bool { return e.is != nil && target == e.is }

// branchError is the error that an Each returns with this entry.
func branchError(e *history.Entry) error {
	err := &eachError{text: e.Err}
	switch {
	case e.Flags&history.Cancelled != 0:
		err.is = ErrCancelled
	case e.Flags&history.TimedOut != 0:
		err.is = ErrTimeout
	}
	return err
}

// run starts lanes tasks, each of which runs one branch after another, and parks until all
// have ended.
func (b *branches) run(s *stretch, lanes int) {
	if lanes == 0 {
		return
	}
	b.waits = &waiter{ready: make(chan struct{}), what: Wait{Kind: waitEach, Name: b.path, Total: b.count}, each: b}
	b.lanes = lanes
	for range lanes {
		s.spawn("branch", func() { b.lane(s) })
	}
	s.park(b.waits)
}

// lane runs one branch after another. If a branch ends its task because nothing is recorded
// behind it, another lane goes on.
func (b *branches) lane(s *stretch) {
	done := false
	defer func() {
		s.mu.Lock()
		again := !done && s.outcome.kind == running
		if !again {
			if b.lanes--; b.lanes == 0 {
				s.wake(b.waits)
			}
		}
		s.mu.Unlock()
		if again {
			s.spawn("branch", func() { b.lane(s) })
		}
	}()
	for i, ok := b.take(s); ok; i, ok = b.take(s) {
		b.branch(s, i)
	}
	done = true
}

// take takes the next item. Once the branches are given up, those with entries are still to
// repeat them, because they may have registered undos.
func (b *branches) take(s *stretch) (i int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b.next < b.count {
		i := b.next
		b.next++
		if !b.leave && !b.failed || len(s.entries[b.pathOf(i)]) > 0 {
			return i, true
		}
	}
	return 0, false
}

func (b *branches) pathOf(i int) string { return b.path + "[" + strconv.Itoa(i) + "]/" }

// branch runs one branch to its end.
func (b *branches) branch(s *stretch, i int) {
	sc := s.newScope(b.pathOf(i), b.parent.sc.now)
	sc.leaves, sc.over, sc.of = b.leave, b.over, b
	c := &Context{s: s, sc: sc, shielded: b.parent.shielded}
	err := b.call(s, c, i)
	s.leaveIfOver()
	if left := sc.reader.Left(); left != nil && !b.leave {
		s.stuck(fmt.Errorf("%w: %w", ErrDiverged, left))
	}
	s.hasRead(sc)
	c.closeBranches()
	switch {
	case err != nil && b.leave:
		s.mu.Lock()
		b.errs[i] = err
		s.mu.Unlock()
	case err != nil:
		b.fail(s, i, err)
	}
}

// call calls the user's function of a branch. A panic makes the run stuck.
func (b *branches) call(s *stretch, c *Context, i int) error {
	s.enlist(c.sc)
	defer s.delist(c.sc)
	return seam.Guard(func() error { return b.fn(c, i) }, func(p *seam.PanicError) error {
		return s.broke(p, b.leave || s.failed)
	})
}

// fail notes the error of a branch, and cancels the others.
func (b *branches) fail(s *stretch, i int, err error) {
	s.mu.Lock()
	b.errs[i] = err
	first := b.cancel(s)
	s.mu.Unlock()
	if first {
		b.cancelSteps(s)
	}
}

// cancel cancels the branches, but for their steps, and reports whether they were not cancelled
// before. The caller holds s.mu.
func (b *branches) cancel(s *stretch) bool {
	first := !b.failed
	b.failed = true
	if first {
		s.wakeAll(func(w *waiter) bool { return w.sc != nil && !w.shielded && w.sc.within(b) })
	}
	return first
}

// cancelSteps ends the contexts of the steps of the branches, after cancel.
func (b *branches) cancelSteps(s *stretch) {
	b.endSteps(ErrCancelled)
	s.giveUpLater(func(a *attempt) bool { return !a.c.shielded && a.c.sc.within(b) })
}

// failure is the error of the branch with the lowest index that was not cancelled by
// another, or nil.
func (b *branches) failure() error {
	var cancelled error
	for i, err := range b.errs {
		switch {
		case err == nil:
		case errors.Is(err, ErrCancelled):
			if cancelled == nil {
				cancelled = fmt.Errorf("item %d: %w", i, err)
			}
		default:
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return cancelled
}

// within reports whether the scope is a branch of b, or of an Each in one.
func (sc *scope) within(b *branches) bool {
	for ; sc != nil && sc.of != nil; sc = sc.of.parent.sc {
		if sc.of == b {
			return true
		}
	}
	return false
}

// givenUp reports whether the scope is to be cancelled, with the run or with its branches.
// The caller holds stretch.mu.
func (c *Context) givenUp() bool {
	if c.shielded {
		return false
	}
	if c.s.cancel {
		return true
	}
	for sc := c.sc; sc.of != nil; sc = sc.of.parent.sc {
		if sc.of.failed {
			return true
		}
	}
	return false
}

// stepContext is the context of steps of the scope.
func (c *Context) stepContext() context.Context {
	switch {
	case c.shielded:
		return c.s.base
	case c.sc.of != nil:
		return c.sc.of.steps
	}
	return c.s.steps
}
