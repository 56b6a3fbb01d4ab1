package harness

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/anishathalye/porcupine"
)

// linearizeSteps limits how often the model runs to check one object's calls. It takes
// about half a minute on a slow machine, but the result does not depend on that. The
// steps grow with the number of calls that are in flight at once, not with the length of
// the history.
const linearizeSteps = 20_000_000

// Linearizable checks, when a run has settled, that the recorded calls to each object
// answered as if they had been made one after another, each at some moment between its
// begin and its end. The model is the object as a function: from a state and an input,
// the next state and the output. It must not change the state it is given. A new object
// is in the zero state.
//
// A call with an Unknown outcome may have happened at any time since it began, or
// never; one that was refused has not happened. Do not record calls with Unconfirmed,
// because a crash may take back their answers.
//
// Record notes the calls. Those with another type of input or output are left to
// other models; if there are none of the model's types, the check fails.
func Linearizable[S, I, O any](model func(state S, input I) (next S, output O)) Option {
	return checker(check{
		name:    "Linearizable",
		promise: own("calls to an object answer as if they were made one after another", promiseTurns),
		end:     func(s *Sim) error { return LinearizableIn(&s.history, model) },
	})
}

// LinearizableIn is Linearizable for a history from anywhere, such as calls to a host
// that does not run in a simulation. The error shows the longest order that explains
// the answers, and the calls that cannot follow it.
func LinearizableIn[S, I, O any](h *History, model func(state S, input I) (next S, output O)) error {
	return linearizableIn(h, model, linearizeSteps)
}

func linearizableIn[S, I, O any](h *History, model func(S, I) (S, O), steps int64) error {
	byObject := make(map[string][]porcupine.Operation)
	for _, o := range h.Operations() {
		if _, ok := o.Input.(I); !ok || o.Outcome == Refused {
			continue
		}
		if _, ok := o.Output.(O); !ok && o.Outcome == Ack {
			continue
		}
		byObject[o.Object] = append(byObject[o.Object], asPorcupine(o))
	}
	if len(byObject) == 0 {
		return fmt.Errorf("no call with input %v and output %v was recorded and not refused: use Record", reflect.TypeFor[I](), reflect.TypeFor[O]())
	}
	l := linearizer[S, I, O]{model: model}
	for _, object := range slices.Sorted(maps.Keys(byObject)) {
		if err := l.check(object, byObject[object], steps); err != nil {
			return err
		}
	}
	return nil
}

// asPorcupine is an operation as the checker knows it: its output is the whole
// Operation, and one without an answer never ends.
func asPorcupine(o Operation) porcupine.Operation {
	p := porcupine.Operation{Input: o.Input, Call: o.Begin, Output: o, Return: o.End}
	if o.Outcome != Ack {
		p.Return = math.MaxInt64
	}
	return p
}

// linearizer checks the calls of one object at a time.
type linearizer[S, I, O any] struct {
	model func(S, I) (S, O)
	steps atomic.Int64 // that are left for the object
}

func (l *linearizer[S, I, O]) step(state, input, output any) (bool, any) {
	if l.steps.Add(-1) < 0 {
		return false, state // no call fits, so the search ends soon
	}
	next, answer := l.model(state.(S), input.(I))
	o := output.(Operation)
	return o.Outcome != Ack || reflect.DeepEqual(answer, o.Output), next
}

func (l *linearizer[S, I, O]) check(object string, operations []porcupine.Operation, steps int64) error {
	var zero S
	l.steps.Store(steps)
	m := porcupine.Model{Init: func() any { return zero }, Step: l.step, Equal: reflect.DeepEqual}
	switch ok := porcupine.CheckOperations(m, operations); {
	case ok:
		return nil
	case l.steps.Load() < 0:
		return fmt.Errorf("the %d calls to %s are not decided after %d steps: have fewer of them under way at a time", len(operations), object, steps)
	}
	l.steps.Store(steps)
	_, info := porcupine.CheckOperationsVerbose(m, operations, 0)
	orders := append(info.PartialLinearizations()[0], nil) // there is none if no call can be the first
	longest := slices.MaxFunc(orders, func(a, b []int) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), slices.Compare(b, a))
	})
	return concerning{fmt.Errorf("no order of the %d calls to %s explains their answers\n%s", len(operations), object, l.explain(operations, longest)), object}
}

// explainMost bounds the calls of an order that are shown.
const explainMost = 8

// explain shows an order that works, and why nothing can follow it.
func (l *linearizer[S, I, O]) explain(operations []porcupine.Operation, order []int) string {
	var b strings.Builder
	var state S
	if len(order) > 0 {
		b.WriteString("an order that explains the first of them:\n")
	}
	placed := make(map[int]bool)
	for n, i := range order {
		placed[i] = true
		state, _ = l.model(state, operations[i].Input.(I))
		if len(order)-n <= explainMost {
			fmt.Fprintf(&b, "  %s, and the state is %v\n", operations[i].Output, state)
		}
	}
	b.WriteString("none of these can follow:\n")
	for _, o := range nextCalls(operations, placed) {
		_, answer := l.model(state, o.Input.(I))
		fmt.Fprintf(&b, "  %s, where the model answers %v\n", o, answer)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// nextCalls are those of the calls without a place that may come next, and have
// an answer: none of the others ended before they began.
func nextCalls(operations []porcupine.Operation, placed map[int]bool) []Operation {
	var left []Operation
	firstEnd := int64(math.MaxInt64)
	for i, o := range operations {
		if !placed[i] {
			left = append(left, o.Output.(Operation))
			firstEnd = min(firstEnd, o.Return)
		}
	}
	left = slices.DeleteFunc(left, func(o Operation) bool { return o.Outcome != Ack || o.Begin > firstEnd })
	slices.SortFunc(left, func(a, b Operation) int { return cmp.Compare(a.Begin, b.Begin) })
	return left
}
