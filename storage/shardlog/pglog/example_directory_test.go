package pglog_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/pglog"
)

// An owner puts a file, registers the snapshot that names it, and removes the files of older ones. If a collection or a crash took the
// file before that, it puts it again.
func ExampleLog_Register() {
	ctx := context.Background()
	logs, err := pglog.Open(ctx, pglog.Options{DSN: "postgres://holdfast@db1,db2/app", Node: "node-1"})
	if err != nil {
		log.Fatal(err)
	}
	defer logs.Close()

	const shard = 0
	head, err := logs.Head(ctx, shard) // of this process's term
	if err != nil {
		log.Fatal(err)
	}
	snapshot := shardlog.Snapshot{Last: head.Last, Chain: head.Chain, Manifest: []byte("one table"), Blobs: []string{"sha256-of-the-table"}}
	for err = shardlog.ErrMissing; errors.Is(err, shardlog.ErrMissing) || errors.Is(err, shardlog.ErrUnknown); {
		if err = putFile(ctx, logs, shard, snapshot.Blobs[0], "000007.sst"); err == nil {
			err = logs.Register(ctx, shard, head.Term, snapshot)
		}
	}
	if err == nil {
		err = logs.Collect(ctx, shard, head.Term)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// putFile puts a file as a blob. A file that is put already is not read.
func putFile(ctx context.Context, blobs shardlog.Blobs, shard int, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return blobs.Put(ctx, shard, name, f)
}

// A node begins an incarnation by its first beat, and sees the others.
func ExampleLog_Beat() {
	ctx := context.Background()
	logs, err := pglog.Open(ctx, pglog.Options{DSN: "postgres://holdfast@db1,db2/app", Node: "node-1"})
	if err != nil {
		log.Fatal(err)
	}
	defer logs.Close()

	const shard = 0
	look, err := logs.Beat(ctx, shard, shardlog.Node{ID: "node-1", Addr: "10.0.0.1:7070", Version: 1})
	if err != nil {
		log.Fatal(err) // ErrFenced: another process has the id
	}
	i := slices.IndexFunc(look.Nodes, func(n shardlog.Node) bool { return n.ID == "node-1" })
	self := look.Nodes[i]
	fmt.Println("incarnation", self.Incarnation, "of", len(look.Nodes), "nodes; the owner is", look.State.Owner)
}
