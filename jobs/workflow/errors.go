package workflow

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-dev/holdfast/storage"
)

// Errors of workflows, beside those of package jobs.
var (
	// ErrTimeout says that a step or a wait for a signal has used up its time.
	ErrTimeout = errors.New("workflow: timed out")
	// ErrCancelled is the error of each operation once its scope has seen that the run is
	// cancelled, and that of Wait for such a run.
	ErrCancelled = errors.New("workflow: cancelled")
	// ErrFailed is the error of Wait for a run that has failed.
	ErrFailed = errors.New("workflow: failed")
	// ErrMisuse says that an operation was used where it cannot be.
	ErrMisuse = errors.New("workflow: misuse")
	// ErrHistoryFull says that the run is stuck because its history is full. It goes on once
	// Config.MaxEntries or MaxBytes is greater.
	ErrHistoryFull = errors.New("workflow: the history is full")
	// ErrDiverged says that the run is stuck because its code does not follow its history.
	ErrDiverged = errors.New("workflow: diverged")

	// ErrEnded says that the run has ended, so that it takes no signal.
	ErrEnded error = refusal("workflow: the run has ended")
	// ErrUndone says that a failed run cannot go on, because it has begun to undo its steps,
	// or because its last step has not failed.
	ErrUndone error = refusal("workflow: the run cannot go on")
	// ErrExists says that a child was not started, because its id is in use.
	ErrExists error = refusal("workflow: the run exists")
	// ErrUnknownSignal says that the signal does not stand in Config.Signals.
	ErrUnknownSignal error = refusal("workflow: unknown signal")
	// ErrBusy says that too many signals wait for the run to take them. Send the signal again
	// later. One that was sent with an Outbox waits.
	ErrBusy error = busy("workflow: too many signals wait")
)

// busy is the error of a run that takes no signals for a while.
type busy string

func (b busy) Error() string { return string(b) }

// Retryable says that a message which is refused waits, in its order, and costs no attempt.
func (busy) Retryable() bool { return true }

// final wraps an error that each repeat of the call would get again, so that a message which
// gets it is a dead letter at once. It says nothing to a step or a run that returns it.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// Permanent says that a repeat gets the same error.
func (final) Permanent() bool { return true }

// refusal is an error that a repeat of the call would get again, so that a message which
// gets it is a dead letter at once.
type refusal string

func (r refusal) Error() string { return string(r) }

// Permanent says that a repeat gets the same error.
func (refusal) Permanent() bool { return true }

// StepError is how a step failed for the last time: the same in each repeat of the run,
// which is why it holds the text of the error and not the error itself.
type StepError struct {
	Step     string // its name
	Attempts int    // that have failed
	Text     string // of the last error
	Panicked bool   // in the last attempt

	is error
}

func (e *StepError) Error() string { return fmt.Sprintf("step %q: %s", e.Step, e.Text) }

// Is reports whether target is ErrTimeout, and the last attempt has used up its time.
func (e *StepError) Is(target error) bool { return e.is != nil && target == e.is }

// stuckError is why a run is stuck, with the name of the run. Its text has the prefix "workflow: "
// once.
type stuckError struct {
	id  storage.ID
	err error
}

func (e *stuckError) Error() string {
	return "workflow: " + e.id.String() + ": " + strings.TrimPrefix(e.err.Error(), "workflow: ")
}

func (e *stuckError) Unwrap() error { return e.err }

// overLimit says how large a value is and how large it may be, for example: 5 MiB, the limit is
// 2 MiB. It counts bytes if the difference is less than a tenth, because rounding would hide it.
func overLimit(n, limit int) string {
	has, may := sizeOf(n), sizeOf(limit)
	if n-limit < limit/10 {
		has, may = strconv.Itoa(n)+" bytes", strconv.Itoa(limit)+" bytes"
	}
	return has + ", the limit is " + may
}

// sizeOf is a number of bytes in MiB or KiB, with at most one decimal, or in bytes.
func sizeOf(n int) string {
	unit, name := 1<<20, " MiB"
	switch {
	case n < 1<<10:
		return strconv.Itoa(n) + " bytes"
	case n < 1<<20:
		unit, name = 1<<10, " KiB"
	}
	text := strconv.FormatFloat(float64(n)/float64(unit), 'f', 1, 64)
	return strings.TrimSuffix(text, ".0") + name
}
