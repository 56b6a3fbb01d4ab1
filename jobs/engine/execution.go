package engine

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/recovery"
)

// Token names one execution among all of an object, past ones included. A result is stored
// only with the token of an execution that is open (J8), so that work which was fenced
// off, for example because its lease had ended, changes nothing.
type Token string

// Execution is one try at one run, as it is stored while it is open.
type Execution struct {
	Token   Token
	Subject string   // the thing that is executed: empty for the job itself, else for example a task's id
	Key     string   // outside idempotency key, the same in every execution of the run
	Run     jobs.Run // this execution counted
	Epoch   uint64   // number of the opening of the store that began it
	Began   time.Time
	Lease   time.Time // when its next sign of life is due
	Outside bool      // its holder is a caller, not a routine of this host
	Hook    bool      // it calls a hook; see Spec
	// Held says that its work was held back when this was stored, because crashes in
	// a row have cut off the run. See object.Driver.StartSuspect.
	Held bool
}

// ExecutionPrefix begins the keys of open executions, for tools that read the rows of an object; see
// DecodeExecution.
const ExecutionPrefix = "x/"

func executionKey(t Token) string { return ExecutionPrefix + string(t) }

// execution is an open execution as its engine knows it.
type execution struct {
	*Execution                 // never changed, since its work reads it: see extend
	routine    *routine        // of its work, if this instance began it; else nil
	action     recovery.Action // if it has no routine: the action of its recovery, with its time
}

// record is the name of x in the host's records about crashes. It is the same for each
// execution of one run of one subject.
func (x *Execution) record() string { return x.Subject + " " + x.Key }

// extend moves the end of the lease.
func (x *execution) extend(to time.Time) {
	extended := *x.Execution
	extended.Lease = to
	x.Execution = &extended
}

// checkAt is when the engine must look at x again.
func (x *execution) checkAt() time.Time {
	if x.routine != nil {
		return x.routine.renewAt
	}
	return x.action.At
}

// note has the engine look at x in time. Engine.checkAt may be earlier than need
// be: it moves back only when it is reached, so that the alarm does not move
// with each execution that begins or ends.
func (e *Engine) note(x *execution) { e.checkAt = earliest(e.checkAt, x.checkAt()) }

// alive reports whether the work of x runs in this instance.
func (x *execution) alive() bool { return x.routine != nil }

// read reads the rows of the executions that are open.
func (e *Engine) read(ctx context.Context) error {
	for item, err := range e.st.Storage().List(ctx, object.ListOptions{Prefix: ExecutionPrefix}) {
		if err != nil {
			return err
		}
		x, err := DecodeExecution(item.Key, item.Value)
		if err != nil {
			return err
		}
		e.open[x.Token] = &execution{Execution: &x}
	}
	if len(e.open) > 0 {
		e.mark = oldMark
	}
	return nil
}

// save stores x.
func (e *Engine) save(ctx context.Context, x *execution) error {
	var room [256]byte // enough for most, which then need no allocation
	return e.st.Storage().PutBytes(ctx, executionKey(x.Token), x.append(room[:0]))
}

// remove deletes the row of x. Work that is still running for it is fenced off, because
// its token is not open any more.
func (e *Engine) remove(ctx context.Context, x *execution) error {
	if err := e.st.Storage().Remove(ctx, executionKey(x.Token)); err != nil {
		return err
	}
	delete(e.open, x.Token)
	if len(e.open) == 0 {
		e.checkAt = time.Time{}
	}
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

// newToken returns a token that no other execution of the store has. Tokens are
// in the order of their making, so that the rows of executions that begin
// together lie together.
func (e *Engine) newToken() Token {
	const digits = 16
	b := append(make([]byte, 0, 2*digits), "0000000000000000"...)
	b = strconv.AppendUint(b, e.st.Driver().NextSequence(), digits)
	return Token(b[len(b)-digits:])
}
