package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/holdfast-dev/holdfast/object"
)

// Outcome is how a call ended, as far as its client knows.
type Outcome int

const (
	Unanswered Outcome = iota // it may have happened, may happen yet, or never will
	Ack                       // it happened, and was answered
	Refused                   // it did not happen
)

func (o Outcome) String() string {
	switch o {
	case Ack:
		return "ack"
	case Refused:
		return "refused"
	}
	return "unknown"
}

// OutcomeOf reads the outcome of a call from its error. Nil is Ack. Unknown errors,
// object.ErrUnknown, ErrStorage, ErrReset and ErrTimeout, and the end of the caller's
// context leave the call Unanswered. Every other error is Refused, because it comes
// from the handler, or from before it, and left nothing behind. Do not use it for a
// handler that stores a part with Sync or Release and fails later.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return Ack
	}
	if Unknown(err) {
		return Unanswered
	}
	for _, e := range []error{object.ErrUnknown, object.ErrStorage, object.ErrReset, object.ErrTimeout, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, e) {
			return Unanswered
		}
	}
	return Refused
}

// Operation is one call as its client saw it.
type Operation struct {
	Object  string // the callee; operations of different objects are independent
	Input   any
	Output  any // of an Ack
	Outcome Outcome
	// Begin and End are places in the order of all that the history saw: a call
	// that ended before another began has the smaller End. Only an Ack has an End.
	Begin, End int64
}

func (o Operation) String() string {
	if o.Outcome == Ack {
		return fmt.Sprintf("%v -> %v", o.Input, o.Output)
	}
	return fmt.Sprintf("%v -> %s", o.Input, o.Outcome)
}

// History is a list of calls with their answers, as the clients saw them. Its zero
// value is ready, and any number of goroutines may record into it.
type History struct {
	mu         sync.Mutex // guards the fields below
	clock      int64      // counts begins and ends
	operations []Operation
}

// Operations are the calls so far, in the order in which they began. One that is
// under way is Unanswered.
func (h *History) Operations() []Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.operations)
}

// Add appends an operation that was recorded elsewhere, with its own Begin and
// End. Do not mix it with Record in one history: their clocks differ.
func (h *History) Add(o Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.operations = append(h.operations, o)
}

func (h *History) begin(object string, input any) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock++
	h.operations = append(h.operations, Operation{Object: object, Input: input, Begin: h.clock})
	return len(h.operations) - 1
}

func (h *History) end(i int, output any, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o := &h.operations[i]
	if o.Outcome = OutcomeOf(err); o.Outcome == Ack {
		h.clock++
		o.Output, o.End = output, h.clock
	}
}

// Recorder is where Record keeps calls: a *Sim, for its checkers, or a *History.
type Recorder interface{ recorder() *History }

func (s *Sim) recorder() *History     { return &s.history }
func (h *History) recorder() *History { return h }

// Record makes a call and notes its begin, its end and its outcome, for Linearizable.
// It returns the results of call. To record a call that is repeated until it has an
// answer, put the Retry into the call.
func Record[I, O any](to Recorder, object string, input I, call func() (O, error)) (O, error) {
	h := to.recorder()
	i := h.begin(object, input)
	output, err := call()
	h.end(i, output, err)
	return output, err
}
