package engine

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-dev/holdfast/jobs"
)

// Errors of executions.
var (
	// ErrLost is the error of an execution that was cut off, because its process or its
	// instance ended, or because its outside holder let the lease end.
	ErrLost = errors.New("jobs: execution was lost")
	// ErrClosing says that no execution can begin, since the host shuts down, or is suspended (object.ErrSuspended).
	ErrClosing = errors.New("jobs: host is shutting down or suspended")
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
	return e.of + ": invalid: " + strings.TrimPrefix(e.err.Error(), jobs.ErrInvalid.Error()+": ")
}

func (e *invalidError) Unwrap() []error { return []error{jobs.ErrInvalid, e.err} }
