package pglog_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/pglog"
)

// The tables of a cluster are made once, by a role that may create a schema.
func ExampleInit() {
	err := pglog.Init(context.Background(), pglog.Options{
		DSN:    "postgres://admin@db1,db2/app",
		Schema: "orders",
	})
	if err != nil {
		log.Fatal(err)
	}
}

// An owner claims a shard, appends, and reads its records. An append of unknown outcome is made again as it is.
func ExampleOpen() {
	ctx := context.Background()
	logs, err := pglog.Open(ctx, pglog.Options{
		DSN:    "postgres://holdfast@db1,db2/app", // the primary and its synchronous standby, in any order
		Schema: "orders",
		Node:   "node-1",
	})
	if err != nil {
		log.Fatal(err) // it names the setting and the option that allows it
	}
	defer logs.Close()
	cluster, err := logs.Cluster(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("cluster", cluster)

	const shard = 0
	seen, err := logs.Head(ctx, shard)
	if err != nil {
		log.Fatal(err)
	}
	owner := "node-1/" + rand.Text() // the name of this one claim
	head, err := logs.Claim(ctx, shard, owner, seen.Term)
	if err != nil {
		log.Fatal(err)
	}

	payload := []byte("batches")
	record := shardlog.Record{At: head.Last + 1, Term: head.Term, Chain: shardlog.Next(head.Chain, payload), Payload: payload}
	for err = shardlog.ErrUnknown; errors.Is(err, shardlog.ErrUnknown); {
		err = logs.Append(ctx, shard, head.Chain, record)
	}
	if err != nil {
		log.Fatal(err)
	}

	err = logs.Read(ctx, shard, head.First, func(r shardlog.Record) error {
		fmt.Println(r.At, r.Term, len(r.Payload))
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := logs.Truncate(ctx, shard, head.Term, head.Last); err != nil { // what is before the record is in a snapshot
		log.Fatal(err)
	}
}

// A mistake in the options is told before anything is connected.
func ExampleOptions() {
	_, err := pglog.Open(context.Background(), pglog.Options{
		DSN:  "postgres://holdfast@db1,db2/app",
		Node: strings.Repeat("long", 20),
	})
	fmt.Println(err)
	// Output: pglog: Options.Node has 80 bytes: give at most 40
}
