package workflow

import (
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
)

// Context has the operations of a workflow function. It is no context.Context, because
// its Done, Err and Deadline would be inputs that no history records, and because a request
// to another service belongs into a step, which gets one.
//
// A Context belongs to one scope: the function, or one branch of Each. Two operations of
// one scope at the same time return ErrMisuse.
type Context struct {
	s        *stretch
	sc       *scope
	shielded bool // from a Cancel
}

// scope is code in which one operation follows another. Its task alone uses it, but for the
// fields that stretch.mu guards.
type scope struct {
	path      string // "" is the function
	reader    history.Reader
	cancelled bool           // it has seen the Cancel
	asked     map[string]int // how often each name of a step was asked for
	now       time.Time
	made      int // entries so far
	notNear   int // one more than made where NearFull was false; 0: nowhere
	rand      *rand.Rand
	last      *history.Entry // the newest entry that this stretch has made
	leaves    bool           // it repeats only recorded operations
	over      bool           // a branch of an Each that the function has gone on behind
	left      bool           // its task has ended before the code has: a deferred function may still run
	of        *branches      // nil: it is the function
	unread    bool           // it counts in stretch.unread; stretch.mu guards it
	begun     map[string]int // how often each name of an Each or a Go was asked for
	lones     []*lone        // branches of Go, in their order
	fates     map[uint64]fate
	asleep    bool // in a Sleep that has its entry

	// stretch.mu guards the fields below.
	busy  bool      // an operation is under way
	op    string    // the last one, for texts: Step, Each, Wait for signal
	name  string    // its name
	ops   int       // operations that have ended
	index int       // in stretch.scopes; of the function: none
	seen  int       // ops at the last look of Watch
	since time.Time // the first look with these ops and no operation under way; zero: none
	told  bool      // that it is blocked
}

func (s *stretch) newScope(path string, now time.Time) *scope {
	entries := s.entries[path]
	return &scope{path: path, reader: history.NewReader(path, entries), now: now, unread: len(entries) > 0}
}

// ID is the id of the run.
func (c *Context) ID() string { return c.s.id.Name }

// Generation counts how often the run has begun anew with ContinueAs, from 0.
func (c *Context) Generation() uint64 { return c.s.number }

// Now is the time of the newest entry of the scope, or the end of its sleep, and before
// any entry the start of the run. So it is the same in each repeat.
func (c *Context) Now() time.Time { return c.sc.now }

// Rand returns random numbers that are the same in each repeat: one generator for each
// scope. They are no secret.
func (c *Context) Rand() *rand.Rand {
	if c.sc.rand == nil {
		h := fnv.New64a()
		fmt.Fprintf(h, "%s\x00%s", c.s.keyPrefix(), c.sc.path)
		c.sc.rand = rand.New(rand.NewPCG(h.Sum64(), c.s.number))
	}
	return c.sc.rand
}

// Entries counts the entries of the scope so far.
func (c *Context) Entries() int { return c.sc.made }

// NearFull reports whether the history had reached 80 % of Config.MaxEntries or MaxBytes
// when the scope first asked after its newest entry. A function that goes on for ever then
// returns ContinueAs.
func (c *Context) NearFull() bool {
	c.mustEnter("NearFull")
	e := c.peek()
	if e != nil {
		if e.Kind != history.NearFull {
			return false
		}
		c.next("", history.NearFull)
		return true
	}
	if c.s.dry || c.sc.over || c.sc.notNear == c.sc.made+1 {
		return false
	}
	if !c.s.nearFull() {
		c.sc.notNear = c.sc.made + 1
		return false
	}
	c.awaitRepeats()
	c.made(history.Entry{Kind: history.NearFull})
	return true
}

// Err returns ErrCancelled once the scope has seen that the run is cancelled.
func (c *Context) Err() error {
	if c.sc.cancelled && !c.shielded {
		return ErrCancelled
	}
	return nil
}

// Log returns the log of the run. It is silent while a repeat follows the history.
func (c *Context) Log() *slog.Logger {
	if c.s.dry || c.sc.reader.Peek() != nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.s.st.Log()
}

// WithoutCancel returns a Context of the same scope that a Cancel does not touch, for code
// that must still act when the run is cancelled. Its steps, waits and children go on, and so
// do those in an Each of which another branch has failed.
func WithoutCancel(ctx *Context) *Context {
	shielded := *ctx
	shielded.shielded = true
	return &shielded
}

// enter begins an operation. It returns an ErrMisuse while another operation of the scope
// is under way, and ErrCancelled once the scope has seen a Cancel.
func (c *Context) enter(op, name string) error {
	c.leaveIfOver()
	c.s.mu.Lock()
	busy := c.sc.busy
	if busy {
		op = c.sc.inside(op, name)
	} else {
		c.sc.busy, c.sc.op, c.sc.name = true, op, name
	}
	c.s.mu.Unlock()
	if busy {
		return fmt.Errorf("%w: %s", ErrMisuse, op)
	}
	if err := c.Err(); err != nil {
		c.leave()
		return err
	}
	return nil
}

// leave ends an operation.
func (c *Context) leave() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.sc.busy = false
	c.sc.ops++
}

// mustEnter is enter for an operation that returns no error.
func (c *Context) mustEnter(op string) {
	c.leaveIfOver()
	c.s.mu.Lock()
	busy := c.sc.busy
	if busy {
		op = c.sc.inside(op, "")
	}
	c.s.mu.Unlock()
	if busy {
		c.s.stuck(fmt.Errorf("%w: %s", ErrMisuse, op))
	}
}

// inside tells of an operation that was asked for while another is under way. The caller holds
// stretch.mu.
func (sc *scope) inside(op, name string) string {
	advice := "do it between two, or use Each"
	if op == "Sleep" {
		advice = "sleep between two"
	}
	in := operation(sc.op, sc.name)
	if sc.op == "Step" {
		in = history.Operation(history.Step, sc.name)
	}
	if sc.path != "" {
		in += " of " + history.ScopeName(sc.path)
	}
	return fmt.Sprintf("%s inside %s: a step is one thing; %s", operation(op, name), in, advice)
}

// operation names an operation of the code in texts, for example: Each "items".
func operation(op, name string) string {
	if name == "" {
		return op
	}
	return fmt.Sprintf("%s %q", op, name)
}

// peek returns the next entry of the scope, or nil where the history ends. The task ends
// where the function has failed, and where a scope that only repeats has nothing left.
func (c *Context) peek() *history.Entry {
	e := c.sc.reader.Peek()
	switch {
	case e != nil && e.Kind == history.Fail:
		c.s.failing = e
		c.exit()
	case e == nil && (c.sc.leaves || c.s.failed && !c.sc.over && c.sc.path != undoPath):
		c.exit()
	}
	return e
}

// exit ends the task because its scope is over, though the stretch goes on.
func (c *Context) exit() {
	c.sc.left = true
	c.s.hasRead(c.sc)
	c.s.exit()
}

// leaveIfOver ends the task if the stretch is over or the scope is.
func (c *Context) leaveIfOver() {
	c.s.leaveIfOver()
	if c.sc.left {
		c.s.exit()
	}
}

// next reads the entry of an operation, or returns nil where the history ends. The error
// is ErrCancelled if the scope has seen a Cancel here. A history that the code does not
// follow ends the stretch.
func (c *Context) next(name string, kinds ...history.Kind) (*history.Entry, error) {
	e := c.peek()
	if e == nil {
		return nil, nil
	}
	if e.Kind == history.Cancel && !c.shielded {
		c.read(e)
		c.sc.reader.Next("", history.Cancel)
		c.sc.cancelled = true
		return nil, ErrCancelled
	}
	e, err := c.sc.reader.Next(name, kinds...)
	if err != nil {
		c.s.stuck(fmt.Errorf("%w: %w", ErrDiverged, err))
	}
	c.read(e)
	return e, nil
}

// read moves the time of the scope to that of an entry.
func (c *Context) read(e *history.Entry) {
	c.sc.made++
	c.sc.now = e.At
}

// made records an entry of the scope.
func (c *Context) made(e history.Entry) *history.Entry {
	r := c.s.record(c.entry(e))
	c.note(r)
	c.s.flushLarge()
	return r
}

// entry returns e as an entry that the scope makes now.
func (c *Context) entry(e history.Entry) history.Entry {
	e.Scope, e.At = c.sc.path, c.s.now()
	return e
}

// note notes that e is the newest entry of the scope.
func (c *Context) note(e *history.Entry) {
	c.sc.last = e
	c.read(e)
}

// ready returns nil where an operation may begin that is not in the history and makes an
// entry, and ErrCancelled if the run is to be cancelled.
func (c *Context) ready() error {
	err := c.goesOn()
	if err == nil {
		c.needsRoom()
	}
	return err
}

// goesOn is ready for the part of an operation that needs no further entry.
func (c *Context) goesOn() error {
	c.restIfAsked()
	if c.toCancel() {
		c.seeCancel()
		return ErrCancelled
	}
	return nil
}

// needsRoom ends the stretch if the history takes no further entry.
func (c *Context) needsRoom() {
	if err := c.s.full(); err != nil {
		c.s.stuck(err)
	}
}

// restIfAsked returns where the scope may go on behind its history. If the host is closing or
// the run is to be paused, the task rests here and goes on in another stretch.
func (c *Context) restIfAsked() {
	if c.sc.over {
		c.s.stuck(fmt.Errorf("%w: the code goes on in %s, which had ended: guard what is new with workflow.Patched(ctx, \"…\")", ErrDiverged, history.ScopeName(c.sc.path)))
	}
	if c.s.dry {
		c.s.park(&waiter{ready: make(chan struct{})}) // for good: all else has been checked then
	}
	if c.awaitRepeats() {
		c.s.rest()
	}
}

// begins reports whether a step may begin now. It is asked where nothing comes between the
// answer and the begin, because a Cancel, a Pause or the end of the host may have come while
// entries were stored.
func (c *Context) begins() bool { return !c.s.restless() && !c.toCancel() }

// toCancel reports whether the scope is to be cancelled.
func (c *Context) toCancel() bool {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	return c.givenUp()
}

// seeCancel records that the scope has seen the Cancel. A repeat must know whether that was in
// a sleep or behind it, so the entry of a sleep that was cut off has the flag Failed.
func (c *Context) seeCancel() {
	e := history.Entry{Kind: history.Cancel}
	if c.sc.asleep {
		e.Flags = history.Failed
	}
	c.made(e)
	c.sc.cancelled = true
}

// nearFull reports whether the history has reached 80 % of a limit.
func (s *stretch) nearFull() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.in.large(len(s.pending.entries), s.pending.bytes)
}

// validName returns a jobs.ErrInvalid unless the name of an operation is UTF-8 of 1 to 128
// bytes. Names that look like paths of scopes are refused, because two steps must not have
// the same key.
func validName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: workflow: a %s needs a name", jobs.ErrInvalid, what)
	case len(name) > maxNameBytes:
		return fmt.Errorf("%w: workflow: the name of a %s has %d bytes, the limit is %d", jobs.ErrInvalid, what, len(name), maxNameBytes)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: workflow: the name %q of a %s is not UTF-8", jobs.ErrInvalid, name, what)
	case strings.Contains(name, "]/") || strings.HasPrefix(name, undoPath):
		return fmt.Errorf("%w: workflow: the name %q of a %s is like a key of a branch or of an undo: leave out \"]/\" and \"undo/\"", jobs.ErrInvalid, name, what)
	}
	return nil
}
