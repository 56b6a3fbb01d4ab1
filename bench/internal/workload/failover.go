package workload

import (
	"context"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Silence is the setting beside which a fail-over stands: the time of the five looks at one beat after which package shardlog takes a node for
// silent. The first look may come right after that beat, and the node may stand still just before its next one, so a fail-over may be a second shorter.
const Silence = 5 * shardlog.LookEvery

// warmAfter is how long a node follows before the other one is struck: time for two looks, so that it has connected to the owner
// and its view has all of the log.
const warmAfter = 2 * shardlog.LookEvery

// Fault is how the node that serves is struck.
type Fault struct {
	strike func(*nodeProcess) error
	heal   func(n *Nodes, i int) error // brings node i back
}

// Paused: the node is stopped by SIGSTOP. Its address still takes connections, so its silence alone tells of it.
var Paused = Fault{
	func(p *nodeProcess) error { return p.cmd.Process.Signal(syscall.SIGSTOP) },
	func(n *Nodes, i int) error { return n.all[i].cmd.Process.Signal(syscall.SIGCONT) },
}

// Killed: the node is killed with signal 9. Its address refuses connections.
var Killed = Fault{
	func(p *nodeProcess) error { return p.cmd.Process.Kill() },
	func(n *Nodes, i int) error {
		id := n.all[i].ID
		n.end(i)
		return n.start(i, id)
	},
}

// FailOver strikes the node that serves when the other one is warm, and returns how long it took until that one had answered a call that
// is durable. It brings the first one back.
func (n *Nodes) FailOver(ctx context.Context, f Fault) (time.Duration, error) {
	i, _, err := n.settled(ctx)
	if err != nil {
		return 0, err
	}
	struck, next := n.all[i], n.all[1-i]
	struck.struck = true
	at := time.Now()
	if err := f.strike(struck); err != nil {
		return 0, err
	}
	if err := n.await(ctx, "an answer of node "+next.ID, func() bool { return next.at.After(at) }); err != nil {
		return 0, err
	}
	n.failovers++
	took := next.at.Sub(at)
	if err := f.heal(n, i); err != nil {
		return 0, err
	}
	n.all[i].struck = false
	return took, nil
}

// settled waits until one node serves and the other one is warm behind it, and then for a moment, so that the strikes meet all moments between two
// beats. It returns which one serves, and its term.
func (n *Nodes) settled(ctx context.Context) (i int, term uint64, err error) {
	for {
		from := time.Now()
		err := n.await(ctx, "a node that serves and one that follows it", func() (is bool) {
			i, is = n.server(from)
			return is
		})
		if err == nil {
			err = n.pass(ctx, warmAfter+n.shift(shardlog.LookEvery))
		}
		if err != nil {
			return 0, 0, err
		}
		if now, is := n.server(from); is && now == i {
			look, err := n.log.Look(ctx, 0)
			return i, look.State.Term, err
		}
	}
}

// server is the node that has answered since a time and that the other one follows.
func (n *Nodes) server(since time.Time) (i int, is bool) {
	for i, p := range n.all {
		if p.at.After(since) && p.follows == "" && n.all[1-i].follows == p.ID {
			return i, true
		}
	}
	return 0, false
}

// FalseTerms waits until the last fail-over is over, and returns how many terms have begun without one.
func (n *Nodes) FalseTerms(ctx context.Context) (int, error) {
	_, term, err := n.settled(ctx)
	return falseTerms(n.began, term, n.failovers), err
}

// falseTerms is how many terms have begun beyond one a fail-over.
func falseTerms(began, now uint64, failovers int) int { return int(now-began) - failovers }
