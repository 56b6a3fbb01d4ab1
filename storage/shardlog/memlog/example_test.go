package memlog_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// own claims shard 1 and appends payloads to it.
func own(log *memlog.Log, owner string, payloads ...string) (shardlog.State, error) {
	ctx := context.Background()
	h, err := log.Head(ctx, 1)
	if err == nil {
		h, err = log.Claim(ctx, 1, owner, h.Term)
	}
	for i := 0; err == nil && i < len(payloads); i++ {
		p := []byte(payloads[i])
		r := shardlog.Record{At: h.Last + 1, Term: h.Term, Chain: shardlog.Next(h.Chain, p), Payload: p}
		if err = log.Append(ctx, 1, h.Chain, r); err == nil {
			h.Last, h.Chain = r.At, r.Chain
		}
	}
	return h, err
}

// A claim ends the term before, and the append of the owner before is fenced.
func ExampleNew() {
	log := memlog.New()
	a, err := own(log, "a", "one")
	if err != nil {
		fmt.Println(err)
	}
	b, err := own(log, "b", "two")
	fmt.Println(b.Term, b.Last, err)

	p := []byte("late")
	late := shardlog.Record{At: a.Last + 1, Term: a.Term, Chain: shardlog.Next(a.Chain, p), Payload: p}
	err = log.Append(context.Background(), 1, a.Chain, late)
	fmt.Println(errors.Is(err, shardlog.ErrFenced))
	// Output:
	// 2 2 <nil>
	// true
}

// An empty view cannot take up a log that begins behind a base.
func ExampleLog_SetBase() {
	log := memlog.New()
	log.SetBase(1, 7, 0xcafe)
	h, err := own(log, "a", "eight")
	fmt.Println(h.First, h.Last, err)
	err = log.Read(context.Background(), 1, 1, func(shardlog.Record) error { return nil })
	fmt.Println(errors.Is(err, shardlog.ErrTruncated))
	// Output:
	// 8 8 <nil>
	// true
}

// A log in quarantine has no owner, and gets none.
func ExampleLog_SetLost() {
	log := memlog.New()
	log.SetLost(1, "record 3, seen by node a")
	_, err := own(log, "b")
	fmt.Println(err)
	// Output:
	// shardlog: another process has taken over: shard 1 is in quarantine: record 3, seen by node a
}

// The owner had an answer for record 3, and the head shows that the log has lost it.
func ExampleLog_Rewind() {
	log := memlog.New()
	receipt, err := own(log, "a", "one", "two", "three")
	if err != nil {
		fmt.Println(err)
	}
	log.Rewind(1, 2)
	h, err := log.Head(context.Background(), 1)
	fmt.Println(receipt.Last, h.Last, err)
	// Output:
	// 3 2 <nil>
}

// All that was acknowledged is in the log that comes back.
func ExampleLog_Crash() {
	log := memlog.New()
	before, err := own(log, "a", "one", "two")
	if err != nil {
		fmt.Println(err)
	}
	after, err := log.Crash().Head(context.Background(), 1)
	fmt.Println(after == before, err)
	// Output:
	// true <nil>
}
