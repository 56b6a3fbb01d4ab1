package workload

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/server"
)

// Owner is counters at the only node of a cluster.
type Owner struct {
	*Counters
	Uploads *Uploads
	node    *cluster.Node
}

// Own joins the cluster of a log as its only node, with the counters awake, and takes snapshots as told. dir is that of the node,
// which the next Own of the same log may go on with.
func (l *Log) Own(ctx context.Context, dir string, objects int, snapshots cluster.Snapshots) (*Owner, error) {
	uploads, disk := &Uploads{Log: l}, measure.NewDisk()
	o := cluster.Options{
		Log: uploads, ID: "bench", Addr: "none", Dir: dir, Snapshots: snapshots, // no other node connects to the address
		Logger: slog.New(slog.DiscardHandler),
	}
	o.Storage.Pebble.FS = disk
	o.Host.MaxLive, o.Host.IdleAfter = 2*objects, time.Hour // all stay awake
	node, err := cluster.Join(ctx, o, server.Definitions(counters)...)
	if err != nil {
		return nil, err
	}
	h, err := node.Serving(ctx)
	if err != nil {
		return nil, join(err, node.Close)
	}
	c := &Counters{Host: &Host{h, disk}, ctx: context.Background()}
	owner := &Owner{c.With(objects), uploads, node}
	if err := measure.Each(ctx, 1024, objects, owner.Read); err != nil { // so many share the rounds in which the log confirms reads
		return nil, join(err, owner.Close)
	}
	return owner, nil
}

// Close has the node leave the cluster.
func (o *Owner) Close() error { return o.node.Close() }
