package shardlog

import (
	"context"
	"time"
)

// Directory is the knowledge of a cluster about its name and its nodes, and about each log beside its records: snapshots and losses. It is kept by
// the engine of the Log, because a registration and a quarantine look at the newest term in the same step. Its methods may be called from
// any goroutine. Package shardlogtest tests an implementation.
//
// As for a Log, an error that is none of this package's says that the outcome is unknown, and so does the end of a context. Each
// method may be called again then: a call that was done already is nil again and changes nothing, but for a new
// incarnation, of which a repeat begins one more. But for node rows, all that a method has returned nil for is durable.
type Directory interface {
	// Cluster returns the name of the cluster: 32 digits from 0 to 9 and a to f, drawn at random when the engine was set up, the same for
	// each process and for ever. A view notes it, because a process must refuse the view of another cluster.
	Cluster(ctx context.Context) (string, error)

	// Beat stores the row of node n and looks at the directory, in one step. With n.Incarnation 0 it begins a new incarnation, which the
	// row in the look has: a number higher than each before, of all nodes, and never given again. It returns ErrFenced, and stores nothing, if
	// the row has a newer incarnation: another process has the id. A row need not survive a crash of the engine; the
	// next beat stores it again.
	Beat(ctx context.Context, shard int, n Node) (Look, error)
	// Look looks at the directory and changes nothing.
	Look(ctx context.Context, shard int) (Look, error)
	// Forget removes the rows of nodes with a last beat that is at least age ago, by the clock of the engine. A node that has lost its row
	// stores it again by its next beat.
	Forget(ctx context.Context, age time.Duration) error

	// Begin begins a log behind a base: in one step it registers base and sets First to base.Last+1, Last to base.Last and Chain to
	// base.Chain. base.Last is at least 1. Term stays 0. It returns ErrRefused unless the log is fresh: no claim, no record, no base and no
	// quarantine. It returns ErrMissing if a blob is missing. It is nil as long as the log has exactly this snapshot.
	Begin(ctx context.Context, shard int, base Snapshot) error
	// Register adds a snapshot under the term of its owner, and makes its blobs durable. It returns ErrFenced if another
	// term has begun or the shard is in quarantine, ErrMissing if a blob is missing, and ErrRefused if the log does not have
	// the place of the snapshot: a record at Last with Chain, or any chain at First-1. The snapshot takes the place of one with the same Last.
	Register(ctx context.Context, shard int, term uint64, s Snapshot) error
	// Snapshots returns the snapshots from which the log goes on, the newest first: a Truncate beyond the Last of one removes it. The first may be
	// one of a Register that has not returned yet.
	Snapshots(ctx context.Context, shard int) ([]Snapshot, error)

	// Quarantine stops a shard because its log lacks acknowledged records: it sets State.Lost to where, which says the position, the chain and
	// the process that found it, and begins a term that no process owns. A log that has ended by an export keeps its owner, see State.Exported. The records, the snapshots and the blobs stay. If
	// the shard is in quarantine already, it changes nothing, because the first process to see a loss knows most about it. An empty where is ErrRefused.
	Quarantine(ctx context.Context, shard int, where string) error
	// NoteLate sets Look.Late to where, and changes nothing else: a loss that is seen too late does not stop a shard, because
	// its owners have worked since. If the shard has a note already, that stays. An empty where is ErrRefused.
	NoteLate(ctx context.Context, shard int, where string) error
	// Recover ends a quarantine and clears Look.Late, if term is the newest, and returns the head. Term and owner stay. In the same step
	// it puts records behind the last one, which has the chain before: those that the log has lost, as they were, or one that no
	// earlier owner has written. They keep their terms, which must not fall and not exceed term. Without records it accepts the
	// loss, and before does not count. Snapshots of a place that the log does not have then are removed.
	//
	// Recover changes nothing and returns ErrFenced if another term has begun, if the log does not end at before or ends with a
	// newer term than the first of the records has, because an owner has appended since the loss, or if there are records
	// and no quarantine. It returns ErrHole if the records do not follow one another.
	Recover(ctx context.Context, shard int, term, before uint64, records []Record) (State, error)
}

// Node is the row of a node.
type Node struct {
	// ID is the name of the node. It must not be empty.
	ID string
	// Incarnation is the number of this process among all that have begun to beat. Directory.Beat gives it; it is not 0 in a row.
	Incarnation uint64
	// Addr is where the node takes calls, and the probe of others.
	Addr string
	// Version is the newest version of records that the node reads.
	Version int
	// Draining says that the node ends in order, and claims nothing.
	Draining bool
	// Beat is a count that the node raises from call to call, as long as the shard works. See Silence.
	Beat uint64
}

// Look is a directory at one moment.
type Look struct {
	// Nodes are the rows, in the order of their ids.
	Nodes []Node
	// State is the head of the shard. It need not be durable, so it is good for a Claim and no receipt: Log.Head gives one.
	State State
	// Late is not empty if acknowledged records were found to be missing when it was too late to stop for it: where, and the
	// process that found it. It bars no claim, so it is no part of State.
	Late string
	// Clock is the time of the engine's clock. A node compares its own with it, from before and after the call.
	Clock time.Time
}

// Snapshot is a copy of a view that blobs hold. It has all that the log says up to Last, perhaps parts of later records, and is equal to the log
// after a replay of the records behind Last.
type Snapshot struct {
	// Last is a position, and Chain that of its record.
	Last  Position
	Chain uint64
	// Manifest says how the view is put together from the blobs. Directory does not read it.
	Manifest []byte
	// Blobs are the names of all blobs of the snapshot.
	Blobs []string
}
