package shardlog

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Position is the place of a record in its log: 1 for the first, without gaps.
type Position uint64

// Record is what one append stores: the batches of one round, or of a part of it.
type Record struct {
	At      Position
	Term    uint64 // of the owner that appended it; it never falls from record to record
	Chain   uint64 // Next of the chain before and Payload
	Payload []byte // see Batches
}

// State is the head of a log.
type State struct {
	// Term is the newest ownership. It is 0 until the first Claim.
	Term uint64
	// Owner is the name that claimed it.
	Owner string
	// First and Last are the records that are kept. A log without records has Last = First-1. First > 1 says that
	// what came before is in a base, which a view must have.
	First, Last Position
	// Chain is that of the record at Last, or of the base if there is no record.
	Chain uint64
	// Lost is not empty if acknowledged records are missing and the shard is in quarantine, so that no claim succeeds: it says where, and the
	// process that found it. See Directory.Quarantine.
	Lost string
}

// Node is the part of Owner that names its process: Options.Owner, without the random bits that a claim writes behind it.
func (s State) Node() string {
	if at := strings.LastIndexByte(s.Owner, ' '); at >= 0 {
		return s.Owner[:at]
	}
	return s.Owner
}

// Log keeps the ordered, fenced records of shards, each of which has a log of its own. Its methods may be called from any
// goroutine. Package shardlogtest tests an implementation.
//
// An error that is none of this package's says that the outcome is unknown. The context bounds a call, and its end leaves the
// outcome unknown too.
type Log interface {
	// Head returns the head as it is durable now: the state survives all that the log is made to survive. It proves to an
	// owner that its term was the newest at some moment after the call began. A shard that was never claimed has the
	// zero State but for First, which is 1.
	Head(ctx context.Context, shard int) (State, error)
	// Claim begins the term after seen for owner, which names this one claim, and returns the head. It returns ErrFenced
	// if seen is not the newest term, or if the log is Lost. Once it has returned, no append of an older term succeeds.
	Claim(ctx context.Context, shard int, owner string, seen uint64) (State, error)
	// Append stores r, if r.Term is the newest term and the log ends at r.At-1 with the chain before. Nil says that the
	// record is stored and durable; it also answers the repeat of the last record, with the same term. ErrFenced says that
	// this call stored nothing, because another term has begun, and then no later call of this term stores anything, or because
	// r does not follow the last record. ErrNoSpace and ErrRefused say that this call stored
	// nothing. After any other error the record is stored, is not, or will be: the same call is to be made again.
	// It does not keep r.Payload, which may be empty.
	Append(ctx context.Context, shard int, before uint64, r Record) error
	// Read calls f with the records from a position on, in order, until f fails, and returns the error of f. The record is
	// valid during the call. f may call the Log. Read returns ErrTruncated if the log begins later, and ErrHole if a record is missing or damaged. It may return
	// before the end of the log, so a reader compares with Head, but it gives at least one record if there is one.
	Read(ctx context.Context, shard int, from Position, f func(Record) error) error
	// Truncate removes the records up to a position, which a base holds, for the owner of the newest term. It is nil if they are removed by now.
	// Last and Chain stay, also when no record is left, and a position beyond Last counts as Last. It returns ErrFenced and removes nothing
	// if term is not the newest or is 0, or if the log is Lost.
	Truncate(ctx context.Context, shard int, term uint64, upTo Position) error
}

// Errors of a Log.
var (
	// ErrFenced: another owner has begun a newer term.
	ErrFenced = errors.New("shardlog: another process has taken over")
	// ErrUnknown: the outcome of a call is not known.
	ErrUnknown = errors.New("shardlog: outcome unknown")
	// ErrHole: the records do not follow one another, or one is damaged.
	ErrHole = errors.New("shardlog: the log has a hole")
	// ErrTruncated: the log begins after the position that a reader wants.
	ErrTruncated = errors.New("shardlog: the log begins later")
	// ErrNoSpace: the engine of the log has no space left.
	ErrNoSpace = errors.New("shardlog: no space left for the log")
	// ErrRefused: the engine of the log refuses for a reason that no repeat changes, such as a missing table or right.
	ErrRefused = errors.New("shardlog: the log refuses")
	// ErrMissing: a blob is not there.
	ErrMissing = errors.New("shardlog: a blob is missing")
)

// Follows returns nil if r can stand behind the record before, in a log with the newest term newest, and an error that wraps ErrHole if
// it cannot. It compares position, term and chain of before. Term 0 comes before each other, as that of a base.
func (r Record) Follows(before Record, newest uint64) error {
	switch {
	case r.At != before.At+1:
		return fmt.Errorf("%w: record %d follows record %d", ErrHole, r.At, before.At)
	case r.Term < before.Term || r.Term > newest:
		return fmt.Errorf("%w: record %d has term %d, after term %d and before term %d", ErrHole, r.At, r.Term, before.Term, newest)
	case r.Chain != Next(before.Chain, r.Payload):
		return fmt.Errorf("%w: record %d is not the one that follows record %d: its chain differs", ErrHole, r.At, before.At)
	}
	return nil
}

// Next is the chain of a record that follows a record with the chain before: XXH64 of both.
func Next(before uint64, payload []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], before)
	_, _ = d.Write(b[:]) // never fails
	_, _ = d.Write(payload)
	return d.Sum64()
}
