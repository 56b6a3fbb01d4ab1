package object

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
)

// Errors of a call, by the moment at which they occur. Each arrives wrapped with the name
// of the object, so compare with errors.Is. The user's own errors arrive unchanged.
var (
	// Before the handler: nothing of the call has run.

	// ErrUnknownClass: the class of the object was not passed to Open.
	ErrUnknownClass = errors.New("object: class is not registered with the host: pass it to object.Open")
	// ErrUnknownMethod: the class has no method of the name that CallBytes was given.
	ErrUnknownMethod = errors.New("object: class has no such method")
	// ErrInternalMethod: CallBytes was asked for a method of a job type. Call the verb of the
	// type, or its CallBytes.
	ErrInternalMethod = errors.New("object: the method belongs to a job type, which has a verb for it")
	// ErrBadArgument: the codec cannot decode the argument of CallBytes, or of a message that
	// an older program has stored. The error of the codec is in the text, and matches with
	// errors.Is. The handler has not run.
	ErrBadArgument = errors.New("object: cannot decode the argument")
	// ErrKeyReused: CallBytes was given an idempotency key under which the answer of a call
	// with another argument is stored already. Use a new key for each thing that is asked for.
	ErrKeyReused = errors.New("object: the idempotency key was used with another argument")
	// ErrBadName: no object can have this class or name; storage.ID.Validate has the rules.
	ErrBadName = errors.New("object: bad name")
	// ErrOverloaded: the object's mailbox is full (ClassOptions.MailboxLimit), or its
	// oldest call has waited for too long (ClassOptions.MailboxAge). Try again later.
	ErrOverloaded = errors.New("overloaded")
	// ErrDeadlock: the call would wait for a turn that waits for the caller. For example,
	// account/acc1 called account/acc0, which is waiting for account/acc1.
	ErrDeadlock = errors.New("deadlock")
	// ErrConstructor: the constructor failed, or a BlockConcurrencyWhile of an earlier
	// turn did while the call waited. The cause is in the text, and matches with errors.Is.
	ErrConstructor = errors.New("object: constructor failed")
	// ErrShutdown: the host is shutting down, or has ended.
	ErrShutdown = errors.New("object: host is shut down")

	// In the handler: the turn leaves no trace, unless Sync or Release
	// committed a part of it.

	// ErrPanic: the handler panicked. The error is a *PanicError, which has the stack.
	ErrPanic = errors.New("object: handler panicked")
	// ErrReset: the instance is gone, after an eviction, a reset or a deletion, so its State
	// can no longer be used. The next call of the object makes a new instance.
	ErrReset = errors.New("object: instance is gone")
	// ErrSuspended: the replicated log has not answered for two seconds, so another process may own the store by now. It is the
	// cause with which the contexts of works end, and the reason of a PausedReceiver. Works of jobs are run again, at no attempt,
	// and messages are handled, when the log answers.
	ErrSuspended = errors.New("object: the host is suspended, because the log does not answer")
	// ErrNoTurn: the context is not that of the object's present turn, for example because
	// a goroutine of the handler has outlived the turn.
	ErrNoTurn = errors.New("object: not in a turn of the object: pass the handler's context, or use State.Do")
	// ErrTooDeep: BlockConcurrencyWhile is nested more than 64 deep.
	ErrTooDeep = errors.New("object: BlockConcurrencyWhile is nested too deep")
	// ErrTimeout: a constructor or BlockConcurrencyWhile took longer than
	// ClassOptions.BlockLimit.
	ErrTimeout = errors.New("object: took too long")
	// ErrTxDone: the view of a transaction was used after its function had returned.
	ErrTxDone = errors.New("object: transaction has ended")
	// ErrKeyTooLarge: the key, or the idempotency key, is longer than Options.MaxKeyBytes.
	ErrKeyTooLarge = errors.New("object: key is too large")
	// ErrValueTooLarge: the encoded value is longer than Options.MaxValueBytes.
	ErrValueTooLarge = errors.New("object: value is too large")
	// ErrBatchTooLarge: with this write the turn would write more than
	// Options.MaxBatchBytes. Split the work over several turns, or call Sync between.
	ErrBatchTooLarge = errors.New("object: turn writes too much")
	// ErrBadAlarmTime: SetAlarm was given a time that is not after 1970, for example the
	// zero time.
	ErrBadAlarmTime = errors.New("object: alarm time must be after 1970")
	// ErrNoAlarmHandler: SetAlarm was called on an object without an Alarm method.
	ErrNoAlarmHandler = errors.New("object: class has no Alarm method")

	// ErrAlarmOwned: the object's alarm belongs to the job, or to the timers, of the object.
	// The error names it. Ask that one for a wake-up: timers have as many as are wanted.
	ErrAlarmOwned = errors.New("object: the alarm belongs to")

	// ErrDormant: work was started in a store that is a restored copy and sleeps, so that it does
	// nothing that its source may do too. Wake it by `holdfast go` once the source is gone for good.
	ErrDormant = errors.New("object: the store is a dormant copy: wake it by holdfast go")

	// After the handler: the commit may or may not have survived.

	// ErrStorage: the store has failed. The host ends, and a new Open shows which commits survived.
	ErrStorage = storage.ErrStorage
	// ErrUnknown: the caller's context ended while the handler ran, so the turn may commit
	// or not. An idempotency key (Idempotent) makes it safe to send the call again. Over a replicated log it is also
	// the error of a call that has left a log that did not answer, and of a call that has committed when another process has
	// taken the log over: that one goes on with the commit, or without it.
	ErrUnknown = errors.New("object: outcome is unknown")
)

// ErrEventsMissed is returned by Tap.Next if the events behind its cursor are gone: they
// have expired, or memory has them no more. Read the present state, and begin a new tap.
var ErrEventsMissed = errors.New("events behind the cursor are gone")

// ErrBadCursor refuses a DeadLettersOptions.After that is not the Next of a page.
var ErrBadCursor = storage.ErrBadCursor

// ErrNoSpace refuses a turn that writes while the disk is nearly full. Nothing was
// changed, and the host lives on.
var ErrNoSpace = storage.ErrNoSpace

// Retryable reports whether the call that returned err left nothing behind and may be
// sent again as it is, now or a little later. It is true for ErrOverloaded,
// ErrConstructor, ErrReset, ErrDeadlock and ErrNoSpace, and false for every error that
// wraps ErrUnknown.
func Retryable(err error) bool {
	if errors.Is(err, ErrUnknown) {
		return false // although it also wraps the cause of the context's end, which may be one of those below
	}
	for _, e := range []error{ErrOverloaded, ErrConstructor, ErrReset, ErrDeadlock, ErrNoSpace} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Untouched reports whether the call by CallBytes that returned err has stored nothing: its
// handler has not run, or it failed, committed nothing before by Sync, Release or Await, and
// called no other object with its context. An adapter tells its client so that a repeat is
// safe. The effects of the handler on other systems are not seen, nor are calls with another
// context. It is false for an error that is wrapped, and for every other error.
func Untouched(err error) bool {
	_, ok := err.(*untouched)
	return ok
}

// untouched is the error of a call by CallBytes that has stored nothing. Its text is that of
// the error that it wraps.
type untouched struct{ error }

func (e *untouched) Unwrap() error { return e.error }

// PanicError is the error of a call whose handler panicked: the panic with the name of
// the object. It matches ErrPanic. Its text is one line; the stack is in the field Stack,
// and in the log.
type PanicError struct {
	ID storage.ID
	seam.PanicError
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("%s: %v: %v", e.ID, ErrPanic, e.Value)
}

// Is reports whether target is ErrPanic.
func (e *PanicError) Is(target error) bool { return target == ErrPanic }

// Unwrap returns the panic itself, which unwraps to the value of the panic if that is
// an error.
func (e *PanicError) Unwrap() error { return &e.PanicError }

// guard runs user code of an object and turns a panic into a *PanicError. If the code
// ends its goroutine, guard gives the error to exit, because nothing after it runs.
func guard(id *storage.ID, code func() error, exit func(error)) error {
	return seam.Guard(code, func(p *seam.PanicError) error {
		p.TakeStack()
		err := &PanicError{*id, *p}
		if p.Exited() {
			exit(err)
		}
		return err
	})
}

// because returns err with its cause. Both match with errors.Is. The text has the prefix
// of the package and the name of the object only once, because both errors may bring them.
func because(id storage.ID, err, cause error) error { return &caused{id, err, cause} }

// caused is the error that because returns. It makes its text when that is asked for.
type caused struct {
	id         storage.ID
	err, cause error
}

func (c *caused) Error() string {
	why := strings.TrimPrefix(c.cause.Error(), c.id.String()+": ")
	return c.err.Error() + ": " + strings.TrimPrefix(why, "object: ")
}

func (c *caused) Unwrap() []error { return []error{c.err, c.cause} }

// unknown returns ErrUnknown with its cause, for a call of an object.
func unknown(id storage.ID, cause error) error {
	return named(id, fmt.Errorf("%w: %w", ErrUnknown, cause))
}

// badArgument is the error of a method with an argument that the codec cannot decode.
func badArgument(id storage.ID, method string, err error) error {
	return fmt.Errorf("%s: %w of %s: %w", id, ErrBadArgument, method, err)
}

// named wraps a runtime error with the object's name, or with that of the class if the error
// concerns a whole class. An error that concerns the whole store has neither.
func named(id storage.ID, err error) error {
	switch {
	case id == (storage.ID{}):
		return err
	case id.Name == "":
		return fmt.Errorf("class %s: %w", id.Class, err)
	}
	return fmt.Errorf("%s: %w", id, err)
}

// Permanent makes an error final: an alarm whose handler returns it becomes a dead
// letter without further attempts, and a job's run is given up. It returns nil for
// nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

// IsPermanent reports whether err is, or wraps, an error that Permanent made.
func IsPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

// permanentError is the error that Permanent returns. Its text is that of err.
type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }

func (e *permanentError) Unwrap() error { return e.err }

// RetryAfter makes the next attempt of a failed alarm, or of a job's failed run,
// happen after d instead of at the time of its retry policy; the attempt counts all
// the same. A negative d means at once. It returns nil for a nil error.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{max(d, 0), err}
}

// RetryDelay returns the time that RetryAfter gave to err, or to an error that err
// wraps; ok is false if there is none.
func RetryDelay(err error) (d time.Duration, ok bool) {
	var after *retryAfterError
	if !errors.As(err, &after) {
		return 0, false
	}
	return after.after, true
}

// retryAfterError is the error that RetryAfter returns. Its text is that of err.
type retryAfterError struct {
	after time.Duration // not negative
	err   error
}

func (e *retryAfterError) Error() string { return e.err.Error() }

func (e *retryAfterError) Unwrap() error { return e.err }

// MaxStackBytes is how many bytes of the stack of a panic are stored with a dead letter.
// Logs get the whole stack.
const MaxStackBytes = 4 << 10

// stackOf returns the stack of the panic in err; empty if err is no panic.
func stackOf(err error) string {
	var p *PanicError
	if !errors.As(err, &p) {
		return ""
	}
	return string(p.Stack)
}

// telling returns the attributes of a log line about err. The stack of a panic is an
// attribute of its own, because the text of an error has one line.
func telling(err error, args ...any) []any {
	args = append(args, "error", err)
	if stack := stackOf(err); stack != "" {
		args = append(args, "stack", stack)
	}
	return args
}

// storageError adds the name of the object to an error of the store; nil stays nil. A
// store that Shutdown has closed gives ErrShutdown, and a log that has not answered ErrUnknown. A store that failed ends the host
// (O13), on the goroutine of the caller, which may hold no mutex that fail takes.
func (h *Host) storageError(id storage.ID, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrUnconfirmed):
		return unknown(id, err)
	case errors.Is(err, storage.ErrClosed):
		return named(id, ErrShutdown)
	case errors.Is(err, ErrStorage):
		h.fail(err)
	}
	return named(id, err)
}
