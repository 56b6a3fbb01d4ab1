package engine

import (
	"context"
	"errors"
	"log/slog"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// Namer is a Policy that executes more than one thing.
type Namer interface {
	// TaskName is how logs and the recovery report name the subject of an
	// execution; empty stands for the job itself.
	TaskName(subject string) string
}

// taskName is the name of a subject in logs.
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
	if out.Kind == Quit && out.Result.Wish == Fail {
		return e.logFailed(ctx, x, &out.Result)
	}
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
		return e.st.Driver().LogCommitted(ctx, slog.LevelWarn, "execution failed", append(args, "next", out.Run.RetryAt)...)
	}
	return e.st.Driver().LogCommitted(ctx, slog.LevelError, "run given up", append(args, "reason", string(out.Reason))...)
}

// logFailed writes the one line of a job that has failed because its work asked for that.
func (e *Engine) logFailed(ctx context.Context, x *Execution, res *Result) error {
	args := []any{"run", x.Run.Number, "attempt", x.Run.Attempt, "error", res.Err, "reason", res.Reason}
	if stack := stackOf(res.Err); stack != "" {
		args = append(args, "stack", stack)
	}
	return e.st.Driver().LogCommitted(ctx, slog.LevelError, "job failed", args...)
}

// stackOf returns the stack of the panic that an execution ended with; empty if it
// did not panic.
func stackOf(err error) string {
	var p *seam.PanicError
	if !errors.As(err, &p) {
		return ""
	}
	return string(p.Stack)
}

// Stack is the stack of the panic that the execution ended with, cut to
// object.MaxStackBytes. It is empty if the execution did not panic.
func (o Outcome) Stack() string { return cutStack(o.Err) }

// cutStack is the stack of a panic as it is stored.
func cutStack(err error) string { return alarm.Cut(stackOf(err), object.MaxStackBytes) }
