package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/testing/machine"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/snapshot"
)

// Proves N10: a snapshot has each commit that was acknowledged before it, though no table of the view had it yet.
func TestSnapshotHasAllThatWasAcknowledged(t *testing.T) {
	w := machine.New(t, -1)
	s, err := w.Open("view")
	machine.Must(t, "open", err)
	for i := range 3 {
		machine.Must(t, "commit", machine.Set(s, "x", fmt.Sprint(i)))
		last := w.Head().Last
		taken, err := w.Snapshots().Take(t.Context(), s, w.Term(), "view.snapshot")
		machine.Must(t, "take", err)
		if taken.Last < last {
			t.Errorf("the snapshot ends at record %d, the log had %d before it", taken.Last, last)
		}
		if _, err := w.Disk.Stat("view.snapshot"); err == nil {
			t.Error("the scratch directory is left")
		}
		machine.Must(t, "verify", w.Snapshots().Verify(t.Context(), taken))
	}
	machine.Must(t, "close", s.Close())
	w.Equal("at the end", nil)
}

// Proves N10: a snapshot and the records behind it are the log, whatever was committed, synced and flushed before, and whatever was truncated.
func TestSnapshotAndTheRestAreTheLog(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { randomLife(t, seed) })
	}
}

// randomLife is that of a store with random commits, snapshots, truncations and moves to other machines.
func randomLife(t *testing.T, seed uint64) {
	w := machine.New(t, -1)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := "view"
	s, err := w.Open(dir)
	machine.Must(t, "open", err)
	taken, trimmed, moved := 0, 0, 0
	for step := range 150 {
		about := fmt.Sprintf("seed %d, step %d", seed, step)
		switch r.IntN(15) {
		case 0:
			machine.Must(t, about, take(w, s))
			taken++
			w.Equal(about, nil)
		case 1:
			first := w.Head().First
			machine.Must(t, about, w.Snapshots().Trim(t.Context(), w.Term()))
			if w.Head().First > first {
				trimmed++
			}
			machine.Must(t, about, s.WaitSeen(t.Context())) // so that nothing is appended beside the comparison
			w.Equal(about, nil)
		case 2:
			if r.IntN(2) == 0 {
				machine.Must(t, about, s.Close())
			} else {
				_ = s.Abandon() // it has given up what was not acknowledged, and says so
			}
			dir = fmt.Sprint("machine/", r.IntN(3))
			if s, err = w.Open(dir); errors.Is(err, shardlog.ErrTruncated) {
				_, err = w.Snapshots().Restore(t.Context(), dir)
				machine.Must(t, about, err)
				s, err = w.Open(dir)
				moved++
			}
			machine.Must(t, about, err)
		default:
			var b storage.Batch
			randomBatch(&b, r)
			ticket, err := s.Commit(&b)
			if err == nil && r.IntN(2) == 0 {
				err = s.WaitDurable(ticket)
			}
			machine.Must(t, about, err)
		}
	}
	machine.Must(t, "close", s.Close())
	w.Equal("at the end", nil)
	if taken == 0 {
		t.Errorf("seed %d took no snapshot: choose other seeds", seed)
	}
	t.Logf("seed %d: %d snapshots, %d truncations, %d restores", seed, taken, trimmed, moved)
}

// take takes a snapshot of the owner.
func take(w *machine.World, s *storage.Store) error {
	_, err := w.Snapshots().Take(context.Background(), s, w.Term(), "scratch")
	return err
}

// randomBatch changes some of 40 rows of the store itself, which lie side by side.
func randomBatch(b *storage.Batch, r *rand.Rand) {
	name := func() string { return fmt.Sprintf("row/%02d", r.IntN(40)) }
	for range 1 + r.IntN(4) {
		switch r.IntN(8) {
		case 0:
			b.DeleteMeta(name())
		case 1:
			from, to := r.IntN(40), r.IntN(40)
			b.DeleteRange([]byte(machine.Meta(fmt.Sprintf("row/%02d", min(from, to)))), []byte(machine.Meta(fmt.Sprintf("row/%02d", max(from, to)))))
		default:
			b.SetMeta(name(), []byte(fmt.Sprint(r.Uint64(), strings.Repeat("v", r.IntN(3000)))))
		}
	}
}

// A log without a snapshot needs none if it begins at 1, and cannot be read if it begins later. Restore makes nothing of both.
func TestRestoreOfALogWithoutASnapshot(t *testing.T) {
	w := machine.New(t, -1)
	if _, err := w.Snapshots().Restore(t.Context(), "new"); !errors.Is(err, snapshot.ErrNone) {
		t.Errorf("a log that begins at 1: %v", err)
	}
	w.Log.SetBase(0, 4, 7)
	if _, err := w.Snapshots().Restore(t.Context(), "new"); !errors.Is(err, shardlog.ErrTruncated) {
		t.Errorf("a log that begins at 5: %v", err)
	}
	if _, err := w.Disk.Stat("new"); err == nil {
		t.Error("the directory was made")
	}
}
