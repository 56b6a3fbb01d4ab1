// Package memlog is a shardlog.Log in memory, with its Directory and its Blobs, for tests and simulations.
//
//   - It keeps each promise of the three. All that must survive a crash survives Crash, and all that need not is gone then: the rows
//     of nodes, and the blobs that no snapshot names.
//   - It starts no goroutine, takes no time and draws no number, so a simulation repeats with it. A call holds one mutex
//     for a few comparisons.
//   - SetBase, SetLost, Rewind, SetClock and SetCluster bring a log into the states that a test needs: behind a base, in quarantine, with
//     its newest records lost, with a clock of its own, and of another cluster.
//
// Nothing of it is on a disk. The end of the process is the end of the log.
package memlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Log is the logs of any number of shards. Its methods may be called from any goroutine, also from a function that Read calls.
type Log struct {
	mu           sync.Mutex
	cluster      string
	shards       map[int]*shard
	nodes        map[string]beaten
	incarnations uint64           // given so far
	now          func() time.Time // the clock of the engine
	crashed      bool
}

// shard is the log of one shard. Log.mu guards it.
type shard struct {
	head    shardlog.State
	records []shardlog.Record // of head.First to head.Last; the elements never change, because readers share them
	base    uint64            // the chain of the record before records
	written uint64            // the term of the record at head.Last, also when it was truncated; 0 for a base

	late      string
	snapshots []shardlog.Snapshot // by Last, the newest first; some may be from before head.First
	blobs     map[string][][]byte // the parts, which never change
}

var (
	_ shardlog.Log       = (*Log)(nil)
	_ shardlog.Directory = (*Log)(nil)
	_ shardlog.Blobs     = (*Log)(nil)
)

var errCrashed = errors.New("memlog: the log has crashed")

// firstCluster is the name of the cluster of each new log.
const firstCluster = "00000000000000000000000000000001"

// New returns a log in which no shard is claimed. Its clock stands at the Unix epoch, see SetClock.
func New() *Log {
	return &Log{
		cluster: firstCluster, shards: make(map[int]*shard), nodes: make(map[string]beaten),
		now: func() time.Time { return time.Unix(0, 0).UTC() },
	}
}

// at returns the log of a shard. Log.mu must be held.
func (l *Log) at(n int) *shard {
	s := l.shards[n]
	if s == nil {
		s = &shard{head: shardlog.State{First: 1}, blobs: make(map[string][][]byte)}
		l.shards[n] = s
	}
	return s
}

// answers returns nil if a call can be done. Log.mu must be held.
func (l *Log) answers(ctx context.Context) error {
	if l.crashed {
		return fmt.Errorf("%w: %w", shardlog.ErrUnknown, errCrashed)
	}
	return ended(ctx)
}

// ended returns an error if the context of a call has ended.
func ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", shardlog.ErrUnknown, err)
	}
	return nil
}

// Head implements shardlog.Log.
func (l *Log) Head(ctx context.Context, shard int) (shardlog.State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return shardlog.State{}, err
	}
	return l.at(shard).head, nil
}

// Claim implements shardlog.Log.
func (l *Log) Claim(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return shardlog.State{}, err
	}
	h := &l.at(shard).head
	switch {
	case h.Lost != "":
		return shardlog.State{}, fmt.Errorf("%w: shard %d is in quarantine: %s", shardlog.ErrFenced, shard, h.Lost)
	case h.Term != seen:
		return shardlog.State{}, fmt.Errorf("%w: shard %d has term %d, the claim is for the one after %d", shardlog.ErrFenced, shard, h.Term, seen)
	}
	h.Term, h.Owner = h.Term+1, owner
	return *h, nil
}

// Append implements shardlog.Log. It returns shardlog.ErrRefused for a record with a chain that is not that of its payload,
// because no reader would take it.
func (l *Log) Append(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
	if r.Chain != shardlog.Next(before, r.Payload) {
		return fmt.Errorf("%w: the chain of record %d is not that of its payload", shardlog.ErrRefused, r.At)
	}
	r.Payload = bytes.Clone(r.Payload) // here, so that the mutex is held for a short time
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return err
	}
	return l.at(shard).append(before, r)
}

func (s *shard) append(before uint64, r shardlog.Record) error {
	h := &s.head
	switch {
	case r.Term != h.Term:
		return fmt.Errorf("%w: record %d has term %d, the log has %d", shardlog.ErrFenced, r.At, r.Term, h.Term)
	case r.At == h.Last && r.Chain == h.Chain && r.Term == s.written:
		return nil // a repeat
	case r.At != h.Last+1 || before != h.Chain:
		return fmt.Errorf("%w: record %d does not follow from record %d, the last", shardlog.ErrFenced, r.At, h.Last)
	}
	s.records = append(s.records, r)
	h.Last, h.Chain, s.written = r.At, r.Chain, r.Term
	return nil
}

// Read implements shardlog.Log. It gives the records that the log has when the call begins.
func (l *Log) Read(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
	records, err := l.from(ctx, shard, from)
	if err != nil {
		return err
	}
	for _, r := range records {
		if err := ended(ctx); err != nil {
			return err
		}
		if err := f(r); err != nil {
			return err
		}
	}
	return nil
}

func (l *Log) from(ctx context.Context, shard int, from shardlog.Position) ([]shardlog.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return nil, err
	}
	s := l.at(shard)
	if from < s.head.First {
		return nil, fmt.Errorf("%w: at %d, not at %d", shardlog.ErrTruncated, s.head.First, from)
	}
	return s.records[min(from-s.head.First, shardlog.Position(len(s.records))):], nil
}

// Truncate implements shardlog.Log. A position beyond the end removes all records, and the next is still that after Last.
func (l *Log) Truncate(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.answers(ctx); err != nil {
		return err
	}
	s := l.at(shard)
	if err := s.claimed(term); err != nil {
		return err
	}
	upTo = min(upTo, s.head.Last)
	if upTo < s.head.First {
		return nil
	}
	n := upTo - s.head.First + 1
	s.base = s.records[n-1].Chain
	s.records = slices.Clone(s.records[n:]) // frees the payloads of the others
	s.head.First = upTo + 1
	return nil
}
