package shardlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/engine"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// Options say which log an Engine writes, and how long it waits for it. The zero value with a Log is fit for production.
type Options struct {
	// Log keeps the records. Required.
	Log Log
	// Shard is the number of the log of this store among those that Log keeps. It must not be negative. Default: 0.
	Shard int
	// Owner is the name of this node in the state of the log. Each claim adds 128 random bits to it. Give each node a name of its
	// own that it keeps over restarts: an end without order counts as a crash of the work that ran if the next owner has the same
	// name, and as the loss of an owner if it has another (A8). Default: "node".
	Owner string
	// Patience is how long an append is repeated while its outcome is unknown. After it the store fails. It should be longer
	// than the log takes to fail over. Default: 5 minutes.
	Patience time.Duration
	// Timeout ends one call of the log, which is then repeated. Default: 10 seconds.
	Timeout time.Duration
	// MaxRecordBytes is how long a record may be. A batch that is longer is a record of its own. Default: 1 MiB.
	MaxRecordBytes int
	// Turn makes Open wait instead of claiming at once. Open follows the log into the view and calls Turn again and again, one call
	// after the other; Turn returns within about a second. claim says that the owner of the term seen has been observed to be silent, or that
	// there is none. Open then catches up with the head, calls Check, calls Turn once more, and claims the term after seen if both calls
	// gave the same seen and claim. If another process wins the claim, Open goes on waiting. While the log does not answer, Open calls Turn between two tries
	// and goes on for as long as that takes: Patience does not count. An error of Turn ends Open with it. Default: Open claims at once the term after
	// the first head.
	Turn func() (claim bool, seen uint64, err error)
	// Check looks at the view, which has caught up with the head, before each claim. Its error ends Open, and nothing is claimed. Default: no check.
	Check func(view engine.Engine) error
	// Claimed is called once, when Open owns the log and the view has all of it, with the engine and the state that the claim
	// found: the term and the owner before, and the last record. Default: nothing.
	Claimed func(e *Engine, before State)
	// Context ends an Open that waits or catches up, with its cause. Its end changes nothing at an engine that is
	// open. Default: context.Background.
	Context context.Context
	// Cluster is the name of the cluster. A view remembers it, and Open refuses one of another cluster with
	// ErrOtherCluster. Default: the names are not compared.
	Cluster string
	// Directory is told when this process sees that the log lacks an acknowledged record, by a view that is ahead of it or by the last
	// record of an owner that was replaced: it puts the shard into quarantine, with a text that has position, chain and Owner.
	// A loss that is found more than an hour after the owner has ended is noted as a late one. An owner that ends without an
	// answer asks on, in a goroutine that ends with the answer, with Context, or after an hour. A view tells of a loss once: as long as
	// its directory is there, Open returns ErrAckedDataLost, also when the loss is accepted. Default: the error alone tells of it.
	Directory Directory
	// RescueDir is a directory for the acknowledged records that the log lacks. An owner keeps its last 64 MiB of records in
	// memory, and writes those that are lost into a file there, which ReadRescue reads. It is made if it is absent. The file is on the
	// file system of the store. Default: no file is written.
	RescueDir string
	// Seams are the clock, the executor and the probe of the store. Zero: production.
	Seams seam.Seams
	// Logger receives a line when the log does not answer or has no space, at most one a minute, one when it answers again, and
	// each loss. Default: nothing.
	Logger *slog.Logger

	files pebblestore.Options // the file system of RescueDir
}

// withDefaults returns o with its defaults, or the first mistake in it.
func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Log == nil:
		return o, errors.New("shardlog: Options.Log is nil: open a log, for example with package pglog")
	case o.Shard < 0:
		return o, fmt.Errorf("shardlog: Options.Shard is %d: it must not be negative", o.Shard)
	case o.Patience < 0 || o.Timeout < 0:
		return o, fmt.Errorf("shardlog: Options.Patience is %v and Options.Timeout is %v: neither may be negative", o.Patience, o.Timeout)
	case isExport(o.Owner):
		return o, fmt.Errorf("shardlog: Options.Owner is %q: it must not begin with the word %q, which closes a log", o.Owner, exported)
	case o.MaxRecordBytes < 0:
		return o, fmt.Errorf("shardlog: Options.MaxRecordBytes is %d: it must not be negative", o.MaxRecordBytes)
	}
	o.Owner = cmp.Or(o.Owner, "node")
	o.Patience = cmp.Or(o.Patience, 5*time.Minute)
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.MaxRecordBytes = cmp.Or(o.MaxRecordBytes, 1<<20)
	o.Seams = o.Seams.WithDefaults()
	if o.Context == nil {
		o.Context = context.Background()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}

// Storage returns so with all that makes its directory a view of the log: no log of its own, the barrier, and an Engine over
// it. The view is made if the directory is absent or empty, from the records of the log. The result may be used for
// one opening after another, and not for two at a time. Its Seams are those of so.
func (o Options) Storage(so storage.Options) storage.Options {
	o.Seams, o.files = so.Seams, so.Pebble
	if o.Logger == nil {
		o.Logger = so.Log
	}
	var open atomic.Pointer[barrier] // of the engine that is open
	so.Pebble.NoLog = true
	so.Pebble.BeforeTable = func() error {
		if b := open.Load(); b != nil {
			return b.table()
		}
		return nil // all that the view has comes from its own tables
	}
	so.Over = func(view engine.Engine) (engine.Engine, error) {
		b, err := barrierOf(so)
		if err != nil {
			return nil, err
		}
		open.Store(b)
		e, err := start(o, view, b)
		if err != nil {
			open.Store(nil)
			return nil, fmt.Errorf("%w (the view is %s)", err, so.Dir)
		}
		e.closed = func() { open.CompareAndSwap(b, nil) }
		return e, nil
	}
	return so
}

// barrierOf is the barrier of a view in a directory.
func barrierOf(so storage.Options) (*barrier, error) {
	b := new(barrier)
	if so.Dir == "" {
		return b, nil // the view is in memory
	}
	var err error
	if b.proof, err = openProof(so.Pebble.Dir(so.Dir)); err != nil {
		return nil, err
	}
	b.newest = b.proof.has
	return b, nil
}
