package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"

	jobadmin "github.com/holdfast-dev/holdfast/admin"
	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
)

// operations are the job types of Config.Jobs, as the routes of jobs, pools and dead letters use
// them.
type operations struct {
	admin  *jobadmin.Admin
	tables map[string]*verbs.Table // by class
	key    [32]byte                // of this process; see seal
}

// newOperations makes the operations of a host.
func newOperations(host *object.Host, types []verbs.Described) *operations {
	o := &operations{tables: make(map[string]*verbs.Table)}
	definitions := make([]object.Definition, len(types))
	for i, d := range types {
		definitions[i], o.tables[d.Name()] = d, d.Verbs()
	}
	o.admin = jobadmin.Live(host, definitions...)
	_, _ = rand.Read(o.key[:]) // it never fails
	return o
}

// Names of the tables of worker pools.
const (
	poolKind    = "workerpool"
	enqueueVerb = "enqueue"
	batchVerb   = "enqueueBatch"
	drainVerb   = "drain" // it waits for the end of tasks
)

// waitView is the view of each table that waits for the end of a job or a task.
const waitView = "wait"

// table returns the table of a class of Config.Jobs: of a pool, or of a job type of another kind.
func (o *operations) table(class string, pool bool) (*verbs.Table, error) {
	t := o.tables[class]
	if t == nil || (t.Kind() == poolKind) != pool {
		return nil, fmt.Errorf("%w: %q", jobadmin.ErrNoType, class)
	}
	return t, nil
}

// described returns the description of a verb or a view.
func described(t *verbs.Table, all []verbs.Description, name string) (verbs.Description, error) {
	i := slices.IndexFunc(all, func(d verbs.Description) bool { return d.Name == name })
	if i < 0 {
		return verbs.Description{}, fmt.Errorf("%w: %s %s has no %q", verbs.ErrUnknown, t.Kind(), t.Class(), name)
	}
	return all[i], nil
}

// roles are the roles that the tables name, but for verbs.Call, which is a grant.
var roles = map[verbs.Role]auth.Role{verbs.Viewer: auth.Viewer, verbs.Reader: auth.Reader, verbs.Operator: auth.Operator}

// may refuses a verb or a view that the principal may not use on the job, or the task, with an id. A
// principal without the grant gets the same problem whether there is such a job or not.
func (x *exchange) may(d verbs.Description, class, id string) error {
	if d.Role == verbs.Call {
		if !x.who.MayCall(class, id, d.Name) {
			return refuses(notFound())
		}
		return nil
	}
	need, ok := roles[d.Role]
	if !ok {
		need = auth.Admin // a role that a later table may have
	}
	if err := x.needs(need); err != nil {
		return err
	}
	return x.sees(id)
}

// find returns a verb, or a view, that the principal may use on the job, or the task, with an id, and
// the table that has it. A principal that may not know of the class gets one problem for all
// refusals, so that it does not learn which job types and verbs there are.
func (x *exchange) find(of func(*verbs.Table) []verbs.Description, name string, pool bool, class, id string) (*verbs.Table, verbs.Description, error) {
	t, err := x.operations.table(class, pool)
	var d verbs.Description
	if err == nil {
		d, err = described(t, of(t), name)
	}
	if err == nil {
		err = x.may(d, class, id)
	}
	if err != nil && !x.seesAll() && !x.who.HasGrant(class) {
		hidden := notFound()
		hidden.refuses = problemOf(err).isRefusal()
		err = hidden
	}
	return t, d, err
}

// do runs a verb that the principal may use. The verb goes on when the client has left, so that a verb of
// many partitions is not cut in two; Config.Timeout ends it. The wait of a drain ends with Serve too.
func (x *exchange) do(t *verbs.Table, d verbs.Description, id string, arg []byte) ([]byte, error) {
	timeout, err := x.timeout()
	if err != nil {
		return nil, err
	}
	header, err := x.key()
	if err != nil {
		return nil, err
	}
	within := context.WithTimeout
	if t.Kind() == poolKind && d.Name == drainVerb {
		leave, err := x.poll()
		if err != nil {
			return nil, err
		}
		defer leave()
		within = x.untilEnd
	}
	ctx, cancel := within(context.WithoutCancel(x.r.Context()), timeout)
	defer cancel()
	keyed := false // with a key for each task or signal, so that a repeat does no harm
	var raw []byte
	act := func() (err error) {
		raw, err = t.DoKeyed(ctx, x.host, id, d.Name, arg, func(keys []*string) error {
			err := x.ownKeys(d, header, keys)
			keyed = len(keys) > 0 && !slices.ContainsFunc(keys, func(key *string) bool { return *key == "" })
			return err
		})
		return x.verbProblem(ctx, d, keyed, err)
	}
	if d.Role == verbs.Call { // of a program, which has a grant for it
		err := act()
		return raw, err
	}
	e := auditEntry{Verb: d.Name, Class: t.Class(), Object: id}
	if t.Kind() == poolKind {
		e.Object, e.Part = "", id
	}
	err = x.audited(e, act)
	return raw, err
}

// verbKey is the header Idempotency-Key of a verb.
var verbKey = param{name: "Idempotency-Key", help: "1 to 512 bytes, in place of the key in the argument of enqueue or signal: for a day, a repeat with the same key adds nothing; other verbs refuse it"}

// ownKeys puts the header Idempotency-Key, if there is one, in the place of the key in the argument of a
// verb. Then it makes the keys those of the principal, so that two principals never meet in one task.
func (x *exchange) ownKeys(d verbs.Description, header string, keys []*string) error {
	switch {
	case header == "":
	case d.Name == batchVerb:
		return badRequest("a batch takes no header Idempotency-Key: each of its tasks has a key of its own in the body")
	case len(keys) != 1:
		return badRequest("the verb " + d.Name + " takes no header Idempotency-Key")
	case *keys[0] != "":
		return badRequest("there is a key in the header Idempotency-Key and in the body")
	default:
		*keys[0] = header
	}
	for _, key := range keys {
		switch {
		case len(*key) > maxKeyBytes:
			return badRequest(fmt.Sprintf("an idempotency key has %d bytes, at most %d are allowed", len(*key), maxKeyBytes))
		case *key != "":
			*key = storedKey(x.who.ID, *key)
		}
	}
	return nil
}

// view asks a view that the principal may use. It ends with the client, because it changes nothing.
func (x *exchange) view(t *verbs.Table, d verbs.Description, id string, arg []byte) ([]byte, error) {
	if d.Name == waitView {
		leave, err := x.poll()
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	ctx, cancel, err := x.within()
	if err != nil {
		return nil, err
	}
	defer cancel()
	raw, err := t.View(ctx, x.host, id, d.Name, arg)
	return raw, x.verbProblem(ctx, d, true, err)
}

// bounded returns a context for a wait that may change something: it ends with the client and with the time of
// the request. Serve lets it finish.
func (x *exchange) bounded() (context.Context, context.CancelFunc, error) {
	timeout, err := x.timeout()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(x.r.Context(), timeout)
	return ctx, cancel, nil
}

// within returns a context for a wait that changes nothing: it ends with the client, with the time of the
// request and with Serve.
func (x *exchange) within() (context.Context, context.CancelFunc, error) {
	timeout, err := x.timeout()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := x.untilEnd(x.r.Context(), timeout)
	return ctx, cancel, nil
}

// verbProblem makes a problem of the error of a verb or a view. An error of a call that no rule knows is
// that of the job type, for example of the Validate of an input. A verb of a whole pool acts on one
// partition after another, so an error may leave some of it done; enqueue alone is one turn. safe says that
// a repeat does no harm, also after an outcome that is unknown.
func (x *exchange) verbProblem(ctx context.Context, d verbs.Description, safe bool, err error) error {
	if err == nil {
		return nil
	}
	var refused *problem
	if errors.As(err, &refused) { // by ownKeys
		return refused
	}
	p := ruled(err, rules, jobRules)
	switch {
	case p != nil:
	case d.Role == verbs.Call && ctx.Err() == nil:
		p = &problem{Type: "refused", Title: "The job type has refused it.", Status: http.StatusUnprocessableEntity, Detail: err.Error(), Outcome: none}
	default:
		return err
	}
	if d.Whole && d.Name != enqueueVerb && !errors.Is(err, jobs.ErrInvalid) && !errors.Is(err, verbs.ErrUnknown) {
		p.Outcome = unknown
	}
	p.Retryable = p.Retryable && (safe || p.Outcome == none)
	return p
}

// target is an object that the parts of a path name.
func (x *exchange) target(class, name string) storage.ID {
	return storage.ID{Class: x.path(class), Name: x.path(name)}
}
