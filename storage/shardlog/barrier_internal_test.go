package shardlog

import (
	"testing"

	"github.com/holdfast-dev/holdfast/storage"
)

// A batch that comes after an empty round was taken is in the next round, and there alone. Otherwise the goroutine that
// found the round empty would append it beside the batches that join it.
func TestBatchAfterAnEmptyRoundWasTaken(t *testing.T) {
	b := &barrier{round: newRound(0)}
	empty, upTo, err := b.take()
	if err != nil || upTo != 0 {
		t.Fatalf("an empty round is up to batch %d: %v", upTo, err)
	}
	var batch storage.Batch
	batch.SetMeta("row", nil)
	joined, err := b.join(batch.Repr())
	if err != nil || joined == empty {
		t.Errorf("the batch joined the round that was taken: %v", err)
	}
	taken, upTo, err := b.take()
	if err != nil || taken != joined || upTo != 1 || taken.left.Load() != 1 {
		t.Errorf("the next round is another than that of the batch, or up to batch %d: %v", upTo, err)
	}
	if again, _, _ := b.take(); again != nil {
		t.Error("a round was taken twice")
	}
}
