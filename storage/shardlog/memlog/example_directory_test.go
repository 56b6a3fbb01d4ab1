package memlog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// add appends a payload in the term of a head, and returns the record.
func add(log *memlog.Log, h *shardlog.State, payload string) shardlog.Record {
	r := shardlog.Record{At: h.Last + 1, Term: h.Term, Chain: shardlog.Next(h.Chain, []byte(payload)), Payload: []byte(payload)}
	if err := log.Append(context.Background(), 0, h.Chain, r); err != nil {
		fmt.Println(err)
	}
	h.Last, h.Chain = r.At, r.Chain
	return r
}

// Two logs in memory have one name, so a test of a view of another cluster gives one of them a name.
func ExampleLog_SetCluster() {
	ctx := context.Background()
	log, other := memlog.New(), memlog.New()
	other.SetCluster("0123456789abcdef0123456789abcdef")
	a, err := log.Cluster(ctx)
	b, otherErr := other.Crash().Cluster(ctx) // the name survives a crash
	fmt.Println(a, b, errors.Join(err, otherErr))
	// Output:
	// 00000000000000000000000000000001 0123456789abcdef0123456789abcdef <nil>
}

// Two processes that were given one id: the older one notices at its next beat.
func ExampleLog_Beat() {
	ctx := context.Background()
	log := memlog.New()
	first, err := log.Beat(ctx, 0, shardlog.Node{ID: "a"})
	if err != nil {
		fmt.Println(err)
	}
	if _, err := log.Beat(ctx, 0, shardlog.Node{ID: "a"}); err != nil {
		fmt.Println(err)
	}
	_, err = log.Beat(ctx, 0, first.Nodes[0])
	fmt.Println(errors.Is(err, shardlog.ErrFenced))
	// Output:
	// true
}

// The row of a node that has not beaten for a week is removed.
func ExampleLog_Forget() {
	ctx := context.Background()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	log := memlog.New()
	log.SetClock(func() time.Time { return now })
	if _, err := log.Beat(ctx, 0, shardlog.Node{ID: "a"}); err != nil {
		fmt.Println(err)
	}
	const week = 7 * 24 * time.Hour
	for _, day := range []int{7, 8} {
		now = time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)
		err := log.Forget(ctx, week)
		look, lookErr := log.Look(ctx, 0)
		fmt.Println(look.Clock.Format(time.DateOnly), len(look.Nodes), err, lookErr)
	}
	// Output:
	// 2026-01-07 1 <nil> <nil>
	// 2026-01-08 0 <nil> <nil>
}

// The store of one machine becomes the base of a log.
func ExampleLog_Begin() {
	ctx := context.Background()
	log := memlog.New()
	base := shardlog.Snapshot{Last: 1, Chain: 0xcafe, Manifest: []byte("one table"), Blobs: []string{"table"}}
	err := log.Begin(ctx, 0, base)
	fmt.Println(errors.Is(err, shardlog.ErrMissing))
	if err := log.Put(ctx, 0, "table", strings.NewReader("its bytes")); err != nil {
		fmt.Println(err)
	}
	err = log.Begin(ctx, 0, base)
	h, headErr := log.Head(ctx, 0)
	fmt.Println(h.First, h.Last, err, headErr)
	// Output:
	// true
	// 2 1 <nil> <nil>
}

// The owner registers a snapshot. The blobs of no snapshot are removed.
func ExampleLog_Register() {
	ctx := context.Background()
	log := memlog.New()
	h, err := log.Claim(ctx, 0, "a", 0)
	add(log, &h, "one")
	for _, name := range []string{"table", "left"} {
		err = errors.Join(err, log.Put(ctx, 0, name, strings.NewReader("bytes")))
	}
	err = errors.Join(err,
		log.Register(ctx, 0, h.Term, shardlog.Snapshot{Last: h.Last, Chain: h.Chain, Blobs: []string{"table"}}),
		log.Collect(ctx, 0, h.Term))
	snapshots, listErr := log.Snapshots(ctx, 0)
	blobs, blobsErr := log.List(ctx, 0)
	fmt.Println(snapshots[0].Last, blobs, errors.Join(err, listErr, blobsErr))
	err = log.Get(ctx, 0, "table", func(part []byte) error {
		fmt.Println(string(part))
		return nil
	})
	fmt.Println(err)
	// Output:
	// 1 [{table 5}] <nil>
	// bytes
	// <nil>
}

// The owner had an answer for record 2, and the log has lost it. The record goes back as it was.
func ExampleLog_Recover() {
	ctx := context.Background()
	log := memlog.New()
	h, err := log.Claim(ctx, 0, "a", 0)
	first := add(log, &h, "one")
	second := add(log, &h, "two")
	log.Rewind(0, 1)
	err = errors.Join(err, log.Quarantine(ctx, 0, "record 2, seen by a"))
	h, headErr := log.Head(ctx, 0)
	fmt.Println(h.Last, h.Lost, errors.Join(err, headErr))
	h, err = log.Recover(ctx, 0, h.Term, first.Chain, []shardlog.Record{second})
	fmt.Println(h.Last, h.Lost == "", err)
	// Output:
	// 1 record 2, seen by a <nil>
	// 2 true <nil>
}

// A late note is there to be read, and stops nothing.
func ExampleLog_NoteLate() {
	ctx := context.Background()
	log := memlog.New()
	err := log.NoteLate(ctx, 0, "record 2, seen by a after a week")
	look, lookErr := log.Look(ctx, 0)
	fmt.Println(look.Late, errors.Join(err, lookErr))
	h, err := log.Claim(ctx, 0, "b", 0)
	fmt.Println(h.Term, err)
	// Output:
	// record 2, seen by a after a week <nil>
	// 1 <nil>
}
