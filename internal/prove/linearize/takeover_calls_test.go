package linearize

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-dev/holdfast/object"
)

// sumCall is a call of a number: it adds amount, once under key if that is not 0, and answers with the sum. Without an amount
// it reads.
type sumCall struct{ number, amount, key int }

const (
	numberCount = 4
	onceKeys    = 6
)

func numberName(i int) string { return fmt.Sprint("number-", i) }

// counted is an object that keeps a number in memory and in its storage.
type counted struct {
	st  *object.State
	sum int
}

var (
	numbers = object.Define("number", func(ctx context.Context, st *object.State) (*counted, error) {
		c := &counted{st: st}
		_, err := st.Storage().GetInto(ctx, "sum", &c.sum)
		return c, err
	})
	addTo = object.Handle(numbers, "add", func(c *counted, ctx context.Context, amount int) (int, error) {
		if amount == 0 {
			return c.sum, nil
		}
		c.sum += amount
		return c.sum, c.st.Storage().Put(ctx, "sum", c.sum)
	})
)

// made is a call as its caller saw it.
type made struct {
	sumCall
	caller     int
	term       int // of the host
	call, back int64
	sum        int
	unknown    bool // it may have happened, or not
}

// caller makes calls of any node, one after the other.
type caller struct {
	h    *takeover
	id   int
	rand *rand.Rand
	ops  []made
}

func (c *caller) run() {
	for c.h.begin() {
		s := sumCall{number: c.rand.IntN(numberCount)}
		if c.rand.IntN(2) == 0 {
			s.amount = 1 + c.rand.IntN(9)
			if c.rand.IntN(3) == 0 {
				s.amount, s.key = 1, 1+c.rand.IntN(onceKeys)
			}
		}
		to := c.rand.IntN(nodeCount)
		if c.rand.IntN(2) == 0 || s.amount != 0 && c.h.spared.Load() {
			to = int(c.h.owner.Load())
		}
		if l := c.h.nodes[to].life.Load(); l != nil && l.host.Err() == nil {
			c.call(l, s)
		}
		yield(c.rand.IntN(20))
	}
}

// call makes one call, and notes it unless it has not happened for certain.
func (c *caller) call(l *life, s sumCall) {
	op := made{sumCall: s, caller: c.id, term: l.term, call: c.h.stamp()}
	var opts []object.CallOption
	if s.key != 0 {
		opts = append(opts, object.Idempotent(fmt.Sprint(s.key), 0))
	}
	sum, err := addTo.Call(context.Background(), l.host, numberName(s.number), s.amount, opts...)
	op.sum, op.back = sum, c.h.stamp()
	switch {
	case err == nil:
	case s.amount == 0, errors.Is(err, object.ErrShutdown):
		op.call = 0
	default:
		op.unknown = true
	}
	c.h.note(op)
	if op.call != 0 {
		c.ops = append(c.ops, op)
	}
}

// note counts the calls that were not answered.
func (h *takeover) note(op made) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if op.unknown {
		h.unknown++
	}
	if op.call == 0 {
		h.refused++
	}
}

// sums is a number as the model has it, and the answers under each key; 0: none.
type sums struct {
	sum     int
	answers [onceKeys + 1]int
}

// sumModel is one number. A call of unknown outcome is open until its host's log was taken over, so it can come last there, which
// is as if it had not happened; sumModel says so by a second state.
func sumModel() *porcupine.NondeterministicModel {
	return &porcupine.NondeterministicModel{
		Partition: func(ops []porcupine.Operation) [][]porcupine.Operation {
			parts := make([][]porcupine.Operation, numberCount)
			for _, op := range ops {
				n := op.Input.(sumCall).number
				parts[n] = append(parts[n], op)
			}
			return parts
		},
		Init: func() []any { return []any{sums{}} },
		Step: func(state, in, out any) []any {
			next, sum := state.(sums).after(in.(sumCall))
			switch op := out.(made); {
			case op.unknown:
				return []any{state, next}
			case op.sum != sum:
				return nil
			}
			return []any{next}
		},
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v: %+v", in, out) },
	}
}

// after is the number after a call, and the answer to it.
func (s sums) after(call sumCall) (sums, int) {
	if call.key != 0 && s.answers[call.key] != 0 {
		return s, s.answers[call.key]
	}
	s.sum += call.amount
	if call.key != 0 {
		s.answers[call.key] = s.sum
	}
	return s, s.sum
}

// check looks for an order of the calls that explains each answer. A call of unknown outcome cannot happen after another node has
// claimed the log.
func (h *takeover) check(ops []made) error {
	var all []porcupine.Operation
	for _, op := range ops {
		back := op.back
		if op.unknown {
			back = h.claims[op.term+1]
		}
		if back < op.call {
			continue
		}
		all = append(all, porcupine.Operation{ClientId: op.caller, Input: op.sumCall, Call: op.call, Output: op, Return: back})
	}
	switch ok, decided := search(sumModel().ToModel(), all); {
	case !decided:
		return fmt.Errorf("no order was found in %d steps", checkSteps)
	case !ok:
		return errors.New("the answers have no order: a read was stale, or a commit was lost")
	}
	return nil
}
