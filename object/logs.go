package object

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// MaxStackBytes is how much of the stack of a panic is stored. Logs get all of it.
const MaxStackBytes = 4 << 10

// LogCommitted writes one line to the log of the host, with the class and the name
// of the object, once the turn has committed. A turn that fails writes none, so
// that a line which tells of a change is written exactly once for it.
func (s *State) LogCommitted(ctx context.Context, level slog.Level, msg string, args ...any) error {
	t, err := s.turn(ctx)
	if err != nil {
		return err
	}
	t.then(func(storage.Ticket) { s.Log().Log(context.Background(), level, msg, args...) })
	return nil
}

// stackOf returns the stack of the panic that err tells of; empty if it tells of
// none.
func stackOf(err error) string {
	var p *PanicError
	if !errors.As(err, &p) {
		return ""
	}
	return string(p.Stack)
}

// telling returns the attributes of a log line that tells of err: the stack of a
// panic is one of its own, because the text of an error has one line.
func telling(err error, args ...any) []any {
	args = append(args, "error", err)
	if stack := stackOf(err); stack != "" {
		args = append(args, "stack", stack)
	}
	return args
}

// methodOf is the name of the method that an operation calls; empty if it calls none.
func methodOf(op operation) string {
	if m, ok := op.(interface{ methodName() string }); ok {
		return m.methodName()
	}
	return ""
}

// logPanic tells of a call whose handler or constructor panicked. A panic that came
// as the answer of another object was told there.
func (a *activation) logPanic(err error, method string) {
	var p *PanicError
	if errors.As(err, &p) && p.ID == a.id {
		a.log().Error("handler panicked", telling(err, "method", method)...)
	}
}

// logFailed tells of an attempt of an alarm that failed. next is when it is tried
// again; zero means that there is no alarm now.
func (a *activation) logFailed(row alarm.Row, cause error, next time.Time) {
	args := []any{"attempt", row.Attempt + 1, "scheduled", row.Scheduled}
	if !next.IsZero() {
		args = append(args, "next", next)
	}
	a.log().Warn("alarm failed", telling(cause, args...)...)
}

// log is the logger of the host with the class and the name of the object.
func (a *activation) log() *slog.Logger {
	return a.hosted.host.options.Logger.With("class", a.id.Class, "object", a.id.Name)
}
