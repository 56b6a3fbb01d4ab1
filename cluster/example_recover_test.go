package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// A log loses its newest record, as in a fail-over to a server that lags behind. The record goes back, because its owner has kept it.
func ExamplePutBack() {
	logs, rescue := lossOfOne()
	lost, err := cluster.Contents(rescue)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("lost:", len(lost), "record with", lost[0].Objects)
	done, err := cluster.PutBack(context.Background(), cluster.Recovery{Log: logs}, rescue)
	fmt.Println("back:", done.From, "to", done.To, err)
	_, err = cluster.PutBack(context.Background(), cluster.Recovery{Log: logs}, rescue)
	fmt.Println("nothing is lost now:", errors.Is(err, cluster.ErrNothingLost))
	// Output:
	// lost: 1 record with [cart/anna]
	// back: 2 to 2 <nil>
	// nothing is lost now: true
}

// The record is given up: one that sets the epoch ahead takes its place.
func ExampleAcceptLoss() {
	logs, _ := lossOfOne()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	done, err := cluster.AcceptLoss(context.Background(), cluster.Recovery{Log: logs, Dir: dir})
	fmt.Println(done.From, "to", done.To, err)
	// Output:
	// 2 to 2 <nil>
}

// lossOfOne is a log in quarantine with one record, and the one that it has lost.
func lossOfOne() (*memlog.Log, shardlog.Rescue) {
	ctx, logs := context.Background(), memlog.New()
	_, err := logs.Claim(ctx, 0, "a", 0)
	b := new(storage.Batch)
	b.SetHeader(storage.Object{ID: storage.ID{Class: "cart", Name: "anna"}, Number: 1})
	payload := shardlog.AppendBatch(nil, b.Repr())
	first := shardlog.Record{At: 1, Term: 1, Chain: shardlog.Next(0, payload), Payload: payload}
	second := shardlog.Record{At: 2, Term: 1, Chain: shardlog.Next(first.Chain, payload), Payload: bytes.Clone(payload)}
	err = errors.Join(err, logs.Append(ctx, 0, 0, first), logs.Append(ctx, 0, first.Chain, second))
	logs.Rewind(0, 1)
	err = errors.Join(err, logs.Quarantine(ctx, 0, "record 2 was acknowledged, and the log ends at 1: found by a"))
	if err != nil {
		log.Fatal(err)
	}
	return logs, shardlog.Rescue{Term: 1, Before: first.Chain, Records: []shardlog.Record{second}}
}
