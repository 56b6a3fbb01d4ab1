package memlog

import (
	"context"
	"time"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// SetBase puts a base in the place of all records of a shard: First is last+1, and chain, that of the base, is before the next record.
// Term and owner stay.
func (l *Log) SetBase(shard int, last shardlog.Position, chain uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.at(shard)
	s.records, s.base, s.written = nil, chain, 0
	s.head.First, s.head.Last, s.head.Chain = last+1, last, chain
}

// SetLost is Quarantine for a test, which knows that it succeeds. The log must be up, and where must not be empty.
func (l *Log) SetLost(shard int, where string) {
	if err := l.Quarantine(context.Background(), shard, where); err != nil {
		panic(err)
	}
}

// SetClock gives the engine a clock, which looks show and Forget goes by. It must not call the log.
func (l *Log) SetClock(now func() time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = now
}

// SetCluster gives the log the name of another cluster.
func (l *Log) SetCluster(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cluster = name
}

// Rewind loses the records of a shard after a position, as a fail-over to a replica does that lags behind. Term and owner stay. A
// position beyond the end loses nothing, and one before the first record loses all of them, but no base.
func (l *Log) Rewind(shard int, to shardlog.Position) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.at(shard)
	if to >= s.head.Last {
		return
	}
	n := max(to+1, s.head.First) - s.head.First
	s.records = s.records[:n:n] // without room behind it, because a reader may have the records that are lost
	s.head.Last, s.head.Chain, s.written = s.head.First+n-1, s.base, 0
	if n > 0 {
		s.head.Chain, s.written = s.records[n-1].Chain, s.records[n-1].Term
	}
}

// Crash ends the log as a power loss ends an engine, and returns the log that comes back: it has all that is durable, and nothing
// else. From then on each call of l returns an error that leaves the outcome unknown.
func (l *Log) Crash() *Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	back := New()
	back.cluster, back.shards, back.incarnations, back.now = l.cluster, l.shards, l.incarnations, l.now
	for _, s := range back.shards {
		s.collect()
	}
	l.shards, l.crashed = make(map[int]*shard), true
	return back
}
