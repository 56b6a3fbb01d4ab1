package jobs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/storage"
)

// Errors of the verbs of a job.
var (
	// ErrNotFound says that there is no such job, or none any more.
	ErrNotFound = errors.New("jobs: no such job")
	// ErrIllegalMove is what every *MoveError is.
	ErrIllegalMove = errors.New("jobs: illegal move")
	// ErrInvalid wraps what is wrong with an input or a definition.
	ErrInvalid = errors.New("jobs: invalid")
)

// Errors of executions.
var (
	// ErrStaleExecution says that the execution is not, or no longer, open:
	// another one has taken its place, or the job has ended.
	ErrStaleExecution = errors.New("jobs: execution is stale")
	// ErrTimeout is the cause of a context, and the error of an execution, that
	// has used up its time.
	ErrTimeout = errors.New("jobs: execution timed out")
	// ErrLost is the error of an execution whose process or activation died.
	ErrLost = errors.New("jobs: execution was lost")
	// ErrClosing says that no execution can begin, since the host shuts down.
	ErrClosing = errors.New("jobs: host is shutting down")
)

// Invalidf is an ErrInvalid about of, say a job type and the class of the definition,
// with the text that fmt.Errorf makes of the rest. It is how job types refuse a
// definition or an input: the text names of in place of this package, also if it wraps
// an ErrInvalid of this package.
func Invalidf(of, format string, args ...any) error {
	return &invalidError{of, fmt.Errorf(format, args...)}
}

type invalidError struct {
	of  string
	err error
}

func (e *invalidError) Error() string {
	return e.of + ": invalid: " + strings.TrimPrefix(e.err.Error(), ErrInvalid.Error()+": ")
}

func (e *invalidError) Unwrap() []error { return []error{ErrInvalid, e.err} }

// MoveError tells of a move that the status table does not have. The job is as
// it was. It is an ErrIllegalMove.
type MoveError struct {
	ID       storage.ID // of the job; zero in the error of Status.Move
	From, To Status
}

func (e *MoveError) Error() string {
	of := ""
	if e.ID != (storage.ID{}) {
		of = " of " + e.ID.String()
	}
	return fmt.Sprintf("jobs: illegal move%s from %s to %s", of, e.From, e.To)
}

// Is reports whether target is ErrIllegalMove.
func (e *MoveError) Is(target error) bool { return target == ErrIllegalMove }

// PanicError is the error of an execution whose work panicked.
type PanicError struct {
	Value any    // what was passed to panic
	Stack string // of the goroutine that panicked
}

func (e *PanicError) Error() string { return fmt.Sprintf("jobs: work panicked: %v", e.Value) }

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
