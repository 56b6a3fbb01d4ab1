package shardlog_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/memstore"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// A node counts its looks at the others. Five in a row that show the same beat of b make b silent, and a look at a new beat ends that.
func ExampleSilence() {
	var s shardlog.Silence
	steady := time.Unix(0, 0) // of the node's own clock
	look := func(beat uint64) {
		steady = steady.Add(shardlog.LookEvery)
		s.Looked(steady, steady, []shardlog.Node{{ID: "b", Incarnation: 1, Beat: beat}})
	}
	for n := range 5 {
		look(7)
		fmt.Println(n+1, s.Silent("b"))
	}
	look(8)
	fmt.Println("a beat", s.Silent("b"))
	// Output:
	// 1 false
	// 2 false
	// 3 false
	// 4 false
	// 5 true
	// a beat false
}

// After its own looks have failed for a second a node knows nothing of the others.
func ExampleSilence_Failed() {
	var s shardlog.Silence
	steady := time.Unix(0, 0)
	b := []shardlog.Node{{ID: "b", Incarnation: 1, Beat: 7}}
	s.Looked(steady, steady, b)
	s.Hint("b") // its address refuses connections, and a probe has failed
	fmt.Println(s.Silent("b"))
	s.Failed(steady, steady.Add(time.Second))
	fmt.Println(s.Silent("b"))
	// Output:
	// true
	// false
}

// A process that begins gets an incarnation, beats, and sees the other nodes and the owner of the shard.
func ExampleDirectory() {
	ctx := context.Background()
	log := memlog.New()
	if _, err := log.Claim(ctx, 0, "b 7f3a", 0); err != nil {
		fmt.Println(err)
	}
	var d shardlog.Directory = log
	node := shardlog.Node{ID: "a", Addr: "10.0.0.1:7070", Version: 1}
	for range 3 {
		look, err := d.Beat(ctx, 0, node)
		if err != nil {
			fmt.Println(err)
			return
		}
		node = look.Nodes[0] // of one node, with its incarnation
		fmt.Println(node.Incarnation, node.Beat, look.State.Owner)
		node.Beat++
	}
	// Output:
	// 1 0 b 7f3a
	// 1 1 b 7f3a
	// 1 2 b 7f3a
}

// A record that was changed does not follow the one before.
func ExampleRecord_Follows() {
	r := shardlog.Record{At: 1, Term: 1, Chain: shardlog.Next(0, []byte("paid")), Payload: []byte("paid")}
	fmt.Println(r.Follows(shardlog.Record{}, 1))
	r.Payload = []byte("Paid")
	fmt.Println(errors.Is(r.Follows(shardlog.Record{}, 1), shardlog.ErrHole))
	// Output:
	// <nil>
	// true
}

// A second process waits beside the owner and follows the log. It is told that the owner is silent, and owns the log at once, because its
// view has all but the last records.
func ExampleOpen_waiting() {
	log := memlog.New()
	owner, err := shardlog.Open(shardlog.Options{Log: log, Owner: "a"}, memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	var b storage.Batch
	b.Set([]byte("cart"), []byte("tea"))
	if err := errors.Join(owner.Apply(b.Repr()), owner.Sync()); err != nil {
		fmt.Println(err)
	}
	at, _ := owner.Place()
	fmt.Println(owner.Term(), at, owner.AppendedBytes(), owner.Answered().IsZero())

	looks := 0 // of a node, by package Silence for example
	second, err := shardlog.Open(shardlog.Options{
		Log: log, Owner: "b", Cluster: "shop",
		Turn: func() (claim bool, seen uint64, err error) {
			looks++
			return looks >= 2, owner.Term(), nil
		},
		Claimed: func(e *shardlog.Engine, before shardlog.State) {
			fmt.Println("claimed", e.Term(), "after", before.Owner[:1], before.Term)
		},
	}, memstore.New())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(errors.Is(owner.Sync(), shardlog.ErrFenced), second.Close())
	// Output:
	// 1 1 15 false
	// claimed 2 after a 1
	// true <nil>
}

// A rescue file has the records that a log has lost, and the chain before them. Directory.Recover puts them back behind that.
func ExampleReadRescue() {
	file, err := hex.DecodeString("686f6c64666173742072657363756520310a000163010001020115090100000001016b01760a010000000004676f6e65010178a95625b8eee741667ecce597dbdcfcc3")
	if err != nil {
		fmt.Println(err)
	}
	r, err := shardlog.ReadRescue(bytes.NewReader(file)) // or of an os.File
	fmt.Println(r.Cluster, r.Term, r.Before, len(r.Records), err)
	for _, record := range r.Records {
		fmt.Println(record.At, len(record.Payload))
	}
	_, err = shardlog.ReadRescue(bytes.NewReader(file[1:]))
	fmt.Println(errors.Is(err, shardlog.ErrNotRescue))
	// Output:
	// c 1 0 2 <nil>
	// 1 21
	// 2 1
	// true
}
