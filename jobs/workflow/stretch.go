package workflow

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// linger is how long a stretch waits in memory. A longer wait suspends the run.
const linger = time.Second

// stretch is one execution of the function: it repeats the operations of the history and goes on
// behind it, until the function ends or waits for long. Its way:
//
//  1. instance.Prepare makes it in a turn, with the entries of the history.
//  2. run, the work of the execution, starts the function as a task. Each branch of Each is
//     a task too, and so is each attempt at a step.
//  3. An operation reads its entry, or runs and makes one with record. Entries wait in
//     pending until something can be seen outside: flush stores them in turns.
//  4. A scope that has to wait parks. When all are parked, consider suspends the run.
//  5. end decides how the stretch ends, once; each parked task then leaves, and each other
//     task leaves at its next operation. run waits for them, and its Result stores the rest.
type stretch struct {
	in    *instance // nil if dry
	st    *object.State
	d     *definition
	dry   bool // it only checks that the code follows the history; see Check
	seams *seam.Seams
	codec object.Codec
	id    storage.ID

	maxValueBytes   int  // of an entry
	maxMessageBytes int  // of the argument of a message
	isChild         bool // of another run

	input   []byte
	entries map[string][]history.Entry // by scope
	repeats int                        // how many there are
	began   time.Time                  // of the generation
	life    string                     // CreationID of the run
	prefix  string                     // see keyPrefix
	number  uint64                     // of the generation

	// Set by run, constant after it.
	token    engine.Token
	base     context.Context // of the execution: it ends with the instance and the host
	steps    context.Context // of steps, ends with a Cancel too
	endSteps context.CancelCauseFunc
	storing  func(ctx context.Context) error // store, bound once for all flushes

	root *scope // set under mu

	mu       sync.Mutex // guards the fields below
	live     int        // tasks that are not parked
	tasks    int        // that have not ended
	waiters  []*waiter  // parked
	enrolled []*waiter  // that may be woken before they are parked
	pending  pending
	turns    int // under way: their entries may not be durable yet
	outcome  outcome
	ended    chan struct{} // closed when outcome is set
	gone     chan struct{} // closed when then the last task has ended
	unread   int           // scopes with entries that they have not read to the end; 0: all of the history was repeated
	passing  bool          // a scope was woken in awaitRepeats and has not passed that on
	hold     bool          // no operation begins: the run is to be paused
	cancel   bool          // the run is to be cancelled
	reason   string        // why
	undos    []*undo
	failing  *history.Entry // with which the function has failed, once a repeat has reached it
	failed   bool           // the history has an entry Fail
	current  []*attempt     // at steps
	scopes   []*scope       // of the branches that run
	lones    int            // branches of Go that have not ended
	ranks    int            // those that have ended
	// unbranched waits until lones is 0.
	unbranched *waiter
}

// outcome is how a stretch ended.
type outcome struct {
	kind   outcomeKind
	value  []byte // of returned: the output; of continued: the next input
	err    error
	wake   time.Time // of suspended: when the run goes on by itself
	waits  []Wait    // of suspended
	cancel bool      // of suspended: the stretch knows of a Cancel
}

type outcomeKind uint8

const (
	running   outcomeKind = iota
	suspended             // every scope waits
	returned              // the function has returned a value
	failed                // it has returned an error, and all undos have run
	continued             // it has returned ContinueAs
	stuck                 // it does not follow its history, or has panicked
	cut                   // the instance is gone, or the host is closing
)

// waiter is a parked task.
type waiter struct {
	ready    chan struct{}
	until    time.Time // zero: it waits for something else alone
	what     Wait      // no Kind: it waits for the end of the stretch
	each     *branches // those that it waits for, or nil
	sc       *scope    // nil: no Cancel wakes it
	shielded bool      // from a Cancel
	rests    bool      // until the next stretch, which begins at once
	repeats  *scope    // not nil: until the history was repeated; see awaitRepeats
	woken    bool
	timer    seam.Timer
}

// run is the work of the execution.
func (s *stretch) run(ctx context.Context, x engine.Execution) (engine.Result, error) {
	s.begin(ctx, x)
	s.spawn("workflow", s.function)
	if err := s.seams.Executor.Wait(ctx, s.ended); err != nil {
		s.end(outcome{kind: cut, err: err})
	}
	if s.isCut() {
		s.giveUpLater(func(*attempt) bool { return true })
	}
	if err := s.seams.Executor.Wait(context.Background(), s.gone); err != nil {
		return engine.Result{}, err
	}
	s.endSteps(nil)
	if err := s.storeLarge(); err != nil {
		return engine.Result{}, err
	}
	return s.result()
}

// isCut reports whether the instance is gone or the host is closing.
func (s *stretch) isCut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outcome.kind == cut
}

// begin sets the contexts that the tasks of the stretch need, and counts it if it is a repeat.
func (s *stretch) begin(ctx context.Context, x engine.Execution) {
	s.token, s.base, s.storing = x.Token, ctx, s.store
	steps, endSteps := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.steps, s.endSteps = steps, endSteps
	cancelled := s.cancel
	s.root = s.newScope("", s.began)
	s.mu.Unlock()
	if cancelled {
		s.endSteps(ErrCancelled)
	}
	if s.repeats > 0 && !s.dry {
		s.st.Driver().CountRepeat(s.repeats)
	}
}

// spawn starts a task of the stretch. Its function may end by exit.
func (s *stretch) spawn(name string, f func()) {
	s.mu.Lock()
	s.live++
	s.tasks++
	s.mu.Unlock()
	s.seams.Executor.Go(name, func() {
		defer s.taskEnded()
		f()
	})
}

// taskEnded counts a task out.
func (s *stretch) taskEnded() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tasks--
	s.live--
	s.consider()
	if s.tasks == 0 && s.outcome.kind != running {
		close(s.gone)
	}
}

// end sets the outcome of the stretch, if it has none, and lets the parked tasks leave.
func (s *stretch) end(o outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(o)
}

func (s *stretch) endLocked(o outcome) {
	if s.outcome.kind != running {
		return
	}
	s.outcome = o
	for len(s.waiters) > 0 {
		s.wake(s.waiters[0])
	}
	close(s.ended)
	if s.tasks == 0 {
		close(s.gone)
	}
}

// exit ends the goroutine of a task, because the stretch is over or its scope is. The run
// goes on in another stretch. A panic could be recovered by the code of the user.
func (s *stretch) exit() { seam.Exit(s.seams.Executor) }

// stuck ends the stretch because its code cannot go on.
func (s *stretch) stuck(err error) {
	s.end(outcome{kind: stuck, err: err})
	s.exit()
}

// leaveIfOver ends the task if the stretch is over.
func (s *stretch) leaveIfOver() {
	s.mu.Lock()
	over := s.outcome.kind != running
	s.mu.Unlock()
	if over {
		s.exit()
	}
}

// park waits until the time is over or something wakes w, and lets the run be suspended
// meanwhile. If that happens the task ends.
func (s *stretch) park(w *waiter) {
	s.mu.Lock()
	if s.outcome.kind != running {
		s.mu.Unlock()
		s.exit()
	}
	s.forgetLocked(w)
	if w.sc != nil && (&Context{s: s, sc: w.sc, shielded: w.shielded}).givenUp() { // it was asked for since the operation looked
		s.mu.Unlock()
		return
	}
	if !w.woken {
		s.waiters = append(s.waiters, w)
		s.live--
		if w.repeats != nil {
			s.hasReadLocked(w.repeats)
		}
		s.consider()
		if !w.until.IsZero() && s.outcome.kind == running {
			w.timer = s.seams.Clock.AfterFunc(max(w.until.Sub(s.now()), 0), func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.wake(w)
			})
		}
	}
	s.mu.Unlock()
	if err := s.seams.Executor.Wait(s.base, w.ready); err != nil {
		s.end(outcome{kind: cut, err: err})
	}
	s.leaveIfOver()
}

// waiter returns a wait of the scope.
func (c *Context) waiter(until time.Time, what Wait) *waiter {
	return &waiter{ready: make(chan struct{}), until: until, what: what, sc: c.sc, shielded: c.shielded}
}

// park waits until the time has come or a Cancel wakes the scope.
func (c *Context) park(until time.Time, what Wait) {
	c.flushBeside(until)
	c.s.park(c.waiter(until, what))
}

// flushBeside stores what is pending before a scope waits for long, if other tasks run on: they
// may take long too, and a crash must not move the end of the wait (F4). If none does, the run
// is suspended, which stores it.
func (c *Context) flushBeside(until time.Time) {
	s := c.s
	s.mu.Lock()
	alone := s.live == 1 && !slices.ContainsFunc(s.waiters, s.soon)
	s.mu.Unlock()
	if !alone && !until.IsZero() && until.Sub(s.now()) > linger {
		s.flush()
	}
}

// soon reports whether a parked task goes on within a moment, so that the run is not suspended.
func (s *stretch) soon(w *waiter) bool { return !w.until.IsZero() && w.until.Sub(s.now()) <= linger }

// wake lets a parked task go on. The caller holds s.mu.
func (s *stretch) wake(w *waiter) {
	if w.woken {
		return
	}
	w.woken = true
	close(w.ready)
	if w.timer != nil {
		w.timer.Stop()
	}
	s.forgetLocked(w)
	if i := slices.Index(s.waiters, w); i >= 0 {
		s.waiters = slices.Delete(s.waiters, i, i+1)
		s.live++
	}
}

// consider suspends the run if every task is parked and none goes on soon. The caller
// holds s.mu.
func (s *stretch) consider() {
	if s.live > 0 || s.outcome.kind != running || len(s.waiters) == 0 {
		return
	}
	if s.unread > 0 {
		if s.repeated(); s.live > 0 {
			return
		}
	}
	o, rests := outcome{kind: suspended, cancel: s.cancel}, false
	for _, w := range s.waiters {
		if w.rests {
			o.wake, rests = s.now(), true
		}
		if !w.until.IsZero() && (o.wake.IsZero() || w.until.Before(o.wake)) {
			o.wake = w.until
		}
	}
	o.waits = s.waitsLocked()
	if soon := o.wake.Sub(s.now()) <= linger; soon && !o.wake.IsZero() && !rests && !s.hold && !s.closing() { // goOn may come before one that rests is parked
		return
	}
	s.endLocked(o)
}

// rest suspends the run as soon as every task has reached its next operation, so that it
// goes on at once in another stretch, or after a pause.
func (s *stretch) rest() {
	s.mu.Lock()
	s.hold = true // also tasks that wait for a moment are to rest then
	s.mu.Unlock()
	s.park(&waiter{ready: make(chan struct{}), rests: true})
}

// restless reports whether no operation may begin.
func (s *stretch) restless() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hold || s.closing()
}

// pause has the run suspended before its next operation.
func (s *stretch) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hold = true
	s.consider()
}

// goOn takes a pause back that has not come to its end.
func (s *stretch) goOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing() {
		s.hold = false
		s.wakeAll(func(w *waiter) bool { return w.rests })
	}
}

// cancelRun cancels the steps under way and wakes every parked task.
func (s *stretch) cancelRun(reason string) {
	s.mu.Lock()
	s.cancel, s.reason = true, reason
	endSteps := s.endSteps
	s.wakeAll(func(w *waiter) bool { return w.sc != nil && !w.shielded })
	s.mu.Unlock()
	if endSteps != nil { // else it has not begun
		endSteps(ErrCancelled)
		s.giveUpLater(func(a *attempt) bool { return !a.c.shielded })
	}
}

// wakeAll wakes the parked tasks that are meant. The caller holds s.mu.
func (s *stretch) wakeAll(meant func(w *waiter) bool) {
	for _, w := range slices.Concat(s.waiters, s.enrolled) {
		if meant(w) {
			s.wake(w)
		}
	}
}

// came wakes the tasks that wait for the signal or the child. A turn of the object calls it.
func (s *stretch) came(kind, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeAll(func(w *waiter) bool { return w.what.Kind == kind && w.what.Name == name })
}

// enroll lets w be woken before it is parked.
func (s *stretch) enroll(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enrolled = append(s.enrolled, w)
}

// forget takes back enroll.
func (s *stretch) forget(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLocked(w)
}

// forgetLocked is forget of a caller that holds s.mu.
func (s *stretch) forgetLocked(w *waiter) {
	if i := slices.Index(s.enrolled, w); i >= 0 {
		s.enrolled = slices.Delete(s.enrolled, i, i+1)
	}
}

// now is the present time as it is stored.
func (s *stretch) now() time.Time { return s.seams.Clock.Now().Round(0).UTC() }

// closing reports whether the host shuts down.
func (s *stretch) closing() bool { return !s.dry && s.st.Closing() }
