package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
)

// Role is the kind of caller for which a verb or a view is meant.
type Role string

const (
	// Viewer reads names, counts and statuses: neither values nor the errors of handlers.
	Viewer Role = "viewer"
	// Reader reads values and the errors of handlers too.
	Reader Role = "reader"
	// Operator uses the verbs that keep jobs in order, for example pause and retry.
	Operator Role = "operator"
	// Call is a program that gives work to jobs, for example by start and signal. It is a
	// grant of its own: an operator need not have it.
	Call Role = "call"
)

// Effect tells how far the effect of a verb can be taken back, so that a program for people knows when
// to ask first.
type Effect string

const (
	// Harmless is a verb that another one takes back, or that only lets one piece of work begin which waits
	// or is dead.
	Harmless Effect = "harmless"
	// Lasting is a verb that no other takes back, and that takes nothing away.
	Lasting Effect = "lasting"
	// Final is a verb that ends work or deletes rows, and that no other takes back.
	Final Effect = "final"
)

// Description tells of one verb or view, for help texts, forms and checks of access. Its JSON is
// for tools, and fields may be added to it.
type Description struct {
	Name string `json:"name"`
	Role Role   `json:"role"`
	// Whole says that the verb is of the whole definition, for example of a pool, and takes
	// the empty id. All others take the id of a job, or of a task.
	Whole bool `json:"whole,omitempty"`
	// Argument and Answer show the form of the JSON, for example {"reason": "text"}. They are
	// empty if there is none.
	Argument string `json:"argument,omitempty"`
	Answer   string `json:"answer,omitempty"`
	// Optional says that the argument may be left out.
	Optional bool `json:"optional,omitempty"`
	// Effect is empty for a view, and for a verb whose type does not tell: ask before that one.
	Effect Effect `json:"effect,omitempty"`
	Help   string `json:"help"` // one line
}

// Verb is a verb or a view with the method that it runs. New makes one.
type Verb struct {
	Description
	run func(ctx context.Context, from object.Caller, id string, arg []byte, keys Keys) ([]byte, error)
}

// Keys sees, and may change, the idempotency keys in the argument of a verb before the verb runs: one
// for each task of a batch. A key that is empty is not given, and there is none for a verb that
// takes no key. An error ends the verb, and nothing has changed.
type Keys func(keys []*string) error

// keyed is an argument that has idempotency keys.
type keyed interface{ IdempotencyKeys() []*string }

// see shows the keys of an argument, which is a pointer.
func (k Keys) see(arg any) error {
	if k == nil {
		return nil
	}
	var all []*string
	if a, ok := arg.(keyed); ok {
		all = a.IdempotencyKeys()
	}
	return k(all)
}

// None stands for no argument or no answer.
type None struct{}

// New makes a verb, or a view, of a typed method. Its argument is the JSON of an A, which must be
// given, and its answer the JSON of an R. If the argument has idempotency keys, *A has a method
// IdempotencyKeys() []*string, for DoKeyed.
func New[A, R any](name string, role Role, help string, call func(ctx context.Context, from object.Caller, id string, arg A) (R, error)) Verb {
	return NewUntyped(name, role, help, reflect.TypeFor[A](), reflect.TypeFor[R](), func(ctx context.Context, from object.Caller, id string, read func(arg any) error) (any, error) {
		var arg A
		if err := read(&arg); err != nil {
			return nil, err
		}
		return call(ctx, from, id, arg)
	})
}

// NewUntyped is New for the authors of job types with type parameters, because the compiler makes New again for each A and R. call
// passes read a pointer to its argument, of type arg, and returns the error of read.
//
//go:noinline
func NewUntyped(name string, role Role, help string, arg, answer reflect.Type, call func(ctx context.Context, from object.Caller, id string, read func(arg any) error) (any, error)) Verb {
	v := Verb{Description: Description{Name: name, Role: role, Argument: shapeOf(arg), Answer: shapeOf(answer), Help: help}}
	v.run = func(ctx context.Context, from object.Caller, id string, raw []byte, keys Keys) ([]byte, error) {
		answer, err := call(ctx, from, id, func(arg any) error { return keys.read(raw, arg) })
		if err != nil {
			return nil, err
		}
		return encode(answer)
	}
	return v
}

// read reads an argument into a pointer, and shows its keys.
func (k Keys) read(raw []byte, arg any) error {
	if err := decode(raw, arg); err != nil {
		return err
	}
	return k.see(arg)
}

// Optional returns the verb with an argument that may be left out. Then it is the zero value.
func (v Verb) Optional() Verb {
	v.Description.Optional = true
	return v
}

// As returns the verb with its effect.
func (v Verb) As(e Effect) Verb {
	v.Effect = e
	return v
}

// OfWhole returns the verb as one of the whole definition.
func (v Verb) OfWhole() Verb {
	v.Whole = true
	return v
}

// Plain adapts a method without an argument and an answer for New.
func Plain(call func(ctx context.Context, from object.Caller, id string) error) func(context.Context, object.Caller, string, None) (None, error) {
	return func(ctx context.Context, from object.Caller, id string, _ None) (None, error) {
		return None{}, call(ctx, from, id)
	}
}

// Ask adapts a method without an argument for New.
func Ask[R any](call func(ctx context.Context, from object.Caller, id string) (R, error)) func(context.Context, object.Caller, string, None) (R, error) {
	return func(ctx context.Context, from object.Caller, id string, _ None) (R, error) {
		return call(ctx, from, id)
	}
}

// Reason is the argument of a verb that takes a reason.
type Reason struct {
	Reason string `json:"reason,omitempty"`
}

// Because adapts a method with a reason, and without an answer, for New.
func Because(call func(ctx context.Context, from object.Caller, id, reason string) error) func(context.Context, object.Caller, string, Reason) (None, error) {
	return func(ctx context.Context, from object.Caller, id string, why Reason) (None, error) {
		return None{}, call(ctx, from, id, why.Reason)
	}
}

// absent reports whether raw stands for no argument.
func absent(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || string(raw) == "null"
}

// Decode reads an argument as the verbs of New do. Its error is a jobs.ErrInvalid. No bytes, and null,
// are the zero value; a panic of the type's own decoder is an error.
func Decode[A any](raw []byte) (arg A, err error) {
	err = decode(raw, &arg)
	return arg, err
}

// decode is Decode into a pointer.
func decode(raw []byte, arg any) error {
	if absent(raw) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := guarded(func() error { return d.Decode(arg) })
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = fmt.Errorf("more follows after the JSON value")
		}
	}
	if err != nil {
		err = fmt.Errorf("%w: argument: %w", jobs.ErrInvalid, err)
	}
	return err
}

// encode is the JSON of an answer; nil for None.
func encode(answer any) (raw []byte, err error) {
	if answer == (None{}) {
		return nil, nil
	}
	err = guarded(func() (err error) {
		raw, err = json.Marshal(answer)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("encode the answer as JSON: %w", err)
	}
	return raw, nil
}

// guarded runs user code that encodes or decodes. A panic is an error.
func guarded(fn func() error) error {
	return seam.Guard(fn, func(p *seam.PanicError) error { return p })
}
