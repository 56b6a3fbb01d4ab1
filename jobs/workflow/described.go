package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
)

// Verbs describes the methods of the workflow by name, for callers that have no Go types (G1).
func (w *Workflow[In, Out]) Verbs() *verbs.Table {
	in := reflect.TypeFor[In]()
	return w.d.verbs(w,
		verbs.NewUntyped("start", verbs.Call, "begin a run with an input, or leave one that exists as it is", in, reflect.TypeFor[Started](),
			func(ctx context.Context, from object.Caller, id string, read func(arg any) error) (any, error) {
				var in In
				if err := read(&in); err != nil {
					return nil, err
				}
				return w.Start(ctx, from, id, in)
			}),
		verbs.NewUntyped("restart", verbs.Operator, "begin a run that has ended anew, with another input", in, reflect.TypeFor[verbs.None](),
			func(ctx context.Context, from object.Caller, id string, read func(arg any) error) (any, error) {
				var in In
				if err := read(&in); err != nil {
					return nil, err
				}
				return verbs.None{}, w.Restart(ctx, from, id, in)
			}),
		verbs.NewUntyped("wait", verbs.Reader, "wait for the end of the run and show its output", reflect.TypeFor[verbs.None](), reflect.TypeFor[Out](),
			func(ctx context.Context, from object.Caller, id string, read func(arg any) error) (any, error) {
				if err := read(new(verbs.None)); err != nil {
					return nil, err
				}
				return w.Wait(ctx, from, id)
			}),
	)
}

// verbs describes the methods of a workflow by name. start, restart and wait have types of the workflow.
func (d *definition) verbs(w Named, start, restart, wait verbs.Verb) *verbs.Table {
	c := &control{d}
	signals := "it declares none"
	if names := d.signalNames(); len(names) > 0 {
		signals = "it declares " + strings.Join(names, ", ")
	}
	signal := func(ctx context.Context, from object.Caller, id string, a signalArg) (verbs.None, error) {
		return verbs.None{}, d.signalDescribed(ctx, from, w, id, a)
	}
	return verbs.NewTable(d.name, "workflow", []verbs.Verb{
		start.As(verbs.Lasting),
		verbs.New("signal", verbs.Call, "give a signal to the run; "+signals, signal).As(verbs.Lasting),
		verbs.New("cancel", verbs.Operator, "ask the run to end; its undos run", verbs.Because(c.Cancel)).Optional().As(verbs.Final),
		verbs.New("pause", verbs.Operator, "let no operation begin until resume, or until a time", d.pauseDescribed).Optional().As(verbs.Harmless),
		verbs.New("resume", verbs.Operator, "let a paused run go on, or try a stuck one now", verbs.Plain(c.Resume)).As(verbs.Harmless),
		verbs.New("retry", verbs.Operator, "let a failed run go on with the step that has failed", verbs.Plain(c.Retry)).As(verbs.Harmless),
		restart.As(verbs.Final),
		verbs.New("terminate", verbs.Operator, "delete the run with its history, without its undos", verbs.Because(c.Terminate)).Optional().As(verbs.Final),
	}, []verbs.Verb{
		verbs.New("status", verbs.Reader, "show how far the run is, why it is there and its steps", verbs.Ask(c.Status)),
		verbs.New("history", verbs.Reader, "show a page of the recorded entries, of the present generation or another", d.page).Optional(),
		verbs.New("vars", verbs.Reader, "show the variables that the run has set", verbs.Ask(d.allVariables)),
		wait,
	}).WithDead(verbs.Dead{
		Kind: DeadRun, Replay: "retry", Discard: "terminate",
		ID: func(d object.DeadLetter) (string, error) { return d.ID.Name, nil },
	})
}

// signalArg is the argument of the verb signal.
type signalArg struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value,omitempty"`
	// Key is an idempotency key for a day; empty: there is none.
	Key string `json:"key,omitempty"`
}

// IdempotencyKeys is how package verbs sees the key of the signal.
func (a *signalArg) IdempotencyKeys() []*string { return []*string{&a.Key} }

// signalKeptFor is how long the key of a described signal is kept.
const signalKeptFor = 24 * time.Hour

// signalNames are the names of the declared signals, in order.
func (d *definition) signalNames() []string {
	var names []string
	for _, s := range d.config.Signals {
		names = append(names, s.Name())
	}
	slices.Sort(names)
	return names
}

// signalDescribed sends the signal that the argument names.
func (d *definition) signalDescribed(ctx context.Context, from object.Caller, w Named, id string, a signalArg) error {
	for _, s := range d.config.Signals {
		if s.Name() == a.Name {
			return s.sendDescribed(ctx, from, w, id, a)
		}
	}
	return fmt.Errorf("%w: %q of workflow %s, which has %q", ErrUnknownSignal, a.Name, d.name, d.signalNames())
}

// sendDescribed is Send with a value in JSON.
func (s *Signal[T]) sendDescribed(ctx context.Context, from object.Caller, w Named, id string, a signalArg) error {
	v, err := verbs.Decode[T](a.Value)
	if err != nil {
		return fmt.Errorf("signal %q: %w", s.name, err)
	}
	return s.Send(ctx, from, w, id, v, a.options()...)
}

// options are those of the call.
func (a *signalArg) options() []object.CallOption {
	if a.Key == "" {
		return nil
	}
	return []object.CallOption{object.Idempotent(a.Key, signalKeptFor)}
}

func (d *definition) pauseDescribed(ctx context.Context, from object.Caller, id string, a pauseArg) (verbs.None, error) {
	_, err := d.calls.pause(ctx, from, id, a)
	return verbs.None{}, err
}

// page is History or HistoryOf, as its argument says.
func (d *definition) page(ctx context.Context, from object.Caller, id string, p page) ([]Entry, error) {
	return d.calls.entries(ctx, from, id, p)
}

// allVariables reads the variables that the run has set.
func (d *definition) allVariables(ctx context.Context, from object.Caller, id string) ([]described, error) {
	return d.calls.variables(ctx, from, id, none{})
}
