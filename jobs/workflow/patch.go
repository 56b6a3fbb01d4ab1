package workflow

import (
	"fmt"

	"github.com/holdfast-dev/holdfast/jobs/internal/history"
)

// Patched reports whether the run goes on with a change of the code. It is true for a run
// that comes to this line with the changed code, and stays so in its repeats. It is false for
// a run that already goes on without the change in its history:
//
//	if workflow.Patched(ctx, "fraud-check") {
//		err = check(ctx, order) // a step that the code did not have before
//	}
//
// Once List with WithoutPatch yields no run any more that is without the change, the line
// may go.
func Patched(ctx *Context, change string) bool {
	ctx.mustEnter("Patched")
	if err := validName("change", change); err != nil {
		ctx.s.stuck(err)
	}
	recorded, atEnd := ctx.sc.reader.Patched(change)
	if recorded || !atEnd || ctx.sc.cancelled || ctx.sc.over {
		return recorded
	}
	ctx.peek() // the task ends here if its scope has nothing left to do
	if ctx.awaitRepeats() {
		ctx.s.rest()
	}
	// Not made, because Now and Entries of a repeat do not count a patch: its line may be gone.
	ctx.s.record(ctx.entry(history.Entry{Kind: history.Patch, Name: change}))
	return true
}

// continueAs is the error with which the function asks to begin anew.
type continueAs struct{ input []byte }

func (*continueAs) Error() string { return "workflow: the run begins anew" }

// ContinueAs has the run begin anew with another input, if the function returns its result:
//
//	return Poll.ContinueAs(ctx, state)
//
// One batch deletes the history, so that a function may go on for ever, and keeps the id, the
// variables, the data of Atomic, and the signals that no wait has taken (F5). The keys of
// steps are new.
//
// It returns a jobs.ErrInvalid if the input has a method Validate() error that fails, and
// ErrCancelled if the run is to be cancelled, so that a loop of generations ends. The run is stuck
// with ErrMisuse, until a deploy mends its code, if ctx is that of a branch, if w is another
// workflow than that of the run, if undos are registered, or if the function has begun branches
// with Go that it has not waited for, which may have children.
func (w *Workflow[In, Out]) ContinueAs(ctx *Context, in In) (out Out, err error) {
	return out, ctx.continueAs(w.d, in)
}

// continueAs is ContinueAs of a workflow. It always returns an error.
func (c *Context) continueAs(d *definition, in any) error {
	if err := c.enter("ContinueAs", ""); err != nil {
		return err
	}
	defer c.leave()
	if err := c.mayContinue(d); err != nil {
		c.s.stuck(err)
	}
	raw, err := encodeInput(c.s.codec, c.s.id, in)
	if err == nil {
		err = c.s.tooLarge(raw)
	}
	if err != nil {
		return fmt.Errorf("workflow: ContinueAs: the input: %w", err)
	}
	switch e := c.peek(); {
	case e != nil && e.Kind == history.Cancel && !c.shielded:
		_, err := c.next("", history.Cancel)
		return err
	case e == nil && c.toCancel():
		c.awaitRepeats()
		c.seeCancel()
		return ErrCancelled
	}
	return &continueAs{raw}
}

// mayContinue returns why a run of this scope cannot begin anew as one of d, or nil.
func (c *Context) mayContinue(d *definition) error {
	switch {
	case c.sc.path != "":
		return fmt.Errorf("%w: ContinueAs in %s: return its result from the function", ErrMisuse, history.ScopeName(c.sc.path))
	case d != c.s.d:
		return fmt.Errorf("%w: ContinueAs of workflow %s in a run of %s: a run keeps its workflow; start another with Child", ErrMisuse, d.name, c.s.d.name)
	}
	if n := c.sc.unjoined(); n > 0 {
		return fmt.Errorf("%w: ContinueAs with %d branches that were not waited for: call Wait or First before it", ErrMisuse, n)
	}
	return nil
}

// continues ends the stretch, and the generation with it.
func (s *stretch) continues(anew *continueAs) {
	s.mu.Lock()
	undos := len(s.undos)
	s.mu.Unlock()
	if undos > 0 {
		s.stuck(fmt.Errorf("%w: ContinueAs with %d undos registered", ErrMisuse, undos))
	}
	s.end(outcome{kind: continued, value: anew.input})
}
