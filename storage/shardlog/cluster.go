package shardlog

import (
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
)

// ErrOtherCluster: the view is one of another cluster than Options.Cluster.
var ErrOtherCluster = errors.New("shardlog: the directory is a view of another cluster: name another directory, or remove this one")

// clusterRow is the name of the row of the view that has the name of its cluster. The row is in no record.
const clusterRow = "cluster"

// clusterKey is the key of the row.
var clusterKey = append([]byte{0xff, 0xff, 0x00}, clusterRow...)

// joinCluster compares the name of the cluster with that of a view, and gives it to a view without one. The row comes before all
// records, so a table that has a record of an empty view has the row too.
func joinCluster(view engine.Engine, name string) error {
	if name == "" {
		return nil
	}
	v, closer, err := view.Get(clusterKey)
	if err == engine.ErrNotFound {
		var b storage.Batch
		b.SetMeta(clusterRow, []byte(name))
		return view.Apply(b.Repr())
	}
	if err != nil {
		return err
	}
	defer closer.Close()
	if string(v) != name {
		return fmt.Errorf("%w: it is one of %q, and Options.Cluster is %q", ErrOtherCluster, v, name)
	}
	return nil
}
