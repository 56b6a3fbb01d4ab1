package object_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/object"
)

// Proves A6, A7, J13, Case JB3: an attempt of an alarm that fails has one line: a
// warning with the time of the next one, an error when it becomes a dead letter.
// The stack of a panic is in the line and in the dead letter, and no text of an
// error has it.
func TestAlarmFailuresAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r loglines.Recorder
		f := newFixture(t, object.ClassOptions{AlarmRetry: alarm.Retry{MaxAttempts: 2, Backoff: alarm.Constant(time.Second)}})
		f.options.Logger = r.Logger()
		f.open()
		defer f.close()
		f.handleAlarm(func(_ *thing, _ context.Context, info object.AlarmInfo) error {
			if info.Attempt == 1 {
				return errors.New("boom")
			}
			panic("ouch")
		})
		at := time.Now().Add(time.Minute)
		f.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.SetAlarm(ctx, at) })
		time.Sleep(time.Hour)

		when := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
		want := "WARN alarm failed class=thing object=a attempt=1 scheduled=" + when(at) + " next=" + when(at.Add(time.Second)) + " error=boom\n" +
			"ERROR alarm is a dead letter class=thing object=a attempt=2 scheduled=" + when(at) + " reason=retries used up error=thing/a: object: handler panicked: ouch"
		if got := r.Text(slog.LevelInfo); got != want {
			t.Errorf("logged\n%s\nwant\n%s", got, want)
		}
		if lines := r.From(slog.LevelError); len(lines) == 1 && !strings.Contains(lines[0].Attrs["stack"], "logs_test.go") {
			t.Errorf("the line has no stack: %v", lines[0].Attrs)
		}
		dead, err := lettersOf(f.host.DeadLetters(context.Background(), object.DeadLettersOptions{Limit: object.MaxPage}))
		if err != nil || len(dead) != 1 {
			t.Fatalf("dead letters %v, %v", dead, err)
		}
		if d := dead[0]; !strings.Contains(d.Stack, "logs_test.go") || len(d.Stack) > object.MaxStackBytes || strings.Contains(d.LastError, "\n") {
			t.Errorf("dead letter %q with the stack %q", d.LastError, d.Stack)
		}
	})
}

// A handler that sets an alarm and fails has one line too, with the time of the new
// alarm.
func TestFailureWithAnotherAlarmIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r loglines.Recorder
		f := newFixture(t)
		f.options.Logger = r.Logger()
		f.open()
		defer f.close()
		first := time.Now().Add(time.Minute)
		second := first.Add(time.Hour)
		f.handleAlarm(func(th *thing, ctx context.Context, info object.AlarmInfo) error {
			if !info.Scheduled.Equal(first) {
				return nil
			}
			return errors.Join(th.st.SetAlarm(ctx, second), errors.New("boom"))
		})
		f.must("a", func(th *thing, ctx context.Context) (any, error) { return nil, th.st.SetAlarm(ctx, first) })
		time.Sleep(2 * time.Hour)
		lines := r.From(slog.LevelInfo)
		if len(lines) != 1 || lines[0].Attrs["next"] != second.UTC().Format(time.RFC3339) {
			t.Errorf("logged\n%s", r.Text(slog.LevelInfo))
		}
	})
}

// Proves O6, J13: a panic of a handler is one line of the log, with the stack, and an
// error of one line for the caller. An object that passes the error on adds no line.
func TestPanicOfACallIsLoggedOnce(t *testing.T) {
	var r loglines.Recorder
	f := newFixture(t)
	f.options.Logger = r.Logger()
	f.open()
	defer f.close()
	_, err := f.call("outer", func(th *thing, ctx context.Context) (any, error) {
		return f.do.Call(ctx, th.st, "inner", func(*thing, context.Context) (any, error) { panic("ouch") })
	})
	if !errors.Is(err, object.ErrPanic) || err.Error() != "thing/inner: object: handler panicked: ouch" {
		t.Errorf("error %q", err)
	}
	lines := r.From(slog.LevelInfo)
	if len(lines) != 1 || !strings.Contains(lines[0].Attrs["stack"], "logs_test.go") ||
		lines[0].String() != "ERROR handler panicked class=thing object=inner method=do error=thing/inner: object: handler panicked: ouch" {
		t.Errorf("logged\n%s", r.Text(slog.LevelInfo))
	}
}

// LogCommitted writes for a turn that commits, and not for one that fails.
func TestLogCommitted(t *testing.T) {
	var r loglines.Recorder
	f := newFixture(t)
	f.options.Logger = r.Logger()
	f.open()
	defer f.close()
	for _, end := range []error{errors.New("no"), nil} {
		_, err := f.call("a", func(th *thing, ctx context.Context) (any, error) {
			return nil, errors.Join(th.st.Driver().LogCommitted(ctx, slog.LevelWarn, "told", "end", end), end)
		})
		if (err == nil) != (end == nil) {
			t.Error(err)
		}
	}
	if got := r.Text(slog.LevelInfo); got != "WARN told class=thing object=a end=<nil>" {
		t.Errorf("logged %q", got)
	}
}

// Permanent and RetryAfter are seen through errors that wrap theirs.
func TestAdvice(t *testing.T) {
	boom := errors.New("boom")
	if object.Permanent(nil) != nil || object.RetryAfter(time.Second, nil) != nil {
		t.Error("nil has become an error")
	}
	wrapped := errors.Join(errors.New("other"), object.Permanent(boom))
	if !object.IsPermanent(wrapped) || object.IsPermanent(boom) || !errors.Is(wrapped, boom) {
		t.Error("a permanent error is not found, or one that is none")
	}
	for _, c := range []struct{ asked, want time.Duration }{{-1, 0}, {0, 0}, {1, 1}} {
		if d, ok := object.RetryDelay(object.RetryAfter(c.asked, boom)); !ok || d != c.want {
			t.Errorf("RetryAfter(%d): %d, %t", c.asked, d, ok)
		}
	}
	if _, ok := object.RetryDelay(boom); ok {
		t.Error("an error without a delay has one")
	}
}
