package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/snapshot"
)

const (
	snapshotLook  = time.Second // between two looks whether a snapshot is due
	snapshotAgain = time.Minute // after one that failed
)

// snapshots are the options of package snapshot.
func (n *Node) snapshots() snapshot.Options {
	return snapshot.Options{
		Directory: n.o.Log, Blobs: n.o.Log, Log: n.o.Log, Shard: n.o.Shard,
		BytesPerSecond: n.o.Snapshots.BytesPerSecond, MinFreeBytes: n.o.Storage.MinFreeBytes, FS: n.o.Storage.Pebble.FS,
		Seams: n.o.Seams, Logger: n.o.Logger,
	}
}

// keepSnapshots makes snapshots on a goroutine of its own, until ctx ends or the host does. The result is closed then.
func (n *Node) keepSnapshots(ctx context.Context, h *object.Host) <-chan struct{} {
	ended := make(chan struct{})
	n.mu.Lock()
	e := n.engine
	n.mu.Unlock()
	n.seams.Executor.Go("cluster/snapshots", func() {
		defer close(ended)
		d := n.o.Snapshots.clock(n.seams.Steady())
		for !n.o.Snapshots.Off && h.Err() == nil && n.seams.Sleep(ctx, snapshotLook) == nil {
			bytes := e.AppendedBytes()
			if !d.due(bytes, n.seams.Steady()) {
				continue
			}
			err := n.snapshot(ctx, h, e)
			switch {
			case err == nil:
			case ctx.Err() != nil || errors.Is(err, shardlog.ErrFenced):
				return
			default:
				n.o.Logger.Error("the snapshot has failed: it is tried again in a minute", "error", err)
			}
			d.taken(bytes, n.seams.Steady(), err == nil)
		}
	})
	return ended
}

// snapshot takes a snapshot and truncates the log. A crash of an earlier process may have left the scratch directory.
func (n *Node) snapshot(ctx context.Context, h *object.Host, e *shardlog.Engine) error {
	scratch := n.o.in(scratchDir)
	if err := n.o.Storage.Pebble.Dir(scratch).FS.RemoveAll(scratch); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	s := n.snapshots()
	taken, err := s.Take(ctx, h.Store(), e.Term(), scratch)
	if err != nil {
		return err
	}
	n.o.Logger.Info("a snapshot is taken", "record", taken.Last)
	return s.Trim(ctx, e.Term())
}

// restore makes the view anew from the newest snapshot.
func (n *Node) restore() error {
	restored, err := n.snapshots().Restore(n.ctx, n.o.in(viewDir))
	if err == nil {
		n.o.Logger.Info("the view is that of a snapshot now, because it was older than the log, or absent", "record", restored.Last)
	}
	return err
}

// snapshotClock tells when a snapshot is due.
type snapshotClock struct {
	o     Snapshots
	bytes uint64    // that were appended when the last one began
	at    time.Time // steady; when it ended, or the owner began
	not   time.Time // steady; none is due before
}

func (o Snapshots) clock(now time.Time) *snapshotClock { return &snapshotClock{o: o, at: now} }

// due reports whether a snapshot is due, when so many bytes were appended since the owner began.
func (c *snapshotClock) due(bytes uint64, now time.Time) bool {
	fresh := bytes - c.bytes
	return !now.Before(c.not) && (fresh >= c.o.EveryBytes || fresh > 0 && now.Sub(c.at) >= c.o.Every)
}

// taken notes the end of a snapshot, which began when so many bytes were appended.
func (c *snapshotClock) taken(bytes uint64, now time.Time, ok bool) {
	if !ok {
		c.not = now.Add(snapshotAgain)
		return
	}
	c.bytes, c.at = bytes, now
}
