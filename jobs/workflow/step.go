package workflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// StepOption changes one step. Retry, Timeout and Through return one.
type StepOption struct {
	retry   *jobs.Retry
	timeout time.Duration
	through func(ctx context.Context, s *stretch, fn attemptFunc) ([]byte, error)
}

// Retry says how the step is tried again after a failure, in place of Config.Retry.
func Retry(r jobs.Retry) StepOption { return StepOption{retry: &r} }

// Timeout bounds each attempt at the step: its context ends then. An attempt that goes on
// for another Config.Lease is given up, and its later return counts for nothing.
func Timeout(d time.Duration) StepOption { return StepOption{timeout: d} }

// Step runs fn and records its value, so that no repeat of the run calls fn again (F1). The
// entry is stored before anything that follows can be seen outside (F2). fn may be called
// more often than once: after an error, as Retry says, and after a crash that came before the
// entry was stored. Key(ctx) is the same each time, and belongs into a request to another
// service as its idempotency key.
//
// The value is encoded by the host's codec; a value that cannot be encoded, or is larger
// than the host's MaxValueBytes, fails the step for good. So does an error that
// object.Permanent has made. A panic is a failed attempt. After an error of jobs.Snooze fn is
// called again when that time has passed, at no attempt. It makes no entry, so a run that
// wakes for another reason, such as a signal or a crash, calls fn sooner.
//
// The error is a *StepError with the text of the last attempt, ErrCancelled, ErrMisuse, or
// a jobs.ErrInvalid if the name is not UTF-8 of 1 to 128 bytes.
func Step[T any](ctx *Context, name string, fn func(ctx context.Context) (T, error), opts ...StepOption) (T, error) {
	var value T
	codec := ctx.s.codec
	if err := validName("step", name); err != nil {
		return value, err
	}
	fn = standIn(ctx.s, name, fn)
	if err := ctx.enter("Step", name); err != nil {
		return value, err
	}
	raw, err := step(ctx, name, func(ctx context.Context) ([]byte, error) {
		v, err := fn(ctx)
		if err != nil {
			return nil, err
		}
		return encodeStep(codec, v)
	}, opts)
	ctx.leave()
	if err != nil {
		return value, err
	}
	ctx.decode(raw, &value, history.Step, name)
	return value, nil
}

// encodeStep encodes the value of a step.
func encodeStep(codec object.Codec, v any) ([]byte, error) {
	raw, err := codec.Encode(v)
	if err != nil {
		return nil, &finalError{fmt.Errorf("encode the value of the step: %w", err), 0}
	}
	return raw, nil
}

// decode decodes a recorded value. One that the present type cannot hold makes the run
// stuck, because another deploy may read it.
func (c *Context) decode(raw []byte, into any, k history.Kind, name string) {
	if err := c.s.codec.Decode(raw, into); err != nil {
		c.s.stuck(fmt.Errorf("workflow: cannot decode the recorded value of %s: %w", history.Operation(k, name), err))
	}
}

// finalError is an error of an attempt that no further attempt would change.
type finalError struct {
	err   error
	flags history.Flags
}

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }

// attempts is how far a step has come.
type attempts struct {
	failed int
	first  time.Time // begin of the first
	next   time.Time // when the next is due; zero: now
}

// step reads the entry of a step, or runs it. The name was checked, and the operation has
// begun.
func step(c *Context, name string, fn func(ctx context.Context) ([]byte, error), opts []StepOption) ([]byte, error) {
	asked := c.ask(name)
	var a attempts
	for {
		e, err := c.next(name, history.Step, history.Try)
		switch {
		case err != nil:
			return nil, err
		case e == nil:
			return c.runStep(name, asked, a, fn, opts)
		case e.Kind == history.Step:
			return e.Value, stepError(e)
		}
		a = attempts{e.Attempt, firstOf(e), e.Until}
	}
}

// firstOf is when the first attempt began, as a Try tells.
func firstOf(e *history.Entry) time.Time {
	r := row.Read(e.Value)
	return time.Unix(0, r.Int()).UTC()
}

// ask counts how often the scope has asked for the step, this time included. The number is a
// part of the step's key, so no other step that is put in or left out changes the key.
func (c *Context) ask(name string) int {
	if c.sc.asked == nil {
		c.sc.asked = make(map[string]int)
	}
	c.sc.asked[name]++
	return c.sc.asked[name]
}

// runStep makes attempts at a step until one has succeeded or the last has failed.
func (c *Context) runStep(name string, asked int, a attempts, fn func(ctx context.Context) ([]byte, error), opts []StepOption) ([]byte, error) {
	s := c.s
	retry, timeout := s.d.config.Retry, time.Duration(0)
	for _, o := range opts {
		if o.retry != nil {
			retry = *o.retry
		}
		timeout = max(timeout, o.timeout)
		if o.through != nil {
			inner := fn
			fn = func(ctx context.Context) ([]byte, error) { return o.through(ctx, s, inner) }
		}
	}
	waits := Wait{Kind: waitRetry, Name: name, Until: a.next}
	for {
		if err := c.wait(&a.next, waits); err != nil {
			return nil, err
		}
		c.needsRoom()
		s.flush()
		began := s.now()
		if a.first.IsZero() {
			a.first = began
		}
		value, err := c.try(name, asked, a.failed+1, timeout, fn)
		if err == errNotBegun {
			s.leaveIfOver()
			continue
		}
		if err == nil {
			err = s.tooLarge(value)
		}
		if err == nil {
			c.made(history.Entry{Kind: history.Step, Name: name, Attempt: a.failed, Value: value})
			c.flushBranch()
			return value, nil
		}
		if c.cutOff(err) {
			s.end(outcome{kind: cut, err: err})
			s.exit()
		}
		if c.toCancel() && err != nil {
			c.seeCancel()
			return nil, ErrCancelled
		}
		if w, ok := s.snoozed(name, err); ok {
			if a.next, waits = w.Until, w; a.failed == 0 {
				a.first = time.Time{}
			}
			continue
		}
		a.failed++
		at, again := s.nextAttempt(retry, a, err)
		if !again {
			e := c.made(c.failure(name, a.failed, err))
			c.flushBranch()
			return nil, stepError(e)
		}
		a.next, waits = at, Wait{Kind: waitRetry, Name: name, Until: at}
		c.made(history.Entry{
			Kind: history.Try, Flags: history.Failed, Name: name, Attempt: a.failed, Until: at, Err: engine.Shorten(err.Error()),
			Value: row.Writer(nil).Int(a.first.UnixNano()),
		})
	}
}

// wait returns nil when the time has come, if it is not zero, and the scope may go on.
func (c *Context) wait(until *time.Time, what Wait) error {
	for {
		if err := c.goesOn(); err != nil {
			return err
		}
		if until.IsZero() || !until.After(c.s.now()) {
			return nil
		}
		c.park(*until, what)
	}
}

// nextAttempt returns when a step that has failed is tried again, if it is.
func (s *stretch) nextAttempt(r jobs.Retry, a attempts, err error) (at time.Time, again bool) {
	var final *finalError
	if errors.As(err, &final) {
		return at, false
	}
	at, reason := engine.NextAttempt(r, a.failed, a.first, s.now(), err, s.seams.Rand)
	return at, reason == ""
}

// errNotBegun is the error of an attempt that was not to begin any more.
var errNotBegun = errors.New("workflow: not begun")

// try runs fn as a task of its own, because a step that ignores its context must not
// keep the run from going on.
func (c *Context) try(name string, asked, n int, timeout time.Duration, fn func(ctx context.Context) ([]byte, error)) (value []byte, err error) {
	s := c.s
	a := c.beginStep(name, asked, n)
	defer s.endStep(a)
	ctx := context.Context(&a.context)
	if timeout > 0 {
		until := a.Since.Add(timeout)
		var endStep context.CancelFunc
		ctx, endStep = s.seams.WithDeadline(ctx, until, ErrTimeout)
		defer endStep()
	}
	if timeout > 0 {
		defer s.seams.Clock.AfterFunc(timeout+s.d.config.Lease, func() { s.giveUp(func(x *attempt) bool { return x == a }) }).Stop()
	}
	s.seams.Executor.Go("step", func() { a.run(ctx, fn) })
	if err := s.seams.Executor.Wait(context.Background(), a.over); err != nil {
		return nil, err
	}
	switch {
	case !a.begun: // its time is no time of the step
		return nil, errNotBegun
	case a.gaveUp:
		return nil, fmt.Errorf("%w, and did not return", ErrTimeout)
	case a.err != nil && timeout > 0 && errors.Is(context.Cause(ctx), ErrTimeout) && !errors.Is(a.err, ErrTimeout):
		return nil, fmt.Errorf("%w: %w", ErrTimeout, a.err)
	}
	return a.value, a.err
}

// attempt is an attempt at a step that runs.
type attempt struct {
	UnderWay
	c       *Context
	context stepContext   // a part of the attempt, so that it needs no allocation of its own
	over    chan struct{} // closed when it has ended, or was given up
	closed  bool          // over is closed; stretch.mu guards it
	begun   bool          // its function was called; set before over is closed
	gaveUp  bool          // set before over is closed
	value   []byte
	err     error
}

// run is the task of the attempt. No step begins after a Cancel or a Pause was acknowledged
// (F8), so nothing comes between the look at them and fn.
func (a *attempt) run(ctx context.Context, fn func(ctx context.Context) ([]byte, error)) {
	var value []byte
	var err error
	defer func() { // also after a runtime.Goexit
		s := a.c.s
		s.mu.Lock()
		defer s.mu.Unlock()
		if !a.closed {
			a.value, a.err, a.closed = value, err, true
			close(a.over)
		}
	}()
	if !a.begins() {
		return
	}
	err = seam.Guard(func() (err error) {
		value, err = fn(ctx)
		return err
	}, func(p *seam.PanicError) error {
		p.TakeStack()
		err = p
		return p
	})
}

// begins reports whether the function of the attempt is to be called. One that was given up
// before its task began is not.
func (a *attempt) begins() bool {
	s := a.c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.closed {
		return false
	}
	a.begun = s.outcome.kind == running && !s.hold && !s.closing() && !a.c.givenUp()
	return a.begun
}

// giveUp ends the wait for the attempts that are meant. Their later return counts for
// nothing.
func (s *stretch) giveUp(meant func(a *attempt) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.current {
		if meant(a) && !a.closed {
			a.gaveUp, a.closed = true, true
			close(a.over)
		}
	}
}

// giveUpLater gives up the attempts that are meant one Lease from now, if they still run.
func (s *stretch) giveUpLater(meant func(a *attempt) bool) {
	s.seams.Clock.AfterFunc(s.d.config.Lease, func() { s.giveUp(meant) })
}

// cutOff reports whether an attempt has failed because the instance is gone or the host is
// closing: then it counts for nothing.
func (c *Context) cutOff(err error) bool { return err != nil && c.s.base.Err() != nil }

// flushBranch stores the entries of a branch at once, because others may take long.
func (c *Context) flushBranch() {
	c.s.mu.Lock()
	alone := c.s.tasks == 1
	c.s.mu.Unlock()
	if !alone {
		c.s.flush()
	}
}

// failure is the entry of a step that has failed for the last time.
func (c *Context) failure(name string, n int, err error) history.Entry {
	e := history.Entry{Kind: history.Step, Flags: history.Failed, Name: name, Attempt: n, Err: engine.Shorten(err.Error())}
	var p *seam.PanicError
	if errors.As(err, &p) {
		e.Flags |= history.Panicked
	}
	if errors.Is(err, ErrTimeout) {
		e.Flags |= history.TimedOut
	}
	return e
}

// stepError is the error that a step returns with this entry, or nil.
func stepError(e *history.Entry) error {
	if e.Flags&history.Failed == 0 {
		return nil
	}
	err := &StepError{Step: e.Name, Attempts: e.Attempt, Text: e.Err, Panicked: e.Flags&history.Panicked != 0}
	if e.Flags&history.TimedOut != 0 {
		err.is = ErrTimeout
	}
	return err
}

// tooLarge returns the error of a value that is too large for an entry, or nil.
func (s *stretch) tooLarge(value []byte) error {
	if len(value) <= s.maxValueBytes {
		return nil
	}
	return &finalError{
		fmt.Errorf("the value has %s: store it outside and return its name", overLimit(len(value), s.maxValueBytes)), history.TooLarge,
	}
}

// tooLargeOutput is tooLarge for an output. That of a child may be a quarter smaller, because
// the message to its parent is JSON, in which bytes take a third more.
func (s *stretch) tooLargeOutput(value []byte) error {
	if limit := s.maxValueBytes/4*3 - 1024; s.isChild && len(value) > limit {
		return fmt.Errorf("the value of a child has %s: store it outside and return its name", overLimit(len(value), limit))
	}
	return s.tooLarge(value)
}

// stepContext is the context of a step, from which Key makes the key.
type stepContext struct {
	context.Context
	s          *stretch
	path, name string // of the scope, and of the step
	asked      int    // see ask
}

// stepKey is the key of the context's own value.
type stepKey struct{}

// Value returns the context itself for Key, or a value of the context of the execution.
func (c *stepContext) Value(key any) any {
	if key == (stepKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Key returns the idempotency key of the step that ctx belongs to: the same in each of its
// attempts and repeats, and in no other step, run or generation. It is empty outside a step.
func Key(ctx context.Context) string {
	if c, ok := ctx.Value(stepKey{}).(*stepContext); ok {
		return c.s.keyPrefix() + c.path + c.name + "#" + strconv.Itoa(c.asked)
	}
	return ""
}

// UnderWay is an attempt at a step that runs now.
type UnderWay struct {
	Step    string    `json:"step"`
	Scope   string    `json:"scope,omitempty"` // path of the branch; empty: the function
	Attempt int       `json:"attempt"`         // from 1
	Since   time.Time `json:"since"`
}

// beginStep notes an attempt that begins, for Status.
func (c *Context) beginStep(name string, asked, n int) *attempt {
	a := &attempt{UnderWay: UnderWay{name, c.sc.path, n, c.s.now()}, c: c, over: make(chan struct{})}
	a.context = stepContext{c.stepContext(), c.s, c.sc.path, name, asked}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.current = append(c.s.current, a)
	return a
}

// endStep notes that an attempt has ended.
func (s *stretch) endStep(a *attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.current, a); i >= 0 {
		s.current = slices.Delete(s.current, i, i+1)
	}
}
