package cluster

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Status is a cluster at one moment, for people and as JSON.
type Status struct {
	Shard int `json:"shard"`
	// Term is the newest ownership of the log, and Owner the id of the node that has it. Empty: no node has.
	Term  uint64 `json:"term"`
	Owner string `json:"owner,omitempty"`
	// First and Last are the records that the log keeps. First > 1 says that a snapshot has the records before.
	First shardlog.Position `json:"first"`
	Last  shardlog.Position `json:"last"`
	// Quarantine is not empty if the log has lost acknowledged records and no node may own it: where, and the node that found it.
	Quarantine string `json:"quarantine,omitempty"`
	// Late is not empty if a loss was found when it was too late to stop for it.
	Late string `json:"late,omitempty"`
	// Snapshots are those from which the log goes on, the newest first.
	Snapshots []SnapshotStatus `json:"snapshots"`
	// BlobBytes is how much the files of all snapshots take.
	BlobBytes int64 `json:"blob_bytes"`
	// Nodes are the rows of the nodes, by id.
	Nodes []NodeStatus `json:"nodes"`
	// Clock is the time of the log's own clock, and Skew how far the clock of the process that asks is off.
	Clock time.Time     `json:"clock"`
	Skew  time.Duration `json:"skew_ns"`
}

// SnapshotStatus is a snapshot of the log.
type SnapshotStatus struct {
	// Last is the newest record that the snapshot has as a whole, and Behind how many records the log has after it.
	Last   shardlog.Position `json:"last"`
	Behind uint64            `json:"behind"`
	Blobs  int               `json:"blobs"`
}

// NodeStatus is the row of a node.
type NodeStatus struct {
	ID          string `json:"id"`
	Addr        string `json:"addr,omitempty"`
	Incarnation uint64 `json:"incarnation"`
	Owner       bool   `json:"owner"`
	// Draining: the node is about to leave, or has nothing open.
	Draining bool `json:"draining"`
	// Away: the node has nothing open, because it has left in order or cannot open the store.
	Away bool `json:"away"`
	// Quiet is how long the row has shown no new beat, as far as the process that asks has watched.
	Quiet time.Duration `json:"quiet_ns"`
}

// ReadStatus looks at a cluster from any process, and changes nothing: it asks for no Head, because that would take the row of the
// shard from its owner for a moment. It looks twice, 1.5 s apart, so that a node that beats is seen to do so. It returns the errors of the log.
func ReadStatus(ctx context.Context, log Log, shard int, seams seam.Seams) (Status, error) {
	seams = seams.WithDefaults()
	var w watch
	for n := range 2 {
		if n > 0 {
			if err := seams.Sleep(ctx, 3*shardlog.LookEvery); err != nil {
				return Status{}, err
			}
		}
		began, before := seams.Steady(), seams.Clock.Now()
		look, err := log.Look(ctx, shard)
		if err != nil {
			return Status{}, fmt.Errorf("cluster: status of shard %d: %w", shard, err)
		}
		w.looked(began, seams.Steady(), before, seams.Clock.Now(), look)
	}
	s := w.status(shard, w.ended)
	return s, s.readSnapshots(ctx, log)
}

// Status is ReadStatus by the looks that this node has made already. It returns the errors of the log.
func (n *Node) Status(ctx context.Context) (Status, error) {
	n.mu.Lock()
	s := n.watch.status(n.o.Shard, n.seams.Steady())
	n.mu.Unlock()
	return s, s.readSnapshots(ctx, n.o.Log)
}

// status is the status that the looks of a process show, without snapshots.
func (w *watch) status(shard int, now time.Time) Status {
	state := w.look.State
	s := Status{
		Shard: shard, Term: state.Term, Owner: state.Node(), First: state.First, Last: state.Last,
		Quarantine: state.Lost, Late: w.look.Late, Clock: w.look.Clock, Skew: w.skew,
	}
	for _, n := range w.look.Nodes {
		s.Nodes = append(s.Nodes, NodeStatus{
			ID: n.ID, Addr: n.Addr, Incarnation: n.Incarnation, Owner: n.ID == s.Owner,
			Draining: n.Draining, Away: released(n), Quiet: now.Sub(w.moved[n.ID]),
		})
	}
	return s
}

// readSnapshots adds the snapshots.
func (s *Status) readSnapshots(ctx context.Context, log Log) error {
	snapshots, err := log.Snapshots(ctx, s.Shard)
	if err != nil {
		return fmt.Errorf("cluster: status of shard %d: %w", s.Shard, err)
	}
	for _, has := range snapshots {
		s.Snapshots = append(s.Snapshots, SnapshotStatus{Last: has.Last, Behind: uint64(max(s.Last, has.Last) - has.Last), Blobs: len(has.Blobs)})
	}
	blobs, err := log.List(ctx, s.Shard)
	if err != nil {
		return fmt.Errorf("cluster: status of shard %d: %w", s.Shard, err)
	}
	for _, b := range blobs {
		s.BlobBytes += b.Bytes
	}
	return nil
}

// ClockIsOff reports whether the clock of the process that looked is more than a second off the clock of the log. A node warns then.
func (s Status) ClockIsOff() bool { return s.Skew > skewTold }

// String is the status as a few lines for people.
func (s Status) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "shard %d: term %d, owner %s, records %d to %d\n", s.Shard, s.Term, cmp.Or(s.Owner, "none"), s.First, s.Last)
	if s.Quarantine != "" {
		fmt.Fprintf(&b, "IN QUARANTINE: %s\n", s.Quarantine)
	}
	if s.Late != "" {
		fmt.Fprintf(&b, "lost, found too late to stop: %s\n", s.Late)
	}
	if s.ClockIsOff() {
		fmt.Fprintf(&b, "the clock of this machine is %v off the clock of the log\n", s.Skew.Round(time.Millisecond))
	}
	for _, has := range s.Snapshots {
		fmt.Fprintf(&b, "snapshot at %d: %d records behind, %d files\n", has.Last, has.Behind, has.Blobs)
	}
	fmt.Fprintf(&b, "files of snapshots: %d bytes\n", s.BlobBytes)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, n := range s.Nodes {
		fmt.Fprintf(table, "%s\t%s\t%s\tquiet for %v\n", n.ID, cmp.Or(n.Addr, "-"), n.Does(), n.Quiet.Round(100*time.Millisecond))
	}
	_ = table.Flush() // a strings.Builder takes all
	return b.String()
}

// Does says in one word what the node does: serves, waits, drains, or is away.
func (n NodeStatus) Does() string {
	switch {
	case n.Away:
		return "away"
	case n.Draining:
		return "drains"
	case n.Owner:
		return "serves"
	}
	return "waits"
}
