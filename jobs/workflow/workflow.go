package workflow

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/engine"
	"github.com/holdfast-dev/holdfast/jobs/internal/history"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// Workflow is a function whose runs survive their process. Make it once, at package level,
// give it its function with Func, and pass it to object.Open as a Definition. Each id names
// one run.
//
// All methods are safe for concurrent use. from is a *object.Host in a program, or the
// *object.State, Task, Run or Flush of the code that calls; the context of a step goes with
// a Host. All methods but Start return jobs.ErrNotFound if there is no such run, also once
// Config.Retention has removed it.
//
// With the Outbox of a State as from, the methods that change a run happen if and only if
// the turn commits, a little later. Those that ask return object.ErrNeedsAnswer.
type Workflow[In, Out any] struct {
	*object.Class[instance]
	control

	start      call[In, Started]
	wait       call[none, Out]
	restart    call[In, none]
	startChild func(ctx context.Context, st *object.State, id string, arg childStart[In], opts ...object.CallOption) error
}

// control has the methods of a Workflow that have none of its types. The compiler makes the code of a Workflow again for
// each In and Out, in each package that uses one, so a Workflow itself has only what needs them.
// The methods here are not inlined, because each Workflow has wrappers of them.
type control struct{ d *definition }

// none stands for no argument or no result.
type none struct{}

// definition is the part of a Workflow that does not depend on its types.
type definition struct {
	name     string
	config   Config
	class    *object.Class[instance]
	function func(ctx *Context, input []byte) ([]byte, error)
	signals  map[string]any // the calls of the methods that take them, by name
	calls    calls

	maxSignals int // constant; tests have less
}

// calls are the methods of an instance that have no type of the Workflow. They are functions, because the compiler would
// make an object.Method again in each package to whose types it belongs.
type calls struct {
	status    call[none, Status]
	cancel    call[string, none]
	pause     call[pauseArg, none]
	resume    call[none, none]
	terminate call[string, none]
	retry     call[none, none]
	entries   call[page, []Entry]
	variables call[none, []described]
	variable  call[string, shown]
}

// call is what object.HandleCall returns.
type call[A, R any] = func(ctx context.Context, from object.Caller, id string, arg A, opts ...object.CallOption) (R, error)

// New makes a workflow. name is the name of its class: stored runs belong to it, so it must
// not change while there are any. New does not fail: object.Open returns the mistakes.
func New[In, Out any](name string, c Config) *Workflow[In, Out] {
	d := define(name, c)
	w := &Workflow[In, Out]{Class: d.class, control: control{d}}
	w.start = object.HandleCall(d.class, "start", func(in *instance, ctx context.Context, input In) (Started, error) {
		return in.startWith(ctx, input)
	}, object.Sent(func(In) Started { return Started{Sent: true} }))
	w.wait = object.HandleCall(d.class, "wait", func(in *instance, ctx context.Context, _ none) (out Out, err error) {
		raw, err := in.output(ctx)
		if err == nil {
			err = in.st.Driver().Codec().Decode(raw, &out)
		}
		return out, err
	})
	w.restart = object.HandleCall(d.class, "restart", func(in *instance, ctx context.Context, input In) (none, error) {
		return in.restartWith(ctx, input)
	}, object.Sent(func(In) none { return none{} }))
	w.startChild = object.HandleSend(d.class, "start child", func(in *instance, ctx context.Context, a childStart[In]) (none, error) {
		return in.startChild(ctx, a.Input, a.Parent)
	})
	return w
}

// define makes the class of a workflow with the methods that have none of its types.
func define(name string, c Config) *definition {
	rejected := c.validate(name)
	d := &definition{name: name, config: c.withDefaults(), signals: make(map[string]any), maxSignals: maxSignals}
	d.class = object.Define(name, func(ctx context.Context, st *object.State) (*instance, error) {
		return load(ctx, st, d)
	}, d.config.class())
	nothing, noReason := object.Sent(func(none) none { return none{} }), object.Sent(func(string) none { return none{} })
	d.calls = calls{
		status:    object.HandleCall(d.class, "status", (*instance).status),
		cancel:    object.HandleCall(d.class, "cancel", (*instance).cancel, noReason),
		pause:     object.HandleCall(d.class, "pause", (*instance).pause, object.Sent(func(pauseArg) none { return none{} })),
		resume:    object.HandleCall(d.class, "resume", (*instance).resume, nothing),
		terminate: object.HandleCall(d.class, "terminate", (*instance).terminate, noReason),
		retry:     object.HandleCall(d.class, "retry", (*instance).retry, nothing),
		entries:   object.HandleCall(d.class, "history", (*instance).page),
		variables: object.HandleCall(d.class, "variables", (*instance).variables),
		variable:  object.HandleCall(d.class, "variable", (*instance).variable),
	}
	tryAgain := object.Handle(d.class, "try again", func(in *instance, ctx context.Context, _ none) (none, error) {
		return none{}, in.job.TryAgain(ctx)
	})
	d.class.AtOpen(func(ctx context.Context, h *object.Host, log *slog.Logger) {
		engine.Heal(ctx, h, log, name, func(ctx context.Context, id string) error {
			_, err := tryAgain.Call(ctx, h, id, none{})
			return err
		})
	})
	object.Handle(d.class, methodCancel, (*instance).cancelChild)
	object.Handle(d.class, methodAnswer, (*instance).takesAnswer)
	for _, s := range c.Signals {
		if err := validName("signal", s.Name()); err != nil {
			d.class.Reject(engine.Invalidf("workflow "+name, "%w", err))
			continue
		}
		d.signals[s.Name()] = s.declare(d)
	}
	d.class.Reject(rejected)
	d.class.Check(func() error {
		if d.function == nil {
			return engine.Invalidf("workflow "+name, "it has no function: call Func in an init function")
		}
		return nil
	})
	return d
}

// Func gives the workflow its function. Call it once, before object.Open, in an init function
// of the package: New does not take the function, because it may name the workflow itself,
// and Go refuses that in a variable as an initialization cycle.
//
// The function is plain Go. It may be executed many times for one run: after a crash, a
// suspension or a deploy it repeats the operations of its history and goes on behind them. So all that
// it does to the world outside belongs into steps, and all that decides which operation comes
// next must be the same each time: its input, values of operations, Now and Rand of its
// Context, and no clock, no random numbers, no map order, no goroutine of its own. A defer
// runs at each suspension; Undo is for cleaning up.
func (w *Workflow[In, Out]) Func(fn func(ctx *Context, in In) (Out, error)) {
	if fn == nil {
		return
	}
	w.d.function = func(c *Context, input []byte) ([]byte, error) {
		var in In
		c.decodeInput(input, &in)
		out, err := fn(c, in)
		if err != nil {
			return nil, err
		}
		return c.encodeOutput(out)
	}
}

// decodeInput sets *in to the input of the run. One that the present type cannot hold makes the run stuck.
func (c *Context) decodeInput(input []byte, in any) {
	if err := c.s.codec.Decode(input, in); err != nil {
		c.s.stuck(fmt.Errorf("workflow: cannot decode the input: %w", err))
	}
}

// encodeOutput encodes the output of the run.
func (c *Context) encodeOutput(out any) ([]byte, error) {
	raw, err := c.s.codec.Encode(out)
	if err == nil {
		err = c.s.tooLargeOutput(raw)
	}
	if err != nil {
		return nil, fmt.Errorf("workflow: the output: %w", err)
	}
	return raw, nil
}

// of makes a Workflow a Named.
func (w *control) of() *definition { return w.d }

// encodeInput validates the input of a run and encodes it (J4).
func encodeInput(codec object.Codec, id storage.ID, input any) ([]byte, error) {
	if v, ok := input.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return nil, fmt.Errorf("%w: %s: input: %w", jobs.ErrInvalid, id, err)
		}
	}
	raw, err := codec.Encode(input)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: encode the input: %w", jobs.ErrInvalid, id, err)
	}
	return raw, nil
}

func (in *instance) encodeInput(input any) ([]byte, error) {
	return encodeInput(in.st.Driver().Codec(), in.st.ID(), input)
}

// startWith, restartWith and startChild encode the input of a run and begin it.
func (in *instance) startWith(ctx context.Context, input any) (Started, error) {
	raw, err := in.encodeInput(input)
	if err != nil {
		return Started{}, err
	}
	return in.start(ctx, raw, nil)
}

func (in *instance) restartWith(ctx context.Context, input any) (none, error) {
	raw, err := in.encodeInput(input)
	if err != nil {
		return none{}, err
	}
	return in.restart(ctx, raw)
}

func (in *instance) startChild(ctx context.Context, input any, p parent) (none, error) {
	raw, err := in.encodeInput(input)
	if err != nil {
		return none{}, in.answerTo(ctx, p, answer{Flags: history.Failed, Err: engine.Shorten(err.Error())})
	}
	return none{}, in.beginChild(ctx, raw, p)
}

// Started is the answer of Start.
type Started struct {
	Created bool        `json:"created"` // false if the run existed; then nothing was changed
	Status  jobs.Status `json:"status"`  // of the run now
	// Sent is true if from was the Outbox of a State. The other fields are zero then.
	Sent bool `json:"sent,omitempty"`
}

// Start begins the run id with an input, in one batch with its first begin. If there is such
// a run, with any status, nothing changes and Started.Created is false (F13). An input with a
// method Validate() error that fails, or one that cannot be encoded, is a jobs.ErrInvalid.
func (w *Workflow[In, Out]) Start(ctx context.Context, from object.Caller, id string, in In) (Started, error) {
	return w.start(ctx, from, id, in)
}

// Wait returns the output of the run, once it has completed. If the run has failed or was
// cancelled, it returns an ErrFailed or ErrCancelled with the text of its error alone, so a
// function with several outcomes tells them in its output. It keeps the
// run in memory for as long as it waits, so give ctx a deadline.
func (w *Workflow[In, Out]) Wait(ctx context.Context, from object.Caller, id string) (Out, error) {
	return w.wait(ctx, from, id, none{})
}

// Status returns how far the run is. It does not wait for a step.
//
//go:noinline
func (w *control) Status(ctx context.Context, from object.Caller, id string) (Status, error) {
	return w.d.calls.status(ctx, from, id, none{})
}

// Cancel asks the run to end: the contexts of its steps end, and from now on each operation
// of the function returns ErrCancelled, but those of WithoutCancel. No step begins after
// Cancel has returned (F8). When the function has returned an error, its undos run, and the
// run is cancelled; if it returns none, the run is completed. A paused run goes on for it. A
// run that is stuck is cancelled when its code is put right. Cancel of a run that has ended
// changes nothing.
//
//go:noinline
func (w *control) Cancel(ctx context.Context, from object.Caller, id, reason string) error {
	_, err := w.d.calls.cancel(ctx, from, id, reason)
	return err
}

// Pause lets no operation of the run begin until Resume, or until the given time, if it is
// not zero. Steps that run end first.
//
//go:noinline
func (w *control) Pause(ctx context.Context, from object.Caller, id, reason string, until time.Time) error {
	_, err := w.d.calls.pause(ctx, from, id, pauseArg{reason, until})
	return err
}

// Resume lets a paused run go on, and tries a stuck one now. For any other status it changes
// nothing, but a failed run needs Retry.
//
//go:noinline
func (w *control) Resume(ctx context.Context, from object.Caller, id string) error {
	_, err := w.d.calls.resume(ctx, from, id, none{})
	return err
}

// Terminate removes the run with all its rows in one batch, without its undos. Its children
// are cancelled. Start can use the id again.
//
//go:noinline
func (w *control) Terminate(ctx context.Context, from object.Caller, id, reason string) error {
	_, err := w.d.calls.terminate(ctx, from, id, reason)
	return err
}

// Retry lets a failed run go on: the step with which it has failed is tried again, under the
// same key, if no undo has begun and nothing was recorded since, and an undo that was given
// up is tried again, because a compensation never turns back. Otherwise it returns ErrUndone
// and changes nothing: a run begun anew would repeat all its steps.
//
//go:noinline
func (w *control) Retry(ctx context.Context, from object.Caller, id string) error {
	_, err := w.d.calls.retry(ctx, from, id, none{})
	return err
}
