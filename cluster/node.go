package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// # The life of a node
//
//	    ┌───────────────────────────────────────────────┐
//	    ↓                                               │ moved, or broken and a pause
//	 opening ──→ waiting ──→ claimed ──→ serving ──→ ceasing ──→ ended
//	    ↑ restore   │ ↑                                           ↑
//	    └───────────┘ └─ another node won         Drain, ErrIDUsed ┘
//
// Two goroutines run it. That of run passes these steps, one life of a host after the other. That of beats tells the other nodes, and
// looks at them, from the first time the node waits until the last step of run is done.
//
// The row of the node follows the steps: while it waits and serves, the row has its address; while it ceases, the row drains; and while nothing is
// open, the row drains without an address. The others take over from such a node at once, because it serves nothing.

// graceMost is how long the shutdown of a host may take that no caller of Drain gave a limit.
const graceMost = 10 * time.Second

// Node is a process in a cluster. Its methods may be called from any goroutine.
type Node struct {
	o     Options
	defs  []object.Definition
	seams *seam.Seams
	pulse pulse
	host  atomic.Pointer[object.Host] // that serves; nil: this node does not

	ctx    context.Context // ends when the node is to leave the cluster, with the reason
	leave  context.CancelCauseFunc
	joined chan struct{} // closed when the node waits for the first time
	hurry  chan struct{} // one slot; a value makes the next beat come at once
	probes chan struct{} // one slot; its value is taken by the goroutine that connects to the owner
	asks   chan struct{} // one slot; its value is taken by the goroutine that asks the log whether this node owns it still
	beaten chan struct{} // closed after the last beat; it is made when joined is closed
	done   chan struct{} // closed when the node has ended; endErr is set before

	endErr error

	mu          sync.Mutex // guards the fields below
	watch       watch
	reached     uint64                  // the incarnation of the owner to which this node has connected
	incarnation uint64                  // of this process in its row; 0: it has not beaten
	beat        uint64                  // the count in the row
	deaf        bool                    // the last beat had no answer, so the next does not count: the link may be cut in one direction
	fenced      bool                    // another process has the row
	ended       bool                    // run has ended: one beat is left
	ready       time.Time               // steady; since when the view is open and the node could own the log; zero: it could not
	cease       context.CancelCauseFunc // ends the serving; nil: the node does not serve
	ceasing     bool
	engine      *shardlog.Engine // since the claim of this life; nil: it has not claimed
	grace       context.Context  // limit of the last shutdown; nil: graceMost
	trouble     string           // why the node has nothing open, for Status
	news        chan struct{}    // closed and replaced at each change
}

// Join opens the view of a node and begins to follow the log, and returns the node when it waits for its turn. The end of ctx ends Join, and
// nothing later. It returns the mistakes in the options, and each error because of which the node cannot open its view, for example
// storage.ErrLocked, storage.ErrFormat or a definition that is wrong; the log and the other nodes have not noticed it then. While the log does
// not answer, Join waits. A view that is missing, or older than the log, is made from the newest snapshot.
//
// From then on nothing ends the node but Drain, Close, ErrIDUsed and shardlog.ErrExported. If its host dies, it waits again, after a pause of 1, 2, 4 and
// at most 60 s unless another node has taken over.
func Join(ctx context.Context, o Options, defs ...object.Definition) (*Node, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	n := &Node{
		o: o, defs: defs, seams: &o.Seams,
		joined: make(chan struct{}), hurry: make(chan struct{}, 1), probes: make(chan struct{}, 1), asks: make(chan struct{}, 1),
		beaten: make(chan struct{}), done: make(chan struct{}), news: make(chan struct{}),
	}
	n.pulse.seams, n.watch.id = n.seams, o.ID
	n.probes <- struct{}{}
	n.asks <- struct{}{}
	n.ctx, n.leave = context.WithCancelCause(context.Background())
	first, stop := context.WithCancel(ctx) // ends with the node too
	defer stop()
	n.seams.Executor.Go("cluster/run", func() {
		defer stop()
		n.run()
	})
	if n.seams.Executor.Wait(first, n.joined) == nil {
		return n, nil
	}
	n.leave(seam.Cause(ctx)) // if ctx lives, run has given a cause, and this one changes nothing
	_ = n.seams.Executor.Wait(context.Background(), n.done)
	return nil, n.Err()
}

// Invoke implements object.Caller. At a node that does not serve it returns *ErrMoved. A call that comes right before the host ends gets
// the error of the host, because it may have begun its turn: object.ErrUnknown if it may have committed.
func (n *Node) Invoke(ctx context.Context, r *object.Request) error {
	h, ok := n.Active()
	if !ok {
		return n.movedTo()
	}
	return h.Invoke(ctx, r)
}

// Active returns the host of this node, if the node serves, and nil otherwise. The host may end at any time; see object.Host.Done.
func (n *Node) Active() (*object.Host, bool) {
	h := n.host.Load()
	if h == nil {
		return nil, false
	}
	select {
	case <-h.Done(): // no mutex, because each call comes by here
		return nil, false
	default:
		return h, true
	}
}

// movedTo is the error of a call at this node while it does not serve.
func (n *Node) movedTo() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	id, row := n.watch.owner()
	if id == n.o.ID || released(row) {
		return &ErrMoved{}
	}
	return &ErrMoved{Owner: id, Addr: row.Addr}
}

// Changed returns a channel that is closed when the node begins or ceases to serve, when the node ends, and at each of its looks at the others,
// twice a second. Call it before a look at Active, so that no change is missed.
func (n *Node) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.news
}

// Serving waits until this node serves and returns its host. It returns the cause of ctx if that ends first, and Err if the node ends.
func (n *Node) Serving(ctx context.Context) (*object.Host, error) {
	for {
		changed := n.Changed()
		if h, ok := n.Active(); ok {
			return h, nil
		}
		if err := n.Err(); err != nil {
			return nil, err
		}
		if err := n.seams.Executor.Wait(ctx, changed); err != nil {
			return nil, err
		}
	}
}

// Err returns why the node leaves the cluster, or nil while it does not: ErrClosed, ErrIDUsed or shardlog.ErrExported.
func (n *Node) Err() error { return context.Cause(n.ctx) }

// Done is closed when the node has ended.
func (n *Node) Done() <-chan struct{} { return n.done }

// Drain ends the node in order: calls get *ErrMoved from now on, those under way may end until ctx does, the host shuts down, and the last
// beat tells the others, of which one takes over at once. Drain returns when all of that is done, at most about ten seconds after the
// end of ctx, with the error of object.Host.Shutdown. A server that shares the node drains before it closes its listener, because waiting
// nodes take a refused connection for the death of the process.
func (n *Node) Drain(ctx context.Context) error {
	n.mu.Lock()
	if n.grace == nil {
		n.grace = ctx
	}
	n.mu.Unlock()
	n.leave(ErrClosed)
	_ = n.seams.Executor.Wait(context.Background(), n.done)
	return n.endErr
}

// Close is Drain with a limit of ten seconds. A second call returns the same error.
func (n *Node) Close() error {
	ctx, cancel := n.limit(context.Background(), graceMost)
	defer cancel()
	return n.Drain(ctx)
}

// changed tells those that wait for a change. Node.mu must be held.
func (n *Node) changed() {
	close(n.news)
	n.news = make(chan struct{})
}

// beatNow makes the next beat come at once.
func (n *Node) beatNow() {
	select {
	case n.hurry <- struct{}{}:
	default:
	}
}
