package workflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
)

// Verbs describes the methods of the workflow by name, for callers that have no Go types (G1).
func (w *Workflow[In, Out]) Verbs() *verbs.Table {
	signals := "it declares none"
	if names := w.signalNames(); len(names) > 0 {
		signals = "it declares " + strings.Join(names, ", ")
	}
	return verbs.NewTable(w.Name(), "workflow", []verbs.Verb{
		verbs.New("start", verbs.Call, "begin a run with an input, or leave one that exists as it is", w.Start).As(verbs.Lasting),
		verbs.New("signal", verbs.Call, "give a signal to the run; "+signals, w.signalDescribed).As(verbs.Lasting),
		verbs.New("cancel", verbs.Operator, "ask the run to end; its undos run", verbs.Because(w.Cancel)).Optional().As(verbs.Final),
		verbs.New("pause", verbs.Operator, "let no operation begin until resume, or until a time", w.pauseDescribed).Optional().As(verbs.Harmless),
		verbs.New("resume", verbs.Operator, "let a paused run go on, or try a stuck one now", verbs.Plain(w.Resume)).As(verbs.Harmless),
		verbs.New("retry", verbs.Operator, "let a failed run go on with the step that has failed", verbs.Plain(w.Retry)).As(verbs.Harmless),
		verbs.New("restart", verbs.Operator, "begin a run that has ended anew, with another input", w.restartDescribed).As(verbs.Final),
		verbs.New("terminate", verbs.Operator, "delete the run with its history, without its undos", verbs.Because(w.Terminate)).Optional().As(verbs.Final),
	}, []verbs.Verb{
		verbs.New("status", verbs.Reader, "show how far the run is, why it is there and its steps", verbs.Ask(w.Status)),
		verbs.New("history", verbs.Reader, "show a page of the recorded entries, of the present generation or another", w.page).Optional(),
		verbs.New("vars", verbs.Reader, "show the variables that the run has set", verbs.Ask(w.allVariables)),
		verbs.New("wait", verbs.Reader, "wait for the end of the run and show its output", verbs.Ask(w.Wait)),
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
func (w *Workflow[In, Out]) signalNames() []string {
	var names []string
	for _, s := range w.d.config.Signals {
		names = append(names, s.Name())
	}
	slices.Sort(names)
	return names
}

// signalDescribed sends the signal that the argument names.
func (w *Workflow[In, Out]) signalDescribed(ctx context.Context, from object.Caller, id string, a signalArg) (verbs.None, error) {
	for _, s := range w.d.config.Signals {
		if s.Name() == a.Name {
			return verbs.None{}, s.sendDescribed(ctx, from, w, id, a)
		}
	}
	return verbs.None{}, fmt.Errorf("%w: %q of workflow %s, which has %q", ErrUnknownSignal, a.Name, w.Name(), w.signalNames())
}

// sendDescribed is Send with a value in JSON.
func (s *Signal[T]) sendDescribed(ctx context.Context, from object.Caller, w Named, id string, a signalArg) error {
	v, err := verbs.Decode[T](a.Value)
	if err != nil {
		return fmt.Errorf("signal %q: %w", s.name, err)
	}
	var opts []object.CallOption
	if a.Key != "" {
		opts = append(opts, object.Idempotent(a.Key, signalKeptFor))
	}
	return s.Send(ctx, from, w, id, v, opts...)
}

func (w *Workflow[In, Out]) pauseDescribed(ctx context.Context, from object.Caller, id string, a pauseArg) (verbs.None, error) {
	return verbs.None{}, w.Pause(ctx, from, id, a.Reason, a.Until)
}

func (w *Workflow[In, Out]) restartDescribed(ctx context.Context, from object.Caller, id string, in In) (verbs.None, error) {
	return verbs.None{}, w.Restart(ctx, from, id, in)
}

// page is History or HistoryOf, as its argument says.
func (w *Workflow[In, Out]) page(ctx context.Context, from object.Caller, id string, p page) ([]Entry, error) {
	return w.entries.Call(ctx, from, id, p)
}

// allVariables reads the variables that the run has set.
func (w *Workflow[In, Out]) allVariables(ctx context.Context, from object.Caller, id string) ([]described, error) {
	return w.variables.Call(ctx, from, id, none{})
}
