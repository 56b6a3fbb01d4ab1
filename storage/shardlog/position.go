package shardlog

import (
	"encoding/binary"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
)

// positionRow is the name of the row of the view that says up to where it has the log, at least. The row is in no record.
const positionRow = "log"

// positionKey is the key of the row: shard ffff, kind 00, see FORMAT.md.
var positionKey = append([]byte{0xff, 0xff, 0x00}, positionRow...)

// readPosition reads the position of a view, and the chain of the record there. An empty view has position 0.
func readPosition(view engine.Engine) (at Position, chain uint64, err error) {
	p, err := readPlace(view, positionKey)
	return p.at, p.chain, err
}

// readPlace reads a row of the view that names a record: its position and its chain. It is the zero place if there is no row.
func readPlace(view engine.Engine, key []byte) (place, error) {
	v, closer, err := view.Get(key)
	switch {
	case err == engine.ErrNotFound:
		return place{}, nil
	case err != nil:
		return place{}, err
	}
	defer closer.Close()
	if len(v) != 16 {
		return place{}, fmt.Errorf("%w: row %q of the view: %x", engine.ErrCorrupt, key[3:], v)
	}
	return place{Position(binary.BigEndian.Uint64(v)), binary.BigEndian.Uint64(v[8:])}, nil
}

// writePlace stores such a row in the view.
func writePlace(view engine.Engine, name string, p place) error {
	var b storage.Batch
	v := binary.BigEndian.AppendUint64(nil, uint64(p.at))
	b.SetMeta(name, binary.BigEndian.AppendUint64(v, p.chain))
	return view.Apply(b.Repr())
}

// writePosition stores the position in the view. It may come after a later one, because the row is a lower bound.
func writePosition(view engine.Engine, at Position, chain uint64) error {
	return writePlace(view, positionRow, place{at, chain})
}

// lossRow is the name of the row of the view that says which loss the directory of the cluster was told of by this view. The row is
// in no record.
const lossRow = "lost"

// lossKey is the key of the row.
var lossKey = append([]byte{0xff, 0xff, 0x00}, lossRow...)

// keepLoss notes durably which lost record the view has told of.
func keepLoss(view engine.Engine, p place) error {
	if err := writePlace(view, lossRow, p); err != nil {
		return err
	}
	return view.Sync()
}

// forgetLoss removes the note, because the lost records are back.
func forgetLoss(view engine.Engine) error {
	if told, err := readPlace(view, lossKey); err != nil || told == (place{}) {
		return err
	}
	var b storage.Batch
	b.DeleteMeta(lossRow)
	return view.Apply(b.Repr())
}
