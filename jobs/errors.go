package jobs

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage"
)

// Errors of the verbs of a job.
var (
	// ErrNotFound says that there is no such job, or none any more.
	ErrNotFound error = refusal("jobs: no such job")
	// ErrIllegalMove matches every *MoveError.
	ErrIllegalMove = errors.New("jobs: illegal move")
	// ErrInvalid wraps the mistake in an input or a definition.
	ErrInvalid error = refusal("jobs: invalid")
)

// refusal is an error of a verb that a repeat would get again.
type refusal string

func (r refusal) Error() string { return string(r) }

// Permanent says that a message which is refused becomes a dead letter at once. It says
// nothing to the run of a job: there object.Permanent alone is final.
func (refusal) Permanent() bool { return true }

// Errors of executions.
var (
	// ErrStaleExecution says that the execution is not, or no longer, open:
	// another one has taken its place, or the job has ended.
	ErrStaleExecution = errors.New("jobs: execution is stale")
	// ErrTimeout is the cause of a context, and the error of an execution, that
	// has used up its time.
	ErrTimeout = errors.New("jobs: execution timed out")
)

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
	do := ""
	resting := e.From == Paused || e.From == Stopped || e.From == Failed || e.From == Stuck
	if resting && (e.To == Executing || e.To == Paused) {
		do = ": Resume it first"
	}
	return fmt.Sprintf("jobs: illegal move%s from %s to %s%s", of, e.From, e.To, do)
}

// Is reports whether target is ErrIllegalMove.
func (e *MoveError) Is(target error) bool { return target == ErrIllegalMove }

// Permanent says that a verb which was sent with an Outbox becomes a dead letter at once if
// the status does not allow it. It says nothing to the run of a job: there object.Permanent
// alone is final.
func (*MoveError) Permanent() bool { return true }
