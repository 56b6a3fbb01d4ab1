package linearize

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"

	"github.com/anishathalye/porcupine"
)

// bug is planted in a history, to see it found.
type bug int

const (
	none   bug = iota
	noSync     // the engine's Sync does nothing
	noGate     // replies do not wait for the sync, and count as if they did
)

// history is many clients on one store and the processes that follow one another
// over it.
type history struct {
	seed    uint64
	ops     int64
	bug     bug
	pages   string     // the directory for pages about histories without an order; "" is that for temporary files
	rand    *rand.Rand // of the succession of processes
	cutRand *rand.Rand // of the crashes
	first   *process

	clock   atomic.Int64 // orders the beginnings and ends of operations
	begun   atomic.Int64
	refused atomic.Int64
	cancel  atomic.Pointer[context.CancelFunc] // of somebody's call

	ends    []porcupine.Operation // of the processes
	crashes int

	mu  sync.Mutex
	err error
}

// figures are counts over histories.
type figures struct {
	Histories int   `json:"histories"`
	Ops       int64 `json:"history_ops"`
	Crashes   int   `json:"crashes"`
	Unknown   int   `json:"unknown"`
	Refused   int64 `json:"refused"`
	Restarts  int   `json:"restarts"`
}

func (f *figures) add(g figures) {
	f.Histories += g.Histories
	f.Ops += g.Ops
	f.Crashes += g.Crashes
	f.Unknown += g.Unknown
	f.Refused += g.Refused
	f.Restarts += g.Restarts
}

// stamp is a moment, later than every other that was taken before.
func (h *history) stamp() int64 { return h.clock.Add(1) }

// begin reports whether one more operation is wanted.
func (h *history) begin() bool { return h.begun.Add(1) <= h.ops }

func (h *history) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = errors.Join(h.err, err)
}

// context is that of a call. A few of them are cancelled by the next caller.
func (h *history) context(r *rand.Rand) (context.Context, context.CancelFunc) {
	if old := h.cancel.Swap(nil); old != nil {
		(*old)()
	}
	ctx, cancel := context.WithCancel(context.Background())
	if r.IntN(20) == 0 {
		h.cancel.Store(&cancel)
	}
	return ctx, cancel
}

// note puts the end of a process into the history.
func (h *history) note(p *process) {
	how := crashed
	if p.plan.inOrder {
		how = restarted
	} else {
		h.crashes++
	}
	h.ends = append(h.ends, porcupine.Operation{
		ClientId: clientCount, Input: input{ending: how}, Output: output{}, Call: p.died, Return: h.stamp(),
	})
}

// play makes a history on d and returns the calls as its clients saw them.
func (h *history) play(d disk) ([]operation, error) {
	h.rand = rand.New(rand.NewPCG(h.seed, 0))
	h.cutRand = rand.New(rand.NewPCG(h.seed, 1))
	p, err := h.start(d)
	if err != nil {
		return nil, err
	}
	h.first = p
	clients, done := h.startClients()
	for running := true; running && err == nil; {
		select {
		case <-p.cut:
			if err = h.succeed(p); err == nil {
				p = p.heir
			}
		case <-done:
			running = false
		}
	}
	if err != nil {
		close(p.next) // it has no heir
		<-done
		return nil, err
	}
	ops, err := h.finish(p)
	for _, c := range clients {
		ops = append(ops, c.ops...)
	}
	return ops, errors.Join(err, h.err)
}

// startClients starts them; done is closed when all have ended.
func (h *history) startClients() (clients []*client, done chan struct{}) {
	var all sync.WaitGroup
	for i := range clientCount {
		c := &client{h: h, id: i, rand: rand.New(rand.NewPCG(h.seed, uint64(2+i)))}
		clients = append(clients, c)
		all.Go(c.run)
	}
	done = make(chan struct{})
	go func() { all.Wait(); close(done) }()
	return clients, done
}

// finish crashes the last process and reads every cell in one more.
func (h *history) finish(p *process) ([]operation, error) {
	if p.engine.left.Swap(-1) > 0 { // else the cut has come, or is coming
		p.plan = plan{}
		h.cutOff(p)
	}
	<-p.cut
	if err := h.succeed(p); err != nil {
		return nil, err
	}
	last := p.heir
	last.engine.left.Store(-1)
	c := &client{h: h, id: clientCount}
	for i := range cellCount {
		op := operation{in: input{cell: i, command: command{kind: readStored}}, by: last, client: c.id, call: h.stamp()}
		ans, err := c.invoke(context.Background(), last, op.in)
		if err != nil {
			return nil, fmt.Errorf("read cell %d at the end: %w", i, err)
		}
		op.back, op.out = h.stamp(), output{answer: ans}
		c.ops = append(c.ops, op)
	}
	return c.ops, last.host.Shutdown(context.Background())
}

// ofCell is the history of one cell as porcupine takes it.
func (h *history) ofCell(cell int, ops []operation) []porcupine.Operation {
	all := append([]porcupine.Operation{}, h.ends...)
	for _, op := range ops {
		back := op.back
		if op.out.unknown && op.by.died > 0 {
			// It cannot happen any more when its process is dead, and may until then.
			back = op.by.died - 1
		}
		if op.in.cell != cell || back < op.call || op.out.unknown && !op.in.command.kind.changes() {
			continue
		}
		all = append(all, porcupine.Operation{ClientId: op.client, Input: op.in, Call: op.call, Output: op.out, Return: back})
	}
	return all
}

// check looks for an order that explains each cell. If there is none, the error
// names a page that shows the history.
func (h *history) check(ops []operation) error {
	var errs []error
	for cell := range cellCount {
		ofCell := h.ofCell(cell, ops)
		switch ok, decided := search(model(), ofCell); {
		case !decided:
			errs = append(errs, fmt.Errorf("cell %d: no order was found in %d steps", cell, checkSteps))
		case !ok:
			errs = append(errs, fmt.Errorf("cell %d is not linearizable: see %s", cell, h.show(model(), ofCell)))
		}
	}
	return errors.Join(errs...)
}

// checkSteps limits the search for an order by the steps of its model, because a proof that there is none
// can take forever. An order is mostly found within thousands of steps; a dozen calls of one cell that a
// crash has interrupted can take many more.
const checkSteps = 10_000_000

// search reports whether there is an order of the calls, if that can be decided in checkSteps.
func search(m porcupine.Model, ops []porcupine.Operation) (ok, decided bool) {
	var steps atomic.Int64
	step := m.Step
	m.Step = func(state, in, out any) (bool, any) {
		if steps.Add(1) > checkSteps {
			return false, state // no call fits, so the search ends soon
		}
		return step(state, in, out)
	}
	ok = porcupine.CheckOperations(m, ops)
	return ok, ok || steps.Load() <= checkSteps
}

// show writes the page about a history without an order, and returns its path.
func (h *history) show(m porcupine.Model, ops []porcupine.Operation) string {
	_, info := porcupine.CheckOperationsVerbose(m, ops, 0)
	page, err := os.CreateTemp(h.pages, "history-*.html")
	if err != nil {
		return err.Error()
	}
	if err := errors.Join(porcupine.Visualize(m, info, page), page.Close()); err != nil {
		return err.Error()
	}
	return page.Name()
}

func (h *history) figures(ops []operation) figures {
	f := figures{Histories: 1, Ops: h.ops, Crashes: h.crashes, Refused: h.refused.Load(), Restarts: len(h.ends) - h.crashes}
	for _, op := range ops {
		if op.out.unknown {
			f.Unknown++
		}
	}
	return f
}
