package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// ErrNoNode: no node with the id has a row, or it has left the cluster.
var ErrNoNode = errors.New("cluster: no such node")

// Drain has the node of an id leave the cluster in order, from any process, and returns when it has. It takes the row of the node over with a mark that the
// node finds at its next beat; then the node does as Node.Drain with a limit of ten seconds. No connection to the node is needed. It returns ErrNoNode if there is no
// such node, or if it has nothing open at the moment, and the cause of ctx if that ends first: then the node may have gone without a word, or is still at it, and Drain may be called again.
func Drain(ctx context.Context, log Log, shard int, id string, seams seam.Seams) error {
	seams = seams.WithDefaults()
	look, err := log.Look(ctx, shard)
	if err != nil {
		return fmt.Errorf("cluster: drain node %s: %w", id, err)
	}
	row, ok := rowOf(look, id)
	if !ok || released(row) {
		return fmt.Errorf("%w: %s", ErrNoNode, id)
	}
	if !row.Draining {
		row.Incarnation, row.Draining = 0, true // a new incarnation, so that the beats of the node are refused
		if _, err := log.Beat(ctx, shard, row); err != nil {
			return fmt.Errorf("cluster: drain node %s: %w", id, err)
		}
	}
	for {
		if err := seams.Sleep(ctx, shardlog.LookEvery); err != nil {
			return fmt.Errorf("cluster: drain node %s: it has not left yet: %w", id, err)
		}
		look, err := log.Look(ctx, shard)
		if err != nil {
			continue // the end of ctx ends the loop
		}
		if row, ok := rowOf(look, id); !ok || released(row) {
			return nil
		}
	}
}

// rowOf is the row of a node in a look.
func rowOf(look shardlog.Look, id string) (shardlog.Node, bool) {
	for _, n := range look.Nodes {
		if n.ID == id {
			return n, true
		}
	}
	return shardlog.Node{}, false
}
