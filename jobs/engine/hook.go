package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// hookRetry is how the calls of hooks are tried again, for all types.
var hookRetry = jobs.Retry{MaxAttempts: 10, Backoff: jobs.Linear(time.Second, time.Minute)}

const (
	hookPrefix  = "h/"           // begins the keys of calls that are owed
	hookSubject = "OnExhausted/" // begins the subjects of their executions

	// maxHooks is how many calls may be owed: beyond it no further run begins, so
	// that a hook which fails for long does not fill the store.
	maxHooks = 16
)

// owedHook is a call of OnExhausted that is owed, or under way. It is stored until
// it is over.
type owedHook struct {
	key  string          // where it is stored
	Told jobs.Exhaustion `json:"told"`
	Call jobs.Run        `json:"call"` // the progress of the call itself
}

// due is when the call is to be made.
func (h *owedHook) due() time.Time {
	if h.Call.RetryAt.IsZero() {
		return h.Told.At
	}
	return h.Call.RetryAt
}

// loadHooks reads the calls that are owed, and finds the one that is under way.
func (l *Job) loadHooks(ctx context.Context) error {
	for t, x := range l.e.open {
		if x.Hook {
			l.calling = t
		}
	}
	if l.meta.Hooks == 0 {
		return nil
	}
	for item, err := range l.st.Storage().List(ctx, object.ListOptions{Prefix: hookPrefix}) {
		if err != nil {
			return err
		}
		h := owedHook{key: item.Key}
		if err := json.Unmarshal(item.Value, &h); err != nil {
			return fmt.Errorf("%w: %s: call of OnExhausted: %w", storage.ErrCorrupt, l.st.ID(), err)
		}
		l.hooks = append(l.hooks, h)
	}
	return nil
}

// owe stores a call of OnExhausted for the run that x was the last execution of.
func (l *Job) owe(ctx context.Context, x Execution, out Outcome) error {
	h := owedHook{
		key: hookPrefix + string(x.Token), // tokens are in the order of their executions
		Told: jobs.Exhaustion{
			Key: x.Key + "/exhausted/" + string(x.Token), Run: x.Run.Number, Attempts: x.Run.Attempt,
			Reason: out.Reason, Error: Shorten(out.Err.Error()), Stack: out.Stack(), At: l.e.Now(),
		},
		Call: jobs.Run{Number: 1, Scheduled: l.e.Now()},
	}
	if err := l.st.Storage().Put(ctx, h.key, h); err != nil {
		return err
	}
	l.hooks = append(l.hooks, h)
	return nil
}

// nextHook is when the next call of OnExhausted is due; zero: none is, for example because
// one is under way. They are made
// one at a time, in order.
func (l *Job) nextHook() time.Time {
	if l.o.OnExhausted == nil || l.calling != "" || len(l.hooks) == 0 {
		return time.Time{}
	}
	return l.hooks[0].due()
}

// callHook begins the call of OnExhausted that is due. The call is an execution like that
// of a run, so that a crash repeats it and a lease guards it. It has another key than the
// run, because the run may have used its own for a service outside.
func (l *Job) callHook(ctx context.Context, now time.Time) error {
	at := l.nextHook()
	if at.IsZero() || at.After(now) {
		return nil
	}
	h := l.hooks[0]
	told := h.Told
	told.ID, told.Caller = l.st.Name(), l.st
	x, err := l.e.Begin(ctx, Spec{
		Subject: hookSubject + strings.TrimPrefix(h.key, hookPrefix), Run: h.Call, Key: told.Key, Hook: true,
		Work: func(ctx context.Context, _ Execution) (Result, error) { return Result{}, l.o.OnExhausted(ctx, &told) },
	})
	l.calling = cmp.Or(x.Token, l.calling)
	return err
}

// hookEnded stores a call that is to be made again, or forgets it. A job that was to
// be purged is gone with the last of them.
func (l *Job) hookEnded(ctx context.Context, out Outcome) error {
	l.calling = ""
	if len(l.hooks) == 0 {
		return fmt.Errorf("%w: %s: a call of OnExhausted ended and was not owed", storage.ErrCorrupt, l.st.ID())
	}
	h := l.hooks[0]
	if out.Waits() {
		h.Call = out.Run
		l.hooks[0] = h
		return l.st.Storage().Put(ctx, h.key, h)
	}
	if err := l.st.Storage().Remove(ctx, h.key); err != nil {
		return err
	}
	l.hooks = l.hooks[1:]
	if l.meta.Purging && len(l.hooks) == 0 {
		return l.terminate(ctx, l.meta.StopReason)
	}
	return l.put(ctx, l.meta)
}

// TaskName is the name of a subject in logs; see Namer.
func (l *Job) TaskName(subject string) string {
	if strings.HasPrefix(subject, hookSubject) {
		return "OnExhausted"
	}
	return subject
}
