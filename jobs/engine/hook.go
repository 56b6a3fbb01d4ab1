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

// retentionRetry is that for the hooks of a Retention.
var retentionRetry = jobs.Retry{MaxAttempts: 5, Backoff: hookRetry.Backoff}

const (
	hookPrefix = "h/" // begins the keys of calls that are owed

	// The names of hooks. With a stroke they begin the subjects of their executions.
	onExhausted = "OnExhausted"
	onStale     = "OnStale"
	onDelete    = "OnDelete"

	// maxHooks is how many calls may be owed: beyond it no further run begins, so
	// that a hook which fails for long does not fill the store.
	maxHooks = 16
)

// owedHook is a call of a hook that is owed, or under way. It is stored until it is
// over.
type owedHook struct {
	key  string          // where it is stored
	Of   string          `json:"of,omitempty"` // onStale or onDelete; empty: onExhausted
	Told jobs.Exhaustion `json:"told"`         // of a hook of the Retention: its Key, and At is Meta.EndedAt
	Call jobs.Run        `json:"call"`         // the progress of the call itself
}

// name is that of the hook.
func (h *owedHook) name() string { return cmp.Or(h.Of, onExhausted) }

// retryOf is how the call of a hook is tried again.
func retryOf(subject string) jobs.Retry {
	if of, _, _ := strings.Cut(subject, "/"); of == onStale || of == onDelete {
		return retentionRetry
	}
	return hookRetry
}

// due is when the call is to be made.
func (h *owedHook) due() time.Time {
	if h.Call.RetryAt.IsZero() {
		return h.Call.Scheduled
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
			return fmt.Errorf("%w: %s: call of a hook: %w", storage.ErrCorrupt, l.st.ID(), err)
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
	return l.oweHook(ctx, h)
}

// oweRetired stores a call of a hook of the Retention. The caller stores the metadata.
func (l *Job) oweRetired(ctx context.Context, of string) error {
	token := l.e.newToken()
	return l.oweHook(ctx, owedHook{
		key: hookPrefix + string(token), Of: of,
		Told: jobs.Exhaustion{Key: l.st.ID().String() + "/" + l.meta.CreationID + "/" + of + "/" + string(token), At: l.meta.EndedAt},
		Call: jobs.Run{Number: 1, Scheduled: l.e.Now()},
	})
}

func (l *Job) oweHook(ctx context.Context, h owedHook) error {
	if err := l.st.Storage().Put(ctx, h.key, h); err != nil {
		return err
	}
	l.hooks = append(l.hooks, h)
	return nil
}

// nextHook is when the next call of a hook is due; zero: none is, for example because
// one is under way. They are made
// one at a time, in order.
func (l *Job) nextHook() time.Time {
	if l.calling != "" || len(l.hooks) == 0 || l.hooks[0].Of == "" && l.o.OnExhausted == nil {
		return time.Time{}
	}
	return l.hooks[0].due()
}

// callHook begins the call of a hook that is due. The call is an execution like that
// of a run, so that a crash repeats it and a lease guards it. It has another key than the
// run, because the run may have used its own for a service outside. A call that its job
// does not want any more is forgotten.
func (l *Job) callHook(ctx context.Context, now time.Time) error {
	at := l.nextHook()
	if at.IsZero() || at.After(now) {
		return nil
	}
	h := l.hooks[0]
	if !l.wants(h) {
		if err := l.forgetHook(ctx); err != nil {
			return err
		}
		return l.put(ctx, l.meta)
	}
	x, err := l.e.Begin(ctx, Spec{
		Subject: h.name() + "/" + strings.TrimPrefix(h.key, hookPrefix), Run: h.Call, Key: h.Told.Key, Hook: true, Work: l.hookWork(h),
	})
	l.calling = cmp.Or(x.Token, l.calling)
	return err
}

// hookWork is the call of a hook. One of a Retention that has lost its hook calls nothing.
func (l *Job) hookWork(h owedHook) Work {
	if h.Of == "" {
		told := h.Told
		told.ID, told.Caller = l.st.Name(), l.st
		return func(ctx context.Context, _ Execution) (Result, error) { return Result{}, l.o.OnExhausted(ctx, &told) }
	}
	hook := l.o.Retention.OnStale
	if h.Of == onDelete {
		hook = l.o.Retention.OnDelete
	}
	m := &l.meta
	told := jobs.Retired{
		Caller: l.st, ID: l.st.Name(), Key: h.Told.Key,
		Status: m.Status, EndedAt: m.EndedAt, Reason: m.StopReason, Error: m.LastError,
	}
	return func(ctx context.Context, _ Execution) (Result, error) {
		if hook == nil {
			return Result{}, nil
		}
		return Result{}, hook(ctx, &told)
	}
}

// forgetHook removes the first call that is owed.
func (l *Job) forgetHook(ctx context.Context) error {
	if err := l.st.Storage().Remove(ctx, l.hooks[0].key); err != nil {
		return err
	}
	l.hooks = l.hooks[1:]
	return nil
}

// hookEnded stores a call that is to be made again, or forgets it. A job that was to
// be purged is gone with the last of them.
func (l *Job) hookEnded(ctx context.Context, out Outcome) error {
	l.calling = ""
	if len(l.hooks) == 0 {
		return fmt.Errorf("%w: %s: a call of a hook ended and was not owed", storage.ErrCorrupt, l.st.ID())
	}
	h := l.hooks[0]
	if out.Waits() && l.wants(h) {
		h.Call = out.Run
		l.hooks[0] = h
		return l.st.Storage().Put(ctx, h.key, h)
	}
	if err := l.forgetHook(ctx); err != nil {
		return err
	}
	if h.Of != "" {
		return l.retentionCalled(ctx, h, out)
	}
	if l.meta.Purging && len(l.hooks) == 0 {
		return l.terminate(ctx, l.meta.StopReason)
	}
	return l.put(ctx, l.meta)
}

// TaskName is the name of a subject in logs; see Namer.
func (l *Job) TaskName(subject string) string {
	switch of, _, _ := strings.Cut(subject, "/"); of {
	case onExhausted, onStale, onDelete:
		return of
	}
	return subject
}
