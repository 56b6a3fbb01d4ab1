package jobs

import (
	"context"
	"errors"
	"log/slog"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object"
)

// Namer is a Policy that executes more than one thing.
type Namer interface {
	// TaskName is how logs and the recovery report name the subject of an
	// execution; empty stands for the job itself.
	TaskName(subject string) string
}

// taskName is how logs name what is executed.
func (e *Engine) taskName(subject string) string {
	if n, ok := e.p.(Namer); ok {
		return n.TaskName(subject)
	}
	return subject
}

// log writes the one line that tells of an execution which failed: a warning if it
// is tried again, an error if its run was given up. A lost one that is repeated has
// its line from the recovery report.
func (e *Engine) log(ctx context.Context, x *Execution, out Outcome) error {
	if out.Kind != Again && out.Kind != GaveUp {
		return nil
	}
	var args []any
	if name := e.taskName(x.Subject); name != "" {
		args = append(args, "task", name)
	}
	args = append(args, "run", x.Run.Number, "attempt", x.Run.Attempt, "error", out.Err)
	if stack := stackOf(out.Err); stack != "" {
		args = append(args, "stack", stack)
	}
	if out.Lost {
		args = append(args, "crashes", out.Run.Recoveries)
	}
	if out.Kind == Again {
		return e.st.LogCommitted(ctx, slog.LevelWarn, "execution failed", append(args, "next", out.Run.RetryAt)...)
	}
	return e.st.LogCommitted(ctx, slog.LevelError, "run given up", append(args, "reason", string(out.Reason))...)
}

// stackOf returns the stack of the panic that an execution ended with; empty if it
// did not panic.
func stackOf(err error) string {
	var p *PanicError
	if !errors.As(err, &p) {
		return ""
	}
	return p.Stack
}

// Stack is the stack of the panic that the execution ended with, cut to what is
// stored of it, object.MaxStackBytes. It is empty if the execution did not panic.
func (o Outcome) Stack() string { return alarm.Cut(stackOf(o.Err), object.MaxStackBytes) }
