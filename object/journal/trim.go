package journal

import (
	"context"

	"github.com/holdfast-dev/holdfast/object"
)

// The most rows that the batch of one snapshot removes. They bound the work of an Append
// after Keep was lowered. More events are removed than are appended between two
// snapshots, so the rest becomes smaller each time.
const (
	maxSnapshotsTrimmed = 16
	maxEventsTrimmed    = 1000
)

// plan returns which rows the snapshot at seq makes needless, and how far the past is
// removed with them. Snapshots are removed before the events that they would need: a
// state can be folded from base on, and events before base are of no use.
//
//	base ≤ seq - Keep: At works for each of the last Keep events before the snapshot
func (j *Journal[State, Event]) plan(ctx context.Context, seq uint64) (past trimmed, old []string, err error) {
	past = j.trimmed
	if j.options.Keep < 0 || seq < uint64(j.options.Keep) {
		return past, nil, nil
	}
	bases, err := j.bases(ctx, seq, seq-uint64(j.options.Keep))
	if err != nil {
		return past, nil, err
	}
	var before []string
	if past.base > 0 {
		before = append(before, snapshotKey(past.base))
	}
	for _, b := range bases {
		if !b.unreadable {
			old, before, past.base = append(old, before...), nil, b.seq
		}
		before = append(before, snapshotKey(b.seq))
	}
	last := past.base
	if room := max(maxEventsTrimmed, 2*(seq-j.snapshot)); last >= past.first+room {
		last = past.first + room - 1
	}
	for ; past.first <= last; past.first++ {
		old = append(old, eventKey(past.first))
	}
	return past, old, nil
}

// bases returns the snapshots after the present base that can take its place, in order:
// those up to the sequence number most, and at last the one at seq that is being written.
func (j *Journal[State, Event]) bases(ctx context.Context, seq, most uint64) ([]base, error) {
	if j.base > 0 && j.base == j.snapshot && most == seq { // as nearly always with Keep 0
		return []base{{seq: seq}}, nil
	}
	var found []base
	o := object.ListOptions{Prefix: snapshotPrefix, StartAfter: snapshotKey(j.base), End: snapshotKey(most + 1), Limit: maxSnapshotsTrimmed}
	for item, err := range j.st.Storage().List(ctx, o) {
		if err != nil {
			return nil, err
		}
		b, err := j.seqOf(item.Key, snapshotPrefix)
		if err != nil {
			return nil, err
		}
		version, _, _, ok := decodeSnapshot(item.Value)
		found = append(found, base{b, ok && j.unreadable(version)})
	}
	if most == seq && len(found) < maxSnapshotsTrimmed {
		found = append(found, base{seq: seq})
	}
	return found, nil
}

// base is a snapshot that may take the place of the present base. One that is unreadable cannot,
// because the events after it are folded from those before it.
type base struct {
	seq        uint64
	unreadable bool
}
