package cluster

import (
	"errors"
	"fmt"
)

// ErrMoved is the error of a call at a node that does not serve. The call has begun no turn, so it may be made again as it is, at
// Addr or, when Addr is empty, here a little later.
type ErrMoved struct {
	// Owner is the id of the node that owns the store, as far as this node knows. Empty: no node does.
	Owner string
	// Addr is the address of the owner. It is empty if it is not known, and while this node itself is about to serve.
	Addr string
}

func (e *ErrMoved) Error() string {
	if e.Addr == "" {
		return "cluster: this node does not serve, and knows of no other that does: try again a little later"
	}
	return fmt.Sprintf("cluster: node %s serves: send the call to %s", e.Owner, e.Addr)
}

// Errors with which a node ends, or ceases to serve.
var (
	// ErrClosed: Drain or Close was called, or the node was drained from outside.
	ErrClosed = errors.New("cluster: the node has left the cluster")
	// ErrIDUsed: another process has joined with the id of this node.
	ErrIDUsed = errors.New("cluster: another process has the id of this node: give each process an id of its own")
	// ErrClock: the clock of the node is more than five seconds off the clock of the log.
	ErrClock = errors.New("cluster: the clock of this machine is wrong: set it right, for example with NTP")
)
