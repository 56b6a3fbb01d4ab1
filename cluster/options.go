package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Log is all that the nodes of a cluster share: the log of the store, the rows of the nodes, and the files of snapshots. Those of
// packages pglog and memlog have all three.
type Log interface {
	shardlog.Log
	shardlog.Directory
	shardlog.Blobs
}

// Options say which cluster a node joins, and how. Log, ID, Addr and Dir are required.
type Options struct {
	// Log is the log of the cluster, and its directory. The caller closes it after the node.
	Log Log
	// Shard is the number of the log of the store among those that Log keeps. Default: 0.
	Shard int
	// ID is the name of the node. It must stay the same over restarts, because the log keeps it as its owner. Two processes must not have
	// the same at a time. It may have no blanks.
	ID string
	// Addr is where the program takes calls of clients and of other nodes. Waiting nodes give it to their callers, and connect
	// to it to see whether the process of the owner is there.
	Addr string
	// Dir is a directory of the node alone. Under it are the view of the log, files of snapshots in the making, and rescued records.
	Dir string
	// Storage shapes the view. Its Dir is set to a directory in Dir, and its Seams and Log to those below.
	Storage storage.Options
	// Host shapes the host that a node opens when it serves. Its Dir and Storage, its Seams and its Logger are taken from here.
	Host object.Options
	// Append shapes the appends of the owner: Patience, Timeout, MaxRecordBytes. All else in it is set by the node.
	Append shardlog.Options
	// Snapshots says how often the owner makes snapshots. The zero value is fit for production.
	Snapshots Snapshots
	// Dial connects to the address of another node and ends the connection. An error that wraps syscall.ECONNREFUSED says that
	// no process listens there. Default: TCP.
	Dial func(ctx context.Context, addr string) error
	// Logger receives a line when the node begins or ceases to serve, and for each trouble. Default: slog.Default().
	Logger *slog.Logger
	// Seams are the clock, executor, random source and probe. Zero: those of production.
	Seams seam.Seams
}

// withDefaults returns o with its defaults, or the first mistake in it.
func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Log == nil:
		return o, errors.New("cluster: Options.Log is nil: open a log, for example with package pglog")
	case o.Shard < 0:
		return o, fmt.Errorf("cluster: Options.Shard is %d: it must not be negative", o.Shard)
	case o.ID == "" || strings.ContainsAny(o.ID, " \t\r\n"):
		return o, fmt.Errorf("cluster: Options.ID is %q: give the node a name without blanks, and the same after each restart", o.ID)
	case o.Addr == "":
		return o, errors.New("cluster: Options.Addr is empty: name the address where this process takes calls")
	case o.Dir == "":
		return o, errors.New("cluster: Options.Dir is empty: name a directory for the view of the log")
	}
	var err error
	if o.Snapshots, err = o.Snapshots.withDefaults(); err != nil {
		return o, err
	}
	if o.Dial == nil {
		o.Dial = dial
	}
	o.Logger = cmp.Or(o.Logger, slog.Default()).With("node", o.ID)
	o.Seams = o.Seams.WithDefaults()
	return o, nil
}

// dial opens a TCP connection and closes it.
func dial(ctx context.Context, addr string) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return c.Close()
}

// Directories in Options.Dir.
const (
	viewDir    = "view"
	scratchDir = "snapshot"
	rescueDir  = "rescue"
)

// in is a directory in Options.Dir.
func (o Options) in(name string) string { return filepath.Join(o.Dir, name) }

// Snapshots say how often the owner makes a snapshot of the store, behind which the log is truncated.
type Snapshots struct {
	// EveryBytes is how many bytes of records make a snapshot due. Default: 64 MiB.
	EveryBytes uint64
	// Every is how long after the last snapshot another one is due, if anything was written since. Default: 10 minutes.
	Every time.Duration
	// BytesPerSecond bounds the upload. Default: that of package snapshot.
	BytesPerSecond int64
	// Off leaves the making of snapshots, and so the truncation of the log, to a program of your own. A log that is not
	// truncated grows without end.
	Off bool
}

// withDefaults returns s with its defaults, or the first mistake in it.
func (s Snapshots) withDefaults() (Snapshots, error) {
	if s.Every < 0 || s.BytesPerSecond < 0 {
		return s, fmt.Errorf("cluster: Options.Snapshots.Every is %v and BytesPerSecond is %d: neither may be negative", s.Every, s.BytesPerSecond)
	}
	s.EveryBytes = cmp.Or(s.EveryBytes, 64<<20)
	s.Every = cmp.Or(s.Every, 10*time.Minute)
	return s, nil
}
