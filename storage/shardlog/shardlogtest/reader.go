package shardlogtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Head returns the head of a shard. The test fails if that stays unknown.
func Head(t TB, log shardlog.Log, shard int) shardlog.State {
	t.Helper()
	h, err := head(log, shard)
	if err != nil {
		t.Fatalf("head of shard %d: %v", shard, err)
	}
	return h
}

func head(log shardlog.Log, shard int) (h shardlog.State, err error) {
	for range tries {
		if h, err = log.Head(context.Background(), shard); !unknown(err) {
			break
		}
	}
	return h, err
}

// Records returns all records of a shard that nothing appends to. It reads as a node that takes over, and fails the test unless each
// record follows from the one before and the last is that of the head.
func Records(t TB, log shardlog.Log, shard int) []shardlog.Record {
	t.Helper()
	h := Head(t, log, shard)
	r := reading{at: h.First - 1, based: h.First > 1}
	if err := r.until(log, shard, h.Last); err != nil {
		t.Fatalf("read shard %d: %v", shard, err)
	}
	if r.at != h.Last || len(r.records) > 0 && r.chain != h.Chain {
		t.Fatalf("the records of shard %d end at %d with chain %x, its head at %d with chain %x", shard, r.at, r.chain, h.Last, h.Chain)
	}
	return r.records
}

// reading takes records and checks that they follow one another.
type reading struct {
	at      shardlog.Position // of the last record
	chain   uint64            // of it
	based   bool              // the chain before the next record is not known
	term    uint64
	records []shardlog.Record
	taken   func(shardlog.Position) // if not nil, called after each record
	wrong   error                   // why the records do not follow
}

// until reads the records after r.at, up to a position at least. One call may return before the end, but then it gives a record.
func (r *reading) until(log shardlog.Log, shard int, last shardlog.Position) error {
	open := 0 // calls in a row with an unknown outcome
	for r.at < last {
		before := r.at
		err := log.Read(context.Background(), shard, r.at+1, r.take)
		switch {
		case r.wrong != nil:
			return r.wrong
		case unknown(err) && open < tries:
			open++
		case err != nil:
			return fmt.Errorf("from record %d: %w", before+1, err)
		case r.at == before:
			return fmt.Errorf("no record from %d on, the head is at %d", before+1, last)
		default:
			open = 0
		}
	}
	return nil
}

// take is for Log.Read.
func (r *reading) take(next shardlog.Record) error {
	switch {
	case next.At != r.at+1:
		r.wrong = fmt.Errorf("record %d follows record %d", next.At, r.at)
	case next.Term < r.term:
		r.wrong = fmt.Errorf("record %d of term %d follows one of term %d", next.At, next.Term, r.term)
	case !r.based && next.Chain != shardlog.Next(r.chain, next.Payload):
		r.wrong = fmt.Errorf("record %d has another chain than its payload and the record before make", next.At)
	}
	if r.wrong != nil {
		return r.wrong
	}
	next.Payload = bytes.Clone(next.Payload)
	r.at, r.chain, r.based, r.term = next.At, next.Chain, false, next.Term
	r.records = append(r.records, next)
	if r.taken != nil {
		r.taken(r.at)
	}
	return nil
}

// holds compares the payloads of a shard with those that it must have.
func (s *suite) holds(t TB, shard int, want ...string) []shardlog.Record {
	t.Helper()
	records := Records(t, s.c.Log, shard)
	var got []string
	for _, r := range records {
		got = append(got, string(r.Payload))
	}
	if !slices.Equal(got, want) {
		t.Errorf("shard %d holds %.200q, want %.200q", shard, got, want)
	}
	return records
}

// headIs compares the head of a shard with the state that an owner knows.
func (s *suite) headIs(t TB, shard int, want shardlog.State) {
	t.Helper()
	if got := Head(t, s.c.Log, shard); got != want {
		t.Errorf("the head of shard %d is %+v, want %+v", shard, got, want)
	}
}
