package shardlog

import (
	"bytes"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// PositionKey is the key of the position row.
var PositionKey = positionKey

// ClusterKey is the key of the cluster row.
var ClusterKey = clusterKey

// LossKey is the key of the row of a loss.
var LossKey = lossKey

// Kept are the records that an engine keeps.
func (e *Engine) Kept() []Record {
	_, records := e.kept.all()
	return records
}

// End is the last record that the engine knows of, and its term. No call may be under way.
func (e *Engine) End() (at Position, chain, term uint64) { return e.last, e.chain, e.term }

// SealedRescue is a rescue file with a body and the chain of its end.
func SealedRescue(body []byte, chain uint64) []byte {
	b := binary.BigEndian.AppendUint64(append([]byte(rescueHead), body...), chain)
	return binary.BigEndian.AppendUint64(b, xxhash.Sum64(b))
}

// ProofBytes is the content of that file.
func ProofBytes(at Position, chain uint64) []byte { return place{at, chain}.proof() }

// RescueBytes is the content of a rescue file.
func RescueBytes(r Rescue) ([]byte, error) {
	var b bytes.Buffer
	err := r.write(&b)
	return b.Bytes(), err
}
