package snapshot

import (
	"context"
	"fmt"
)

// Trim removes the records of the log up to the second newest snapshot, and the blobs that no snapshot names any more. Before it removes
// records it reads that snapshot back (Verify), because it is the one that is left if the newest turns out to be damaged. Records that are
// gone need no second look: Trim without a new snapshot verifies nothing.
//
// It removes nothing and returns shardlog.ErrFenced if term is not the newest or the shard is in quarantine, and the
// errors of Verify if the snapshot is not whole: take another one then. After any error it may be called again.
func (o Options) Trim(ctx context.Context, term uint64) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if err := o.truncate(ctx, term); err != nil {
		return o.wrap("trimming", err)
	}
	o.Seams.At("snapshot/collect", "")
	if err := o.Blobs.Collect(ctx, o.Shard, term); err != nil {
		return o.wrap("trimming", fmt.Errorf("collect blobs: %w", err))
	}
	return nil
}

// truncate removes the records that the second newest snapshot has.
func (o Options) truncate(ctx context.Context, term uint64) error {
	head, err := o.owned(ctx, term) // before the work of a verification
	if err != nil {
		return err
	}
	all, err := o.Directory.Snapshots(ctx, o.Shard)
	if err != nil {
		return fmt.Errorf("list snapshots: %w", err)
	}
	if len(all) < 2 || all[1].Last < head.First {
		return nil
	}
	second := all[1]
	if err := o.verify(ctx, second); err != nil {
		return err
	}
	o.Seams.At("truncate", "")
	if err := o.Log.Truncate(ctx, o.Shard, term, second.Last); err != nil {
		return fmt.Errorf("truncate: %w", err)
	}
	o.Logger.Info("snapshot: the log is truncated", "record", second.Last)
	return nil
}
