package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
)

// Token names one execution among all of an object, past ones too. What an
// execution wants to store is taken only with the token of one that is open (J8).
type Token string

// Execution is one try at one run, as it is stored while it is open.
type Execution struct {
	Token   Token     `json:"-"`
	Subject string    `json:"subject,omitempty"` // what is executed: empty for the job itself, else such as a task's id
	Key     string    `json:"key,omitempty"`     // outside idempotency key, the same in every execution of the run
	Run     Run       `json:"run"`               // this execution counted
	Epoch   uint64    `json:"epoch"`             // number of the opening of the store that began it
	Began   time.Time `json:"began"`
	Lease   time.Time `json:"lease"`             // when it is to show life again
	Outside bool      `json:"outside,omitempty"` // its holder is a caller, not a work of this host
}

// executionPrefix begins the keys of open executions.
const executionPrefix = "x/"

func executionKey(t Token) string { return executionPrefix + string(t) }

// execution is an open execution as its engine knows it.
type execution struct {
	Execution
	work   *work           // its work, if this activation began it; else nil
	action recovery.Action // what to do about it, and when, if it has no work
}

// checkAt is when the engine must look at x again.
func (x *execution) checkAt() time.Time {
	if x.work != nil {
		return x.work.renewAt
	}
	return x.action.At
}

// alive reports whether the work of x runs in this activation.
func (x *execution) alive() bool { return x.work != nil }

// load reads the executions that are open.
func (e *Engine) load(ctx context.Context) error {
	for item, err := range e.st.Storage().List(ctx, object.ListOptions{Prefix: executionPrefix}) {
		if err != nil {
			return err
		}
		x := &execution{Execution: Execution{Token: Token(strings.TrimPrefix(item.Key, executionPrefix))}}
		if err := json.Unmarshal(item.Value, &x.Execution); err != nil {
			return fmt.Errorf("jobs: %s: execution %s: %w", e.st.ID(), x.Token, err)
		}
		e.open[x.Token] = x
	}
	e.marked = len(e.open) > 0
	return nil
}

// save stores x.
func (e *Engine) save(ctx context.Context, x *execution) error {
	value, err := json.Marshal(x.Execution)
	if err != nil {
		return err
	}
	return e.st.Storage().PutBytes(ctx, executionKey(x.Token), value)
}

// forget removes x, and fences off whoever still works on it.
func (e *Engine) forget(ctx context.Context, x *execution) error {
	if err := e.st.Storage().Remove(ctx, executionKey(x.Token)); err != nil {
		return err
	}
	delete(e.open, x.Token)
	return nil
}

// sorted returns the open executions in the order of their begin.
func (e *Engine) sorted() []*execution {
	all := make([]*execution, 0, len(e.open))
	for _, x := range e.open {
		all = append(all, x)
	}
	slices.SortFunc(all, func(a, b *execution) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Token, b.Token))
	})
	return all
}

// newToken returns a token that no other execution of the store has.
func (e *Engine) newToken() Token {
	return Token(fmt.Sprintf("%x-%016x", e.st.Epoch(), e.st.Seams().Rand.Uint64()))
}
