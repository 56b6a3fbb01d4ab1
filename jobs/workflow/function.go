package workflow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
	"github.com/holdfast-dev/holdfast/seam"
)

// function is the task of the workflow's function: it runs it, and then its undos if it has
// failed.
func (s *stretch) function() {
	ended := false
	defer func() {
		if s.failing != nil && !ended { // it was ended where it had failed before
			s.spawn("undo", func() { s.failedWith(*s.failing) })
		}
	}()
	c := &Context{s: s, sc: s.root}
	value, err := s.call(c)
	s.leaveIfOver()
	ended = true
	if next := c.sc.reader.Peek(); next == nil || next.Kind == history.Fail {
		s.hasRead(c.sc)
		c.closeBranches()
	}
	s.returned(c, value, err)
}

// call calls the function. A panic, and a goroutine that the function ends by itself, make
// the run stuck.
func (s *stretch) call(c *Context) (value []byte, err error) {
	defer s.over()
	err = seam.Guard(func() (err error) {
		value, err = s.d.function(c, s.input)
		return err
	}, func(p *seam.PanicError) error {
		s.mu.Lock()
		meant := s.failing != nil
		s.mu.Unlock()
		return s.broke(p, meant)
	})
	return value, err
}

// broke ends the stretch after code of the user has panicked, or has ended its goroutine
// without being meant to by exit.
func (s *stretch) broke(p *seam.PanicError, meant bool) error {
	switch {
	case !p.Exited():
		s.end(outcome{kind: stuck, err: &panicked{p}})
	case !meant:
		s.end(outcome{kind: stuck, err: errors.New("workflow: the function has ended its goroutine by runtime.Goexit: return an error instead")})
	}
	return p
}

// panicked is the error of a run with a function that has panicked. It does not wrap the
// argument of panic, because a Permanent one would end the run.
type panicked struct{ cause *seam.PanicError }

func (e *panicked) Error() string {
	return fmt.Sprintf("workflow: the function has panicked: %v", e.cause.Value)
}

// As gives the stack to the log and the status of the run.
func (e *panicked) As(target any) bool {
	p, ok := target.(**seam.PanicError)
	if ok {
		*p = e.cause
	}
	return ok
}

// returned ends the stretch after the function has returned. An outcome that is recorded
// counts, whatever later code returns.
func (s *stretch) returned(c *Context, value []byte, err error) {
	next := c.sc.reader.Peek()
	var anew *continueAs
	switch {
	case next != nil && next.Kind == history.Fail:
		s.failedWith(*next)
	case next != nil:
		s.stuck(fmt.Errorf("%w: %w", ErrDiverged, c.sc.reader.Left()))
	case errors.As(err, &anew):
		s.continues(anew)
	case err != nil:
		e := history.Entry{Kind: history.Fail, Err: engine.Shorten(err.Error())}
		if c.sc.cancelled || c.toCancel() { // maybe only branches have seen the Cancel
			e.Flags |= history.Cancelled
		}
		s.failedWith(*c.made(e))
	default:
		s.end(outcome{kind: returned, value: value})
	}
}

// failedWith runs the undos, last first, and ends the stretch with the failure that the
// entry tells.
func (s *stretch) failedWith(e history.Entry) {
	err := errors.New(e.Err)
	if e.Flags&history.Cancelled != 0 {
		err = &cancelledError{e.Err}
	}
	s.awaitBranches()
	if len(s.undos) > 0 {
		s.flush()
		if undone := s.undoAll(); undone != nil {
			err = undone
		}
	}
	s.end(outcome{kind: failed, err: err})
}

// cancelledError is the error with which a cancelled function has returned.
type cancelledError struct{ text string }

func (e *cancelledError) Error() string { return e.text }

func (e *cancelledError) Is(target error) bool { return target == ErrCancelled }

// undoPath is the path of the scope of the undos.
const undoPath = "undo/"

// undo is a compensation that Undo has registered.
type undo struct {
	name  string
	fn    func(ctx context.Context) error
	path  string // of the scope
	place int    // among the undos of the scope
	// after is the newest entry of the scope when the undo was registered; 0: none.
	after  uint64
	record *history.Entry // that entry, if this stretch has made it
}

// seq is the place of the undo in the history.
func (u *undo) seq() uint64 {
	if u.record != nil {
		return u.record.Seq + 1
	}
	return u.after
}

// Undo registers fn to be run if the function returns an error, cancelled or not: all undos
// run then, the last one first, each as a step with the name "undo NAME" and the retries of
// Config.Retry. A Cancel does not touch them. An undo that is given up stops the rest, and
// the run fails with its error; Retry goes on with it.
//
// Register the undo of a step before it if the step may have had its effect when it fails: a
// payment over a network may be made though its answer is lost. Such an undo must do no harm
// if there was no effect. Otherwise register it behind the step. A cleanup by defer would run
// at each suspension.
func Undo(ctx *Context, name string, fn func(ctx context.Context) error) {
	ctx.mustEnter("Undo")
	if err := validName("undo", name); err != nil {
		ctx.s.stuck(err)
	}
	ctx.begun()
	u := &undo{name: name, fn: fn, path: ctx.sc.path}
	if ctx.sc.last != nil {
		u.record = ctx.sc.last
	} else if e := ctx.sc.reader.Last(); e != nil {
		u.after = e.Seq + 1
	}
	s := ctx.s
	s.mu.Lock()
	defer s.mu.Unlock()
	u.place = len(s.undos)
	s.undos = append(s.undos, u)
}

// begun records that a branch has begun, before its first undo, if it has no entry yet. The
// others of its Each may fail and end it, and a repeat runs those branches alone that have
// entries. So it does not lose the undo of a step that was cut off by a crash.
func (c *Context) begun() {
	sc := c.sc
	if sc.of == nil || sc.reader.Peek() != nil || sc.reader.Last() != nil || sc.last != nil || sc.leaves || sc.over || c.s.dry || c.s.failed {
		return
	}
	c.awaitRepeats()
	sc.last = c.s.record(c.entry(history.Entry{Kind: history.Undo})) // not made, because Now and Entries of a repeat do not count it
}

// undoAll runs the undos in their order, and returns the error of one that is given up.
func (s *stretch) undoAll() error {
	undos := slices.Clone(s.undos)
	slices.SortStableFunc(undos, func(a, b *undo) int {
		switch {
		case a.seq() != b.seq():
			return cmp.Compare(b.seq(), a.seq())
		case a.path != b.path:
			return strings.Compare(b.path, a.path)
		}
		return cmp.Compare(b.place, a.place)
	})
	c := &Context{s: s, sc: s.newScope(undoPath, s.root.now), shielded: true}
	for _, u := range undos {
		fn := standIn(s, "undo "+u.name, u.fn)
		_, err := step(c, "undo "+u.name, func(ctx context.Context) ([]byte, error) { return nil, fn(ctx) }, nil)
		if err != nil {
			return fmt.Errorf("undo %q: %w", u.name, err)
		}
	}
	if err := c.sc.reader.Left(); err != nil {
		s.stuck(fmt.Errorf("%w: %w", ErrDiverged, err))
	}
	return nil
}
