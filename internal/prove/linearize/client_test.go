package linearize

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/holdfast-dev/holdfast/object"
)

// client makes calls, one after the other.
type client struct {
	h     *history
	id    int
	rand  *rand.Rand
	known [cellCount]int // the number as last seen in each cell
	ops   []operation
}

// operation is a call, as its client saw it.
type operation struct {
	in         input
	out        output
	by         *process
	client     int
	call, back int64
}

const (
	cellCount   = 5
	keyCount    = 12 // idempotency keys of a cell
	clientCount = 12
)

func cellName(i int) string { return fmt.Sprintf("cell-%d", i) }

// run calls until the history has enough operations.
func (c *client) run() {
	p := c.h.first
	for c.h.begin() {
		if c.call(p) {
			continue
		}
		<-p.next
		if p.heir == nil {
			return
		}
		p = p.heir
	}
}

// call makes one call and reports whether the process can take another.
func (c *client) call(p *process) bool {
	op := operation{in: c.choose(), by: p, client: c.id, call: c.h.stamp()}
	ctx, cancel := c.h.context(c.rand)
	defer cancel()
	ans, err := c.invoke(ctx, p, op.in)
	op.back = c.h.stamp()
	what := outcomeOf(op.in.command, err)
	if p.dead.Load() {
		what = unknown
	}
	switch what {
	case refused:
		c.h.refused.Add(1)
	case happened:
		c.known[op.in.cell] = ans.Content.Number
		op.out = output{answer: ans}
		c.ops = append(c.ops, op)
	default:
		op.out = output{unknown: true}
		c.ops = append(c.ops, op)
	}
	if errors.Is(err, errDiffers) {
		c.h.fail(err)
	}
	return !p.dead.Load() && !errors.Is(err, object.ErrShutdown) && !errors.Is(err, object.ErrStorage)
}

// choose draws a call. Half of them change something.
func (c *client) choose() input {
	r := c.rand
	in := input{cell: r.IntN(cellCount), unconfirmed: r.IntN(8) == 0}
	cmd := &in.command
	cmd.kind = []kind{
		read, read, read, read, readStored, readStored, add, add, add, addOnce, addOnce,
		setIf, setIf, appendItem, appendItem, rollback, fail, crashHandler, keepAndFail,
	}[r.IntN(19)]
	switch r.IntN(60) {
	case 0:
		cmd.kind = purge
	case 1:
		return input{cell: in.cell, command: command{kind: remove}}
	}
	cmd.amount, cmd.old = 1+r.IntN(9), c.known[in.cell]
	cmd.slow = cmd.kind != setIf && r.IntN(6) == 0
	if cmd.kind == addOnce {
		cmd.amount, in.key = 1, r.IntN(keyCount)
	} else if r.IntN(6) == 0 {
		cmd.relay = cellName(in.cell)
	}
	return in
}

// invoke makes the call, from the turn of another cell if it is relayed.
func (c *client) invoke(ctx context.Context, p *process, in input) (answer, error) {
	cmd, to := in.command, cellName(in.cell)
	if cmd.kind == remove {
		return answer{}, p.host.Delete(ctx, cells.ID(to))
	}
	var opts []object.CallOption
	if in.unconfirmed || c.h.bug == noGate {
		opts = append(opts, object.Unconfirmed())
	}
	if cmd.kind == addOnce {
		opts = append(opts, object.Idempotent(fmt.Sprint(in.key), 0))
	}
	if cmd.relay != "" {
		to = cellName(c.rand.IntN(cellCount))
	}
	ans, err := do.Call(ctx, p.host, to, cmd, opts...)
	var f failure
	if errors.As(err, &f) {
		return answer{f.seen, true}, err
	}
	if cmd.kind == addOnce {
		ans.Content = content{Number: ans.Content.Number}
	}
	return ans, err
}

// outcome is the end of a call, as its client knows it.
type outcome int

const (
	unknown  outcome = iota // it may have happened or not
	happened                // and this is its answer
	refused                 // it did not happen
)

// outcomeOf reads an error as the contract gives it (O6, O11, O12, O14).
func outcomeOf(cmd command, err error) outcome {
	is := func(errs ...error) bool {
		for _, e := range errs {
			if errors.Is(err, e) {
				return true
			}
		}
		return false
	}
	switch {
	case err == nil, errors.As(err, new(failure)):
		return happened
	case is(object.ErrUnknown):
		return unknown
	case is(object.ErrOverloaded, object.ErrDeadlock):
		return refused
	case cmd.relay != "" || cmd.kind == keepAndFail:
		return unknown // a part of it may be stored already
	case is(object.ErrShutdown, object.ErrReset, context.Canceled):
		return refused
	}
	return unknown
}
