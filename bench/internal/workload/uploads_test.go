package workload

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/memlog"
)

// A snapshot counts when it is registered, a truncation when the log has made it, and a file with the bytes that were read of it.
func TestUploads(t *testing.T) {
	ctx := t.Context()
	u := &Uploads{Log: memlog.New()}
	for range 2 { // the second time the file is there
		if err := u.Put(ctx, 0, "file", strings.NewReader("0123456789")); err != nil {
			t.Fatal(err)
		}
	}
	if got := u.Bytes(); got != 10 {
		t.Errorf("%d bytes, want the 10 of one upload", got)
	}
	state, err := u.Claim(ctx, 0, "a", 0)
	if err != nil {
		t.Fatal(err)
	}
	record := shardlog.Record{At: 1, Term: state.Term, Chain: shardlog.Next(state.Chain, []byte("x")), Payload: []byte("x")}
	if err := u.Append(ctx, 0, state.Chain, record); err != nil {
		t.Fatal(err)
	}
	s := shardlog.Snapshot{Last: 1, Chain: record.Chain, Blobs: []string{"file"}}
	if err := u.Register(ctx, 0, state.Term+1, s); !errors.Is(err, shardlog.ErrFenced) || u.Taken() != 0 {
		t.Errorf("a snapshot of another term: %v, %d are counted", err, u.Taken())
	}
	if err := u.Register(ctx, 0, state.Term, s); err != nil || u.Taken() != 1 {
		t.Errorf("a snapshot: %v, %d are counted", err, u.Taken())
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := u.Truncate(ended, 0, state.Term, 1); err == nil || u.Truncations() != 0 {
		t.Errorf("a truncation without an answer: %v, %d are counted", err, u.Truncations())
	}
	if err := u.Truncate(ctx, 0, state.Term, 1); err != nil || u.Truncations() != 1 {
		t.Errorf("a truncation: %v, %d are counted", err, u.Truncations())
	}
}
