package object

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/storage"
)

// Errors of a call, by the moment they occur. Each arrives wrapped with the name
// of the object; the user's own errors arrive unchanged.
var (
	// Before the handler: nothing of the call has run.

	ErrUnknownClass  = errors.New("object: class is not registered with the host: pass it to object.Open")
	ErrUnknownMethod = errors.New("object: class has no such method")
	ErrBadName       = errors.New("object: bad name")
	ErrOverloaded    = errors.New("overloaded")
	ErrDeadlock      = errors.New("deadlock")
	ErrConstructor   = errors.New("object: constructor failed")
	ErrShutdown      = errors.New("object: host is shut down")

	// In the handler: the turn leaves no trace, unless Sync or Release
	// committed a part of it.

	ErrPanic          = errors.New("object: handler panicked")
	ErrReset          = errors.New("object: activation is gone")
	ErrNoTurn         = errors.New("object: not in a turn of the object: pass the handler's context, or use State.Do")
	ErrTooDeep        = errors.New("object: BlockConcurrencyWhile is nested too deep")
	ErrTimeout        = errors.New("object: took too long")
	ErrTxDone         = errors.New("object: transaction has ended")
	ErrKeyTooLarge    = errors.New("object: key is too large")
	ErrValueTooLarge  = errors.New("object: value is too large")
	ErrBatchTooLarge  = errors.New("object: turn writes too much")
	ErrBadAlarmTime   = errors.New("object: alarm time must be after 1970")
	ErrNoAlarmHandler = errors.New("object: class has no Alarm method")

	// After it: the commit may or may not have survived.

	ErrStorage = storage.ErrStorage
	// ErrUnknown is wrapped when the caller's context ended while the handler
	// ran: the turn may commit or not.
	ErrUnknown = errors.New("object: outcome is unknown")
)

// ErrNoSpace refuses a turn that writes while the disk is nearly full. Nothing
// was changed.
var ErrNoSpace = storage.ErrNoSpace

// Retryable reports whether the call that returned err left nothing behind and
// may be sent again as it is, now or a little later.
func Retryable(err error) bool {
	if errors.Is(err, ErrUnknown) {
		return false // whatever ended the caller's context, which it wraps too
	}
	for _, e := range []error{ErrOverloaded, ErrConstructor, ErrReset, ErrDeadlock, ErrNoSpace} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// PanicError is what the caller of a handler that panicked gets. It matches
// ErrPanic. Its text is one line; the stack is in the field, and in the log.
type PanicError struct {
	ID    storage.ID
	Value any    // what the handler panicked with; nil if it called runtime.Goexit
	Stack []byte // of the task that ran the handler
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("%s: %v: %v", e.ID, ErrPanic, e.Value)
}

// Is reports whether target is ErrPanic.
func (e *PanicError) Is(target error) bool { return target == ErrPanic }

// Unwrap returns what the handler panicked with if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// because is err with its cause. Both match with errors.Is, and the text names the
// package once, and the object no second time.
func because(id storage.ID, err, cause error) error { return &caused{id, err, cause} }

type caused struct {
	id         storage.ID
	err, cause error
}

func (c *caused) Error() string {
	why := strings.TrimPrefix(c.cause.Error(), c.id.String()+": ")
	return c.err.Error() + ": " + strings.TrimPrefix(why, "object: ")
}

func (c *caused) Unwrap() []error { return []error{c.err, c.cause} }

// named wraps a runtime error with the object's name.
func named(id storage.ID, err error) error { return fmt.Errorf("%s: %w", id, err) }
