package object

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// ClassOptions shape the objects of one class. The zero value is fit for
// production.
type ClassOptions struct {
	// IdleAfter is how long an object stays in memory without an event.
	// Default: the host's.
	IdleAfter time.Duration
	// MailboxLimit is how many calls may wait for one object; the next is
	// refused with ErrOverloaded. Default: 1024.
	MailboxLimit int
	// MailboxAge is how long the first waiting call may have waited when
	// another comes, which is then refused with ErrOverloaded. Default: 30 s.
	MailboxAge time.Duration
	// BlockLimit bounds the constructor and BlockConcurrencyWhile. Default: 30 s.
	BlockLimit time.Duration
	// HoldLimit is how long a turn may hold its object before the log and the
	// metrics tell of it, once, with its method and stack: it may wait for what
	// needs the object. It goes on. Negative: no limit. Default: 30 s.
	HoldLimit time.Duration
	// AlarmRetry says when a failed alarm is tried again. Default: after 2, 4,
	// 8, 16, 32 and 64 s, each plus 0 to 25 %.
	AlarmRetry alarm.Retry
	// MaxAlarmCrashes is how many crashes an alarm may be charged with before it
	// becomes a dead letter. A crash is charged to an alarm that ran while no other
	// suspect did, after the process had lived well without it. A crash with a cause
	// outside is charged to no alarm. Default: 4.
	MaxAlarmCrashes int
	// Works bounds the works of the class that run at a time in a host, and how often
	// they start, if they are of a job type that takes permits for them (see
	// State.TakePermit). Default: no limit.
	Works WorkLimit
	// OnDeadLetter is called, beside the turns, for each alarm that becomes a
	// dead letter, once the letter is durable. It is called once: if the process
	// dies before or during the call, the letter is in Host.DeadLetters all the same.
	OnDeadLetter func(ctx context.Context, d DeadLetter)
}

func (o ClassOptions) withDefaults(h *Options) ClassOptions {
	if o.IdleAfter == 0 {
		o.IdleAfter = h.IdleAfter
	}
	if o.MailboxLimit == 0 {
		o.MailboxLimit = 1024
	}
	if o.MailboxAge == 0 {
		o.MailboxAge = 30 * time.Second
	}
	if o.BlockLimit == 0 {
		o.BlockLimit = 30 * time.Second
	}
	if o.HoldLimit == 0 {
		o.HoldLimit = 30 * time.Second
	}
	if o.MaxAlarmCrashes == 0 {
		o.MaxAlarmCrashes = 4
	}
	return o
}

func (o ClassOptions) validate() error {
	return cmp.Or(
		notNegative("IdleAfter", o.IdleAfter), notNegative("MailboxAge", o.MailboxAge), notNegative("BlockLimit", o.BlockLimit),
		notNegative("MailboxLimit", o.MailboxLimit), notNegative("MaxAlarmCrashes", o.MaxAlarmCrashes),
		o.AlarmRetry.Validate(), o.Works.Validate(),
	)
}

// notNegative is an error that names an option which is less than zero.
func notNegative[T int | time.Duration](name string, v T) error {
	if v < 0 {
		return fmt.Errorf("%s must not be negative: %v", name, v)
	}
	return nil
}

// Definition is what a host is opened with: a *Class, or a type that embeds one.
type Definition interface{ definition() *class }

// Class is a kind of object, whose instances are of type *T. It is a value of
// the program, made once at package level, and holds nothing of any host.
type Class[T any] struct{ def class }

func (c *Class[T]) definition() *class {
	if c == nil {
		return nil
	}
	return &c.def
}

// definitionOf returns the class that d defines, or nil for a nil of any type.
func definitionOf(d Definition) *class {
	if v := reflect.ValueOf(d); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil
	}
	return d.definition()
}

// Name returns the name of the class.
func (c *Class[T]) Name() string { return c.def.name }

// Reject notes a mistake in the definition, for Open to return as it is: how a
// job type that embeds a Class reports mistakes in its own configuration. The error
// should name the class. Nil is nothing.
func (c *Class[T]) Reject(err error) {
	if err != nil {
		c.def.rejected = append(c.def.rejected, err)
	}
}

// class is a Class without its type.
type class struct {
	name      string
	options   ClassOptions
	construct func(ctx context.Context, st *State) (any, error)
	alarms    bool // instances have an Alarm method
	methods   map[string]func() operation
	mistakes  []error // of Define and Handle
	rejected  []error // that Reject was given
}

// mistake notes one of the definition, for Open to return.
func (c *class) mistake(format string, args ...any) {
	c.mistakes = append(c.mistakes, fmt.Errorf("object: class %q: "+format, append([]any{c.name}, args...)...))
}

// wrong returns all mistakes of the definition. A job type that has rejected it has
// checked its name.
func (c *class) wrong() []error {
	if err := storage.ValidateClass(c.name); err != nil && len(c.rejected) == 0 {
		return append([]error{fmt.Errorf("object: class %q: %w", c.name, err)}, c.mistakes...)
	}
	return slices.Concat(c.rejected, c.mistakes)
}

// AlarmHandler is implemented by instances of a class whose objects set alarms.
type AlarmHandler interface {
	// Alarm handles the object's alarm in a turn. An error keeps the alarm and
	// tries it again.
	Alarm(ctx context.Context, info AlarmInfo) error
}

// Define makes a class. construct makes an instance in memory from what is
// stored; it runs in the first turn of each activation and may write. If *T has
// an Alarm method (see AlarmHandler), objects of the class can set alarms. At
// most one ClassOptions may be given. Mistakes in a definition are reported by
// Open.
func Define[T any](name string, construct func(context.Context, *State) (*T, error), opts ...ClassOptions) *Class[T] {
	c := &Class[T]{def: class{name: name, methods: make(map[string]func() operation)}}
	d := &c.def
	_, d.alarms = any((*T)(nil)).(AlarmHandler)
	if construct == nil {
		d.mistake("constructor is nil")
	}
	if len(opts) > 1 {
		d.mistake("more than one ClassOptions are given")
	}
	if len(opts) > 0 {
		d.options = opts[0]
	}
	if err := d.options.validate(); err != nil {
		d.mistake("%w", err)
	}
	d.construct = func(ctx context.Context, st *State) (any, error) {
		v, err := construct(ctx, st)
		if err != nil {
			return nil, err
		}
		if v == nil {
			return nil, fmt.Errorf("constructor returned nil without an error")
		}
		return v, nil
	}
	return c
}

// Method is a handler of a class that can be called, with a name and a codec so
// that calls can also be made by name and bytes.
type Method[A, R any] struct {
	class *class
	name  string
	call  func(instance any, ctx context.Context, arg A) (R, error)
	spare sync.Pool // of *invocation[A, R] that nobody knows any more
}

// Handle adds a method to a class. Names are unique in a class; mistakes are
// reported by Open. It must not be called after a host was opened with c. fn must not
// keep its argument, or a part of its answer, without copying it: see Method.Call.
func Handle[T, A, R any](c *Class[T], name string, fn func(*T, context.Context, A) (R, error)) *Method[A, R] {
	d := &c.def
	m := &Method[A, R]{class: d, name: name}
	switch {
	case name == "":
		d.mistake("a method has no name")
	case fn == nil:
		d.mistake("method %q has no function", name)
	case d.methods[name] != nil:
		d.mistake("method %q is defined twice", name)
	}
	m.call = func(instance any, ctx context.Context, arg A) (R, error) { return fn(instance.(*T), ctx, arg) }
	m.spare.New = func() any { return &invocation[A, R]{method: m} }
	d.methods[name] = func() operation {
		in := &invocation[A, R]{method: m}
		in.what = &m.name
		return in
	}
	return m
}

// Name returns the name of the method.
func (m *Method[A, R]) Name() string { return m.name }

// Call runs the method on the object called name and returns its answer. from is
// a *Host outside of objects, or the *State of the object that calls. ctx bounds
// the wait; a call whose ctx ends while it waits for its turn never runs, and one
// whose ctx ends later may return an error that wraps ErrUnknown, when the turn
// may commit or not.
//
// The handler gets arg itself and the caller gets the handler's answer itself, not
// copies: what they point to (slices, maps, pointers) is shared memory. Neither side
// changes it after the call unless it has made a copy, and a handler that keeps its
// argument, or answers with a part of its state, makes one. What goes through the codec
// is a copy: arguments and answers of Host.CallBytes, the answer that a repeat of a
// call with an idempotency key gets, and all that is stored.
//
// From outside it returns when everything the answer depends on is durable (O7).
// Errors of the handler arrive unchanged; see the Err variables for the others.
func (m *Method[A, R]) Call(ctx context.Context, from Caller, name string, arg A, opts ...CallOption) (R, error) {
	in := m.spare.Get().(*invocation[A, R])
	in.arg, in.what = arg, &m.name
	in.Request.init(storage.ID{Class: m.class.name, Name: name}, in, opts)
	err := from.Invoke(ctx, &in.Request)
	if err != nil { // its turn may still be to come, or be under way
		var zero R
		return zero, err
	}
	res := in.res
	*in = invocation[A, R]{method: m}
	m.spare.Put(in)
	return res, nil
}

// invocation is one call of a method.
type invocation[A, R any] struct {
	Request
	method *Method[A, R]
	arg    A
	res    R
}

func (in *invocation[A, R]) methodName() string { return in.method.name }

func (in *invocation[A, R]) request() *Request { return &in.Request }

func (in *invocation[A, R]) run(ctx context.Context, a *activation) (err error) {
	in.res, err = in.method.call(a.instance, ctx, in.arg)
	if a.hosted.host.seams.Probe != nil && err == nil {
		a.checkShared(in.method.name, in.arg, in.res)
	}
	return err
}

func (in *invocation[A, R]) decodeArg(c Codec, b []byte) error {
	if len(b) == 0 && reflect.TypeFor[A]().Kind() == reflect.Struct {
		return nil // no bytes stand for the zero struct
	}
	return c.Decode(b, &in.arg)
}

func (in *invocation[A, R]) encodeResult(c Codec) ([]byte, error) { return c.Encode(in.res) }

func (in *invocation[A, R]) decodeResult(c Codec, b []byte) error { return c.Decode(b, &in.res) }

// id names the object of the class that is called name.
func (c *class) id(name string) storage.ID { return storage.ID{Class: c.name, Name: name} }

// ID names the object of the class that is called name.
func (c *Class[T]) ID(name string) storage.ID { return storage.ID{Class: c.def.name, Name: name} }
