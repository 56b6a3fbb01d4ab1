package linearize

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// process is one life of the host of a history.
type process struct {
	host   *object.Host
	disk   disk
	engine *cutEngine
	plan   plan
	cut    chan struct{} // closed when the planned moment has come
	dead   atomic.Bool   // later answers do not reach a client
	leaves disk          // the disk after the crash
	lost   error         // why it leaves nothing

	// Set once the process has ended, before next is closed.
	died int64 // no call had an effect on the disk after this
	next chan struct{}
	heir *process // nil: the history is over
}

// plan is how a process ends.
type plan struct {
	after   int  // moments of its engine
	inOrder bool // it is shut down, after the moment
	patient bool // the shutdown waits for calls that are under way
	broken  bool // after the crash its disk refuses every write
	late    bool // the next process is opened before this one is closed
}

func newPlan(r *rand.Rand) plan {
	return plan{
		after: 1 + r.IntN(600), inOrder: r.IntN(5) == 0, patient: r.IntN(2) == 0,
		broken: r.IntN(2) == 0, late: r.IntN(2) == 0,
	}
}

// start opens a host on d.
func (h *history) start(d disk) (*process, error) {
	e, err := d.open()
	if err != nil {
		return nil, err
	}
	p := &process{disk: d, plan: newPlan(h.rand), cut: make(chan struct{}), next: make(chan struct{})}
	p.engine = &cutEngine{Engine: e, lazy: h.bug == noSync, cut: func() { h.cutOff(p) }}
	p.host, err = object.Open(object.Options{
		Storage:   storage.Options{Engine: p.engine, Shards: 2},
		IdleAfter: 2 * time.Millisecond,
		MaxLive:   3,
		Logger:    slog.New(slog.DiscardHandler),
	}, cells)
	if err != nil {
		return nil, err
	}
	p.engine.left.Store(int64(p.plan.after))
	return p, nil
}

// cutOff is the planned moment: the process dies, unless it is to end in order. It runs
// in the middle of an operation of the engine, on the goroutine of that operation.
func (h *history) cutOff(p *process) {
	if !p.plan.inOrder {
		h.kill(p)
	}
	close(p.cut)
}

func (h *history) kill(p *process) {
	p.dead.Store(true)
	p.leaves, p.lost = p.disk.crash(h.cutRand)
	p.died = h.stamp()
	p.engine.broken.Store(p.plan.broken)
}

// succeed ends a process at its moment and starts the next.
func (h *history) succeed(p *process) error {
	if p.plan.inOrder {
		ctx := context.Background()
		if !p.plan.patient {
			ctx = ended()
		}
		if err := p.host.Shutdown(ctx); err != nil {
			return err
		}
		p.leaves = p.disk.closed()
		p.died = h.stamp()
	} else if !p.plan.late {
		_ = p.host.Shutdown(ended()) // the process is dead, with any error
	}
	if p.lost != nil {
		return p.lost
	}
	next, err := h.start(p.leaves)
	if err != nil {
		return err
	}
	h.note(p)
	p.heir = next
	close(p.next)
	if p.plan.late {
		_ = p.host.Shutdown(ended())
	}
	return nil
}

// ended is a context that is over.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
