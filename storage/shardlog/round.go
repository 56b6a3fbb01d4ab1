package shardlog

import (
	"fmt"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/row"
	"github.com/holdfast-dev/holdfast/storage/engine"
)

// The payload of a record is a row of frames: the length of a batch as a uvarint, and the batch without its first
// seqBytes, which hold the sequence number of the view.
const seqBytes = 8

// round is the batches between two appends.
type round struct {
	frames []byte
	left   atomic.Int64 // batches that the view has yet to take

	// Where the round ends in the log, once it is there.
	last  Position
	chain uint64
}

// maxSpareBytes bounds the memory that a round gets before its first batch.
const maxSpareBytes = 1 << 20

// newRound returns a round that is expected to become as long as the one before. Its memory is new, because the
// records of the one before are kept.
func newRound(sizeBytes int) *round {
	return &round{frames: make([]byte, 0, min(sizeBytes, maxSpareBytes))}
}

// add appends the frame of a batch. The view has yet to take it.
func (r *round) add(repr []byte) {
	r.frames = AppendBatch(r.frames, repr)
	r.left.Add(1)
}

// AppendBatch appends a batch to a payload, which Batches reads. repr is in the form that engine.Engine.Apply takes.
func AppendBatch(payload, repr []byte) []byte { return row.Writer(payload).Bytes(repr[seqBytes:]) }

// split cuts the frames of a round into payloads of at most limit bytes, between batches. A larger batch is a payload of its own.
func split(frames []byte, limit int) (first, rest []byte) {
	if len(frames) <= limit {
		return frames, nil
	}
	at := 0
	for r := row.Read(frames); r.Len() > 0; {
		r.Bytes()
		next := len(frames) - r.Len()
		if at > 0 && next > limit {
			break
		}
		at = next
	}
	return frames[:at:at], frames[at:]
}

// Batches calls f with each batch of a payload, in the form that engine.Engine.Apply takes, until f fails. The
// batch is valid during the call. An error of the payload wraps ErrHole.
func Batches(payload []byte, f func(repr []byte) error) error {
	var repr []byte
	for r := row.Read(payload); r.Len() > 0; {
		batch := r.Bytes()
		r.Required()
		if !r.OK() || len(batch) < engine.HeaderBytes-seqBytes {
			return fmt.Errorf("%w: a batch of the record is cut off", ErrHole)
		}
		repr = append(append(repr[:0], make([]byte, seqBytes)...), batch...)
		if err := f(repr); err != nil {
			return err
		}
	}
	return nil
}
