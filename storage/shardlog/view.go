package shardlog

import (
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
)

// PositionRow is the name of the row that says up to where a view has its log: a row of the store (storage.Batch.SetMeta) that
// stands in no record.
const PositionRow = positionRow

// ViewPosition reads the position of a view and the chain of the record there. The view has all records up to it, and perhaps
// batches of later ones. A view that has nothing has position 0.
func ViewPosition(view engine.Engine) (at Position, chain uint64, err error) {
	return readPosition(view)
}

// SetViewPosition says that a view has all records of its log up to a position, with the chain of the last one. It
// removes the rows that the view has of another log: the name of its cluster, a loss, and an export. The caller makes it durable by a Sync.
func SetViewPosition(view engine.Engine, at Position, chain uint64) error {
	var b storage.Batch
	for _, row := range []string{clusterRow, lossRow, ExportRow} {
		b.DeleteMeta(row)
	}
	if err := view.Apply(b.Repr()); err != nil {
		return err
	}
	return writePosition(view, at, chain)
}
