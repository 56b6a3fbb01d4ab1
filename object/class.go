package object

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	// refused with ErrOverloaded. Messages are never refused; those that wait in the
	// mailbox, at most 64, count as calls do, and all others wait on disk. Default: 1024.
	MailboxLimit int
	// MailboxAge is how long the first waiting call may have waited when
	// another comes, which is then refused with ErrOverloaded. Default: 30 s.
	MailboxAge time.Duration
	// BlockLimit bounds the constructor and BlockConcurrencyWhile. Default: 30 s.
	BlockLimit time.Duration
	// HoldLimit is how long a turn may hold its object before the log and the metrics
	// report it, once, with its method and stack, because it may be waiting for
	// something that needs the object. The turn goes on. Negative: no limit.
	// Default: 30 s.
	HoldLimit time.Duration
	// AlarmRetry says when a failed alarm is tried again. Default: after 2, 4,
	// 8, 16, 32 and 64 s, each plus 0 to 25 %, so that seven attempts fail in all.
	AlarmRetry alarm.Retry
	// MessageRetry says when a message that failed is tried again. Default: after 10, 20, 40,
	// 80, 160 and 320 s, and then 10 minutes, each plus 0 to 25 %, so that ten attempts fail
	// in all.
	MessageRetry alarm.Retry
	// MaxWaiting is how many messages may wait on disk for one object. Beyond it a Send to
	// the object is refused with ErrOutboxFull. The count is known while the object has
	// more messages than it handles at once. Default: 100,000.
	MaxWaiting int
	// MaxAlarmCrashes is how many crashes an alarm may be charged with before it
	// becomes a dead letter. A crash is charged to an alarm that ran while no other
	// suspect did. A charged alarm is held back for twice the life of the process that
	// died; a crash in that time forgets the charges, because its cause is another. A
	// take-over of the store by another node, over a replicated log, is no crash; of those in
	// a row an alarm or a message survives 20, or MaxAlarmCrashes if that is more. Default: 4.
	MaxAlarmCrashes int
	// WorkLimit bounds the routines of the class that run at a time in a host, and how often
	// they start, if they are of a job type that takes permits for them (see
	// Driver.TakePermit). Default: no limit.
	WorkLimit WorkLimit
	// OverlapWhileUnconfirmed lets the works of the class (State.Go, and executions of jobs) begin and go on while a replicated log
	// does not answer. Without it they are cut off after two seconds, as by a shutdown, and run again when the log answers. With
	// it a work may run beside its own repeat at the next owner of the log, for as long as this process does not learn
	// that it was replaced: five minutes by default (shardlog.Options.Patience). So it is for work whose effects outside are the
	// same when two processes make them, and that an outage of the log must not stop. On one machine it does nothing.
	// Default: false.
	OverlapWhileUnconfirmed bool
	// Internal has Host.CallBytes refuse the methods of the class with ErrInternalMethod; for
	// example, a call by name must not terminate a job. Other calls of the methods stay as
	// they are, also those of Class.CallBytes. engine.ClassOptions sets it for job types.
	Internal bool
	// OnDeadLetter is called, beside the turns, for each new dead letter of the class,
	// of any kind, once the letter is durable. It is called once: if the process
	// dies before or during the call, the letter is in Host.DeadLetters all the same.
	OnDeadLetter func(ctx context.Context, d DeadLetter)
}

// withDefaults returns the options with defaults, some of them the host's, in place of
// zeros. Open calls it, after validate.
func (o ClassOptions) withDefaults(h *Options) ClassOptions {
	o.IdleAfter = cmp.Or(o.IdleAfter, h.IdleAfter)
	o.MailboxLimit = cmp.Or(o.MailboxLimit, 1024)
	o.MailboxAge = cmp.Or(o.MailboxAge, 30*time.Second)
	o.BlockLimit = cmp.Or(o.BlockLimit, 30*time.Second)
	o.HoldLimit = cmp.Or(o.HoldLimit, 30*time.Second)
	o.MaxAlarmCrashes = cmp.Or(o.MaxAlarmCrashes, 4)
	o.AlarmRetry.MaxAttempts = cmp.Or(o.AlarmRetry.MaxAttempts, 7)
	o.MaxWaiting = cmp.Or(o.MaxWaiting, maxWaiting)
	o.MessageRetry.MaxAttempts = cmp.Or(o.MessageRetry.MaxAttempts, 10)
	if o.MessageRetry.Backoff == (alarm.Backoff{}) {
		o.MessageRetry.Backoff = alarm.Exponential(10*time.Second, 10*time.Minute).WithJitter(0.25)
	}
	if o.AlarmRetry.Backoff == (alarm.Backoff{}) {
		o.AlarmRetry.Backoff = alarm.Exponential(2*time.Second, 64*time.Second).WithJitter(0.25)
	}
	return o
}

// validate returns the first mistake in the options, for Define.
func (o ClassOptions) validate() error {
	return cmp.Or(
		notNegative("IdleAfter", o.IdleAfter), notNegative("MailboxAge", o.MailboxAge), notNegative("BlockLimit", o.BlockLimit),
		notNegative("MailboxLimit", o.MailboxLimit), notNegative("MaxAlarmCrashes", o.MaxAlarmCrashes),
		notNegative("MaxWaiting", o.MaxWaiting), validRetry("AlarmRetry", o.AlarmRetry), validRetry("MessageRetry", o.MessageRetry),
		o.WorkLimit.Validate(),
	)
}

// validRetry reports the first mistake in the Retry of alarms or messages.
func validRetry(name string, r alarm.Retry) error {
	if r.RetryIf != nil {
		return errors.New(name + " has a RetryIf: return Permanent(err) from the handler instead")
	}
	if err := r.Validate(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// notNegative is an error that names an option which is less than zero.
func notNegative[T int | time.Duration](name string, v T) error {
	if v < 0 {
		return fmt.Errorf("%s must not be negative: %v", name, v)
	}
	return nil
}

// Definition is a class as Open takes it: a *Class, or a type that embeds one.
type Definition interface{ definition() *class }

// Class is a kind of object with instances of type *T. It is a value of
// the program, made once at package level, and holds nothing of any host.
type Class[T any] struct{ def class }

// definition returns the class without its type, or nil for a nil Class, so that Open can
// report the mistake.
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

// Reject notes a mistake in the definition, for Open to return unchanged. A job type that
// embeds a Class uses it to report mistakes in its own configuration. The error should
// name the class. A nil error is ignored.
//
//go:noinline
func (c *Class[T]) Reject(err error) { c.def.reject(err) }

// Check adds a check of the definition that Open makes, for what is set after Define. The
// error is returned as one that Reject was given.
//
//go:noinline
func (c *Class[T]) Check(check func() error) { c.def.check(check) }

// CallBytes is Host.CallBytes for an object of this class, and calls internal methods too,
// because the caller has the definition. It returns ErrUnknownClass if h was not opened with c.
//
//go:noinline
func (c *Class[T]) CallBytes(ctx context.Context, h *Host, name, method string, arg []byte, opts ...CallOption) ([]byte, error) {
	return c.def.callBytes(ctx, h, name, method, arg, opts)
}

// AtOpen adds a function that each Open of a host with the class calls, on a goroutine of its own.
// ctx ends when Shutdown begins or the store fails; f must return soon then, because Shutdown
// waits for it. log is the log of the host, with the class. A job type uses it for work at
// open that no object can begin by itself. If the store fails before, f is not called. It is for
// definitions, before Open.
//
//go:noinline
func (c *Class[T]) AtOpen(f func(ctx context.Context, h *Host, log *slog.Logger)) {
	c.def.open(f)
}

// class is a Class without its type. Define and Handle fill it before Open; after that it
// never changes, so all goroutines read it without a mutex.
type class struct {
	name      string
	options   ClassOptions // as given to Define, without defaults
	construct func(ctx context.Context, st *State) (any, error)
	alarms    bool // instances have an Alarm method
	methods   map[string]*method
	mistakes  []error        // of Define and Handle
	rejected  []error        // that Reject was given
	checks    []func() error // that Check was given
	atOpen    []atOpen       // that AtOpen was given
}

// atOpen is a function that Open calls; see Class.AtOpen.
type atOpen = func(ctx context.Context, h *Host, log *slog.Logger)

// reject, check, open and callBytes are the methods of Class with such a name.
func (c *class) reject(err error) {
	if err != nil {
		c.rejected = append(c.rejected, err)
	}
}

func (c *class) check(check func() error) { c.checks = append(c.checks, check) }

func (c *class) open(f atOpen) { c.atOpen = append(c.atOpen, f) }

func (c *class) callBytes(ctx context.Context, h *Host, name, method string, arg []byte, opts []CallOption) ([]byte, error) {
	hosted := h.hosted[c.name]
	if hosted != nil && hosted.class != c {
		hosted = nil
	}
	return h.callBytes(ctx, hosted, c.id(name), method, arg, opts)
}

// mistake notes a mistake in the definition, for Open to return with the class's name.
func (c *class) mistake(format string, args ...any) {
	c.mistakes = append(c.mistakes, fmt.Errorf("object: class %q: "+format, append([]any{c.name}, args...)...))
}

// add adds a method. noFunc says that it has no function.
func (c *class) add(m *method, noFunc bool) {
	switch {
	case m.name == "":
		c.mistake("a method has no name")
	case noFunc:
		c.mistake("method %q has no function", m.name)
	case c.methods[m.name] != nil:
		c.mistake("method %q is defined twice", m.name)
	}
	c.methods[m.name] = m
}

// wrong returns all mistakes of the definition. If a job type has rejected it, the name
// of the class is not checked again, because the job type has reported that mistake.
func (c *class) wrong() []error {
	if err := storage.ValidateClass(c.name); err != nil && len(c.rejected) == 0 {
		return append([]error{fmt.Errorf("object: class %q: %w", c.name, err)}, c.mistakes...)
	}
	var found []error
	for _, check := range c.checks {
		if err := check(); err != nil {
			found = append(found, err)
		}
	}
	return slices.Concat(c.rejected, found, c.mistakes)
}

// AlarmHandler is implemented by the instances of a class that handles alarms.
type AlarmHandler interface {
	// Alarm handles the object's alarm in a turn. An error keeps the alarm and
	// tries it again.
	Alarm(ctx context.Context, info AlarmInfo) error
}

// Define makes a class. construct makes an instance in memory from the
// stored rows; it runs in the first turn of each instance and may write. If *T has
// an Alarm method (see AlarmHandler), objects of the class can set alarms. At
// most one ClassOptions may be given. Mistakes in a definition are reported by
// Open.
func Define[T any](name string, construct func(context.Context, *State) (*T, error), opts ...ClassOptions) *Class[T] {
	_, alarms := any((*T)(nil)).(AlarmHandler)
	c := &Class[T]{}
	c.def.define(name, alarms, construct == nil, opts)
	c.def.construct = func(ctx context.Context, st *State) (any, error) {
		v, err := construct(ctx, st)
		if err == nil && v == nil {
			err = errNoInstance
		}
		return v, err
	}
	return c
}

// errNoInstance is the error of a constructor without an instance and without an error.
var errNoInstance = errors.New("constructor returned nil without an error")

// define is Define without the type of the instances.
func (c *class) define(name string, alarms, noConstruct bool, opts []ClassOptions) {
	c.name, c.alarms, c.methods = name, alarms, make(map[string]*method)
	if noConstruct {
		c.mistake("constructor is nil")
	}
	if len(opts) > 1 {
		c.mistake("more than one ClassOptions are given")
	}
	if len(opts) > 0 {
		c.options = opts[0]
	}
	if err := c.options.validate(); err != nil {
		c.mistake("%w", err)
	}
}

// id names the object of the class that is called name.
func (c *class) id(name string) storage.ID { return storage.ID{Class: c.name, Name: name} }

// ID names the object of the class that is called name.
func (c *Class[T]) ID(name string) storage.ID { return c.def.id(name) }

// Method is a handler of a class that can be called, with a name and a codec so
// that calls can also be made by name and bytes.
//
// The compiler makes generic code again for each argument and answer, in each package that
// uses it. So a Method has little code, and all that needs no type is in method and invocation.
type Method[A, R any] struct{ m method }

// method is a Method without its types. Handle sets its fields, which never change after that.
type method struct {
	class   *class
	name    string
	arg     reflect.Type
	answer  reflect.Type
	call    func(in *invocation, instance any, ctx context.Context) error // calls the handler
	part    func(in *invocation, p part) any
	hasSent bool      // a call can be sent; see Sent
	spare   sync.Pool // of *invocation to which no pointer is left
}

// part is what method.part does with an invocation.
type part uint8

const (
	argValue    part = iota // return the argument
	answerValue             // return the answer
	sentAnswer              // set the answer of a call that was sent
	clearBoth               // set the argument and the answer to zero
)

// cell is the memory of an invocation: one allocation.
type cell[A, R any] struct {
	in     invocation
	arg    A
	answer R
}

// Handle adds a method to a class. Names are unique in a class; mistakes are
// reported by Open. It must not be called after a host was opened with c. fn must not
// keep its argument, or a part of its answer, without copying it: see Method.Call.
func Handle[T, A, R any](c *Class[T], name string, fn func(*T, context.Context, A) (R, error), opts ...MethodOption[A, R]) *Method[A, R] {
	m := &Method[A, R]{}
	handle(&m.m, c, name, fn, opts)
	return m
}

// HandleCall is Handle for authors of types with type parameters, such as job types. It returns the
// method's Call alone, because a Method compiles twice as much code for each A and R. The returned
// function may be called concurrently and fails as Method.Call does.
func HandleCall[T, A, R any](c *Class[T], name string, fn func(*T, context.Context, A) (R, error), opts ...MethodOption[A, R]) func(ctx context.Context, from Caller, name string, arg A, opts ...CallOption) (R, error) {
	m := &method{}
	handle(m, c, name, fn, opts)
	return func(ctx context.Context, from Caller, name string, arg A, opts ...CallOption) (answer R, err error) {
		in := m.take()
		a := in.arg.(*A)
		*a = arg
		if err := in.invoke(ctx, from, name, opts); err != nil {
			return answer, err
		}
		r := in.answer.(*R)
		var noArg A
		var none R
		answer, *a, *r = *r, noArg, none
		in.spare()
		return answer, nil
	}
}

// HandleSend is HandleCall, but returns the method's Send; see Method.Send for its errors.
func HandleSend[T, A, R any](c *Class[T], name string, fn func(*T, context.Context, A) (R, error), opts ...MethodOption[A, R]) func(ctx context.Context, st *State, name string, arg A, opts ...CallOption) error {
	m := &method{}
	handle(m, c, name, fn, opts)
	return func(ctx context.Context, st *State, name string, arg A, opts ...CallOption) error {
		in := m.take()
		*in.arg.(*A) = arg
		return in.send(ctx, st, name, opts)
	}
}

// handle is Handle for a method without its types.
func handle[T, A, R any](m *method, c *Class[T], name string, fn func(*T, context.Context, A) (R, error), opts []MethodOption[A, R]) {
	m.class, m.name, m.arg, m.answer = &c.def, name, reflect.TypeFor[A](), reflect.TypeFor[R]()
	var sent func(arg A) R
	for _, o := range opts {
		sent = o.sent
	}
	m.hasSent = sent != nil
	m.call = func(in *invocation, instance any, ctx context.Context) (err error) {
		*in.answer.(*R), err = fn(instance.(*T), ctx, *in.arg.(*A))
		return err
	}
	m.spare.New = func() any {
		c := &cell[A, R]{in: invocation{method: m}}
		c.in.arg, c.in.answer = &c.arg, &c.answer
		return &c.in
	}
	m.part = func(in *invocation, p part) any {
		arg, answer := in.arg.(*A), in.answer.(*R)
		switch p {
		case argValue:
			return *arg
		case answerValue:
			return *answer
		case sentAnswer:
			*answer = sent(*arg)
		case clearBoth:
			var noArg A
			var none R
			*arg, *answer = noArg, none
		}
		return nil
	}
	m.class.add(m, fn == nil)
}

// Name returns the name of the method.
func (m *Method[A, R]) Name() string { return m.m.name }

// Call runs the method on the object called name and returns its answer. from is
// a *Host outside of objects, or the *State of the object that calls. ctx bounds
// the wait. If it ends while the call waits for its turn, the call never runs. If it ends
// later, Call may return an error that wraps ErrUnknown, because the turn may still
// commit or fail.
//
// The handler gets arg itself and the caller gets the handler's answer itself, not
// copies: slices, maps and pointers in them lead to shared memory. Neither side
// changes it after the call unless it has made a copy, and a handler that keeps its
// argument, or answers with a part of its state, makes one. Values that go through the
// codec are copies: arguments and answers of Host.CallBytes, the answer that a repeat of
// a call with an idempotency key gets, and all stored values.
//
// From outside it returns when everything the answer depends on is durable (O7). Over a replicated log
// it waits for the log, also if the method only reads, because another process may have taken the log over. It
// returns ErrUnknown if the log has not answered for 10 s, or for about one after ctx has ended.
// Errors of the handler arrive unchanged; see the Err variables for the others.
func (m *Method[A, R]) Call(ctx context.Context, from Caller, name string, arg A, opts ...CallOption) (answer R, err error) {
	in := m.m.take()
	a := in.arg.(*A)
	*a = arg
	if err := in.invoke(ctx, from, name, opts); err != nil { // a turn may still use the invocation, so it does not go to the pool
		return answer, err
	}
	r := in.answer.(*R)
	var noArg A
	var none R
	answer, *a, *r = *r, noArg, none
	in.spare()
	return answer, nil
}

// take returns an invocation for a call.
func (m *method) take() *invocation {
	in := m.spare.Get().(*invocation)
	in.call.what = &m.name
	return in
}

// info describes the method, for Host.Classes.
func (m *method) info() MethodInfo { return MethodInfo{m.name, m.arg, m.answer, m.hasSent} }

// invocation is one call of a method: its request, argument and answer in one piece, so
// that a call needs one allocation or none. It is a callable.
type invocation struct {
	call   Request
	method *method
	arg    any // *A of the cell
	answer any // *R of the cell, set by the turn
}

// invoke makes the call.
func (in *invocation) invoke(ctx context.Context, from Caller, name string, opts []CallOption) error {
	in.call.init(in.method.class.id(name), in, opts)
	return from.Invoke(ctx, &in.call)
}

// recycle keeps the memory for another call of the method. No turn may use the invocation any more.
func (in *invocation) recycle() {
	in.method.part(in, clearBoth)
	in.spare()
}

// spare is recycle without its argument and its answer.
func (in *invocation) spare() {
	in.call = Request{}
	in.method.spare.Put(in)
}

// run calls the handler on the instance. The caller owns the turn.
func (in *invocation) run(ctx context.Context, a *activation) error {
	err := in.method.call(in, a.instance, ctx)
	if a.host.seams.Probe != nil && err == nil {
		a.checkShared(in.method.name, in.method.part(in, argValue), in.method.part(in, answerValue))
	}
	return err
}
