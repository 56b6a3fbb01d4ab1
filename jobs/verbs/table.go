package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
)

// ErrUnknown says that a job type has no verb, or no view, of a name. The text of the error lists
// those that it has.
var ErrUnknown = errors.New("verbs: no such name")

// Described is a job type that describes its verbs and views: each *Job, *Pool and *Workflow.
type Described interface {
	object.Definition
	// Name returns the name of the class.
	Name() string
	// Verbs returns the table of the job type.
	Verbs() *Table
}

// Table is the verbs and views of one definition of a job type. It never changes, so all
// goroutines may use it.
type Table struct {
	class, kind  string
	verbs, views []Verb
	dead         *Dead // nil: the type has no dead letters
}

// NewTable makes a table. class is the name of the definition, and kind that of its job type, for
// example continuous. No two verbs have one name, and no two views.
func NewTable(class, kind string, verbs, views []Verb) *Table {
	return &Table{class: class, kind: kind, verbs: verbs, views: views}
}

// Class returns the name of the definition.
func (t *Table) Class() string { return t.class }

// Kind returns the name of the job type, for example workerpool.
func (t *Table) Kind() string { return t.kind }

// Verbs describes the verbs, in the order of the type.
func (t *Table) Verbs() []Description { return described(t.verbs) }

// Views describes the views, in the order of the type.
func (t *Table) Views() []Description { return described(t.views) }

func described(all []Verb) []Description {
	out := make([]Description, len(all))
	for i, v := range all {
		out[i] = v.Description
	}
	return out
}

// Do runs a verb on a job, with an argument in JSON; empty bytes or null stand for none. It returns
// the answer in JSON, or nothing if the verb has none. from is a *object.Host, or another caller
// that the typed method takes. With a Host the effect is durable when Do returns.
//
// It returns ErrUnknown for a name that is no verb, a jobs.ErrInvalid for an argument or an id that
// the verb does not take, with the form that it takes, and otherwise the errors of the typed
// method. With ErrUnknown and ErrInvalid nothing has changed.
func (t *Table) Do(ctx context.Context, from object.Caller, id, verb string, arg []byte) ([]byte, error) {
	return t.run(ctx, from, "verb", t.verbs, id, verb, arg, nil)
}

// DoKeyed is Do for a server with several clients: keys sees the idempotency keys of the argument
// first, so that it can make those of two clients differ. Its error is returned, wrapped.
func (t *Table) DoKeyed(ctx context.Context, from object.Caller, id, verb string, arg []byte, keys Keys) ([]byte, error) {
	return t.run(ctx, from, "verb", t.verbs, id, verb, arg, keys)
}

// View asks a view of a job, as Do runs a verb. It changes nothing.
func (t *Table) View(ctx context.Context, from object.Caller, id, view string, arg []byte) ([]byte, error) {
	return t.run(ctx, from, "view", t.views, id, view, arg, nil)
}

// run runs one of the verbs, or one of the views.
func (t *Table) run(ctx context.Context, from object.Caller, what string, all []Verb, id, name string, arg []byte, keys Keys) ([]byte, error) {
	at := slices.IndexFunc(all, func(v Verb) bool { return v.Name == name })
	if at < 0 {
		return nil, t.unknown(what, all, name)
	}
	v := &all[at]
	err := v.accepts(id, arg)
	var answer []byte
	if err == nil {
		answer, err = v.run(ctx, from, id, arg, keys)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s of %s: %w%s", what, name, t.class, err, v.form(err))
	}
	return answer, nil
}

// accepts returns why the verb does not take an id, or the lack or presence of an argument.
func (v *Verb) accepts(id string, arg []byte) error {
	switch {
	case v.Whole && id != "":
		return fmt.Errorf("%w: it is of the whole definition: leave the id %q out", jobs.ErrInvalid, id)
	case !v.Whole && id == "":
		return fmt.Errorf("%w: it needs an id", jobs.ErrInvalid)
	case v.Argument == "" && !absent(arg):
		return fmt.Errorf("%w: it takes no argument", jobs.ErrInvalid)
	case v.Argument != "" && !v.Description.Optional && absent(arg):
		return fmt.Errorf("%w: its argument is missing", jobs.ErrInvalid)
	}
	return nil
}

// form tells the form of the argument after an error that may be about it.
func (v *Verb) form(err error) string {
	if v.Argument == "" || !errors.Is(err, jobs.ErrInvalid) {
		return ""
	}
	return "; the argument is " + v.Argument
}

// unknown is the error of a name that is not there.
func (t *Table) unknown(what string, all []Verb, name string) error {
	names := make([]string, len(all))
	for i, v := range all {
		names[i] = v.Name
	}
	return fmt.Errorf("%w: %s %s has no %s %q; it has %s", ErrUnknown, t.kind, t.class, what, name, strings.Join(names, ", "))
}
