package shardlogtest

import (
	"context"
	"errors"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// tries bounds the repeats of a call of unknown outcome. An engine that answers at all needs a few.
const tries = 100

// Writer is an owner of a shard that does all that an owner must do, and no more. It is for one goroutine.
type Writer struct {
	Log   shardlog.Log
	Shard int
	// State is the head as the owner knows it: that of its claim, and its own records.
	State shardlog.State
}

// Claim makes owner the owner of a shard, and fails the test if that does not succeed. If the outcome of
// its claim is unknown, the head tells, because owner must be the name of this one claim.
func Claim(t TB, log shardlog.Log, shard int, owner string) *Writer {
	t.Helper()
	seen := Head(t, log, shard)
	h, err := claim(log, shard, owner, seen.Term)
	if err != nil {
		t.Fatalf("claim of shard %d after term %d: %v", shard, seen.Term, err)
	}
	if h.Term != seen.Term+1 || h.Owner != owner {
		t.Fatalf("the claim of %q after term %d led to term %d of %q", owner, seen.Term, h.Term, h.Owner)
	}
	return &Writer{Log: log, Shard: shard, State: h}
}

// claim claims the term after seen. It returns ErrFenced if another owner has it.
func claim(log shardlog.Log, shard int, owner string, seen uint64) (shardlog.State, error) {
	var open error
	for range tries {
		h, err := log.Claim(context.Background(), shard, owner, seen)
		if !unknown(err) {
			return h, err
		}
		open = err
		switch h, err := head(log, shard); {
		case err != nil:
			return h, err
		case h.Term == seen+1 && h.Owner == owner:
			return h, nil
		case h.Term != seen:
			return h, shardlog.ErrFenced
		}
	}
	return shardlog.State{}, open
}

// Record builds the next record with a payload.
func (w *Writer) Record(payload string) shardlog.Record {
	return shardlog.Record{At: w.State.Last + 1, Term: w.State.Term, Chain: shardlog.Next(w.State.Chain, []byte(payload)), Payload: []byte(payload)}
}

// Send appends a record that Record has built, after the chain of State, and again while the outcome is
// unknown. It changes nothing in State.
func (w *Writer) Send(r shardlog.Record) (err error) {
	for range tries {
		if err = w.Log.Append(context.Background(), w.Shard, w.State.Chain, r); !unknown(err) {
			return err
		}
	}
	return err
}

// Append appends a payload. If that succeeds, State has it.
func (w *Writer) Append(payload string) error {
	r := w.Record(payload)
	err := w.Send(r)
	if err == nil {
		w.State.Last, w.State.Chain = r.At, r.Chain
	}
	return err
}

// must appends payloads. The test fails if one is not acknowledged.
func (w *Writer) must(t TB, payloads ...string) {
	t.Helper()
	for _, p := range payloads {
		if err := w.Append(p); err != nil {
			t.Fatalf("the owner of shard %d appends record %d: %v", w.Shard, w.State.Last+1, err)
		}
	}
}

// fenced sends a record that the log must refuse as fenced.
func (w *Writer) fenced(t TB, about string, r shardlog.Record) {
	t.Helper()
	if err := w.Send(r); !errors.Is(err, shardlog.ErrFenced) {
		t.Errorf("%s: %v, want ErrFenced", about, err)
	}
}

// definite are the errors that say the outcome of a call. Any other leaves it open.
var definite = []error{shardlog.ErrFenced, shardlog.ErrNoSpace, shardlog.ErrRefused, shardlog.ErrHole, shardlog.ErrTruncated, shardlog.ErrMissing}

// unknown says whether an error leaves the outcome of a call open.
func unknown(err error) bool {
	for _, d := range definite {
		if errors.Is(err, d) {
			return false
		}
	}
	return err != nil
}
