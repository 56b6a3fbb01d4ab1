package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// PutBack ends the quarantine of a log by the records that it has lost, from a rescue file, and returns which were put back: those of the file that the
// log lacks. They are the same records at the same places, so that all views, also those that are ahead, go on from them. o.Dir does not count.
//
// It changes nothing and returns ErrNothingLost if the log is not in quarantine, and ErrNotPutBack with the reason if the file is of another cluster or shard,
// if the log has all of its records, if records between the log and the file are missing too, or if an owner has appended since the loss: then
// only AcceptLoss is left, and Contents tells what is lost. The other errors are those of the log. After any error or a crash it may be called again.
func PutBack(ctx context.Context, o Recovery, r shardlog.Rescue) (Recovered, error) {
	o, err := o.complete()
	if err != nil {
		return Recovered{}, err
	}
	done, err := o.putBack(ctx, r)
	if err != nil {
		return Recovered{}, fmt.Errorf("cluster: put records back into shard %d: %w", o.Shard, err)
	}
	return done, nil
}

func (o Recovery) putBack(ctx context.Context, r shardlog.Rescue) (Recovered, error) {
	name, err := o.Log.Cluster(ctx)
	switch {
	case err != nil:
		return Recovered{}, err
	case r.Cluster != "" && r.Cluster != name:
		return Recovered{}, fmt.Errorf("%w: they are of cluster %q, and this is cluster %q", ErrNotPutBack, r.Cluster, name)
	case r.Shard != o.Shard:
		return Recovered{}, fmt.Errorf("%w: they are of shard %d, and this is shard %d", ErrNotPutBack, r.Shard, o.Shard)
	case len(r.Records) == 0:
		return Recovered{}, fmt.Errorf("%w: there are none", ErrNotPutBack)
	}
	head, err := o.Log.Head(ctx, o.Shard)
	switch {
	case err != nil:
		return Recovered{}, err
	case head.Lost == "":
		return Recovered{}, ErrNothingLost
	}
	before, records, err := lacking(head, r)
	if err != nil {
		return Recovered{}, err
	}
	done := Recovered{Shard: o.Shard, Quarantine: head.Lost, From: records[0].At, To: records[len(records)-1].At}
	return done, o.end(ctx, head.Term, before, records)
}

// lacking are the records of a rescue that go on from the end of a log, and the chain before them.
func lacking(head shardlog.State, r shardlog.Rescue) (before uint64, records []shardlog.Record, err error) {
	first, last := r.Records[0].At, r.Records[len(r.Records)-1].At
	switch {
	case head.Last+1 < first:
		return 0, nil, fmt.Errorf("%w: they begin at record %d, and the log ends at record %d: put those between back first, from the file of another node", ErrNotPutBack, first, head.Last)
	case head.Last > last:
		return 0, nil, fmt.Errorf("%w: an owner has appended since the loss: they end at record %d, and the log at record %d", ErrNotPutBack, last, head.Last)
	}
	before, records = r.Before, r.Records
	if n := head.Last + 1 - first; n > 0 {
		before, records = r.Records[n-1].Chain, r.Records[n:]
	}
	switch {
	case head.Chain != before:
		return 0, nil, fmt.Errorf("%w: record %d of the log is another than the one before them: an owner has appended since the loss", ErrNotPutBack, head.Last)
	case len(records) == 0:
		return 0, nil, fmt.Errorf("%w: the log has them all, and has lost others: look for the file of another node", ErrNotPutBack)
	}
	return before, records, nil
}

// Lost is what one record of a rescue file has, for an operator to decide about it.
type Lost struct {
	At      shardlog.Position `json:"at"`
	Term    uint64            `json:"term"`
	Bytes   int               `json:"bytes"`
	Commits int               `json:"commits"`
	Sets    int               `json:"sets"`    // rows that were set
	Deletes int               `json:"deletes"` // rows, or ranges of rows, that were deleted
	// Objects are those that the rows name: by an alarm, an event, a message, or the begin of a life. Rows of data have a number alone, so an object
	// may be missing here.
	Objects []storage.ID `json:"objects"`
}

// Contents tells what the records of a rescue file have, in their order. It returns an error that wraps shardlog.ErrHole for a record
// that no program has written.
func Contents(r shardlog.Rescue) (all []Lost, err error) {
	for _, record := range r.Records {
		l := Lost{At: record.At, Term: record.Term, Bytes: len(record.Payload), Objects: []storage.ID{}}
		met := make(map[storage.ID]bool)
		err := shardlog.Batches(record.Payload, func(repr []byte) error {
			l.Commits++
			return engine.ReadBatch(repr, func(row engine.Record) {
				if row.Deleted {
					l.Deletes++
				} else {
					l.Sets++
				}
				if id, ok := storage.NamedBy(row.Key); ok && !met[id] {
					met[id] = true
					l.Objects = append(l.Objects, id)
				}
			})
		})
		if err != nil {
			return nil, fmt.Errorf("cluster: record %d: %w", record.At, errors.Join(shardlog.ErrHole, err))
		}
		all = append(all, l)
	}
	return all, nil
}
