package cluster

import (
	"errors"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// probeMost is how long a connection to the owner may take.
const probeMost = 300 * time.Millisecond

// probe looks whether the process of the owner is there, on a goroutine of its own, unless one looks already. An address refuses
// connections as soon as its process is gone, so a process that was killed is replaced before its silence shows.
func (n *Node) probe() {
	n.mu.Lock()
	id, row := n.watch.owner()
	waits := !n.ready.IsZero() && n.engine == nil && id != n.o.ID && row.Addr != "" && !row.Draining && !n.ended
	n.mu.Unlock()
	if !waits {
		return
	}
	select {
	case <-n.probes:
	default:
		return
	}
	n.seams.Executor.Go("cluster/probe", func() {
		defer func() { n.probes <- struct{}{} }()
		n.connect(row)
	})
}

// connect connects to an owner. Two refusals in a row make the owner silent, if this node has connected to it before: a program
// with a wrong address would otherwise be replaced again and again. A connection that times out says nothing.
func (n *Node) connect(owner shardlog.Node) {
	err := n.dial(owner.Addr)
	n.mu.Lock()
	if err == nil {
		n.reached = owner.Incarnation
	}
	known := n.reached == owner.Incarnation
	n.mu.Unlock()
	if !known || !refused(err) || !refused(n.dial(owner.Addr)) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if id, row := n.watch.owner(); id == owner.ID && row.Incarnation == owner.Incarnation && row.Beat == owner.Beat {
		n.o.Logger.Info("the address of the owner refuses connections: its process is gone", "owner", id, "addr", owner.Addr)
		n.watch.silence.Hint(id)
		n.changed()
	}
}

// dial is Options.Dial with a limit of time.
func (n *Node) dial(addr string) error {
	ctx, cancel := n.limit(n.ctx, probeMost)
	defer cancel()
	return n.o.Dial(ctx, addr)
}

func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
