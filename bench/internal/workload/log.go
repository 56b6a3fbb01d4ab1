package workload

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/pglog"
)

// servers are a primary and a synchronous standby of PostgreSQL for all that this process measures. They end with it.
var servers = sync.OnceValues(func() (*pgtest.Pair, error) {
	bin, err := pgtest.Find()
	if err != nil {
		return nil, err
	}
	return pgtest.Start(bin)
})

var schemas atomic.Int64

// Log is the log of one store in PostgreSQL. It counts the records that are appended.
type Log struct {
	*pglog.Log
	dsn, schema    string
	records, bytes atomic.Int64
}

// OpenLog opens an empty log.
func OpenLog(ctx context.Context) (*Log, error) {
	pair, err := servers()
	if err != nil {
		return nil, err
	}
	o := pglog.Options{DSN: pgtest.DSN(pair.Primary.Port), Schema: fmt.Sprint("bench", schemas.Add(1))}
	if err := pglog.Init(ctx, o); err != nil {
		return nil, err
	}
	l, err := pglog.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Log{Log: l, dsn: o.DSN, schema: o.Schema}, nil
}

// Append appends a record, and counts it.
func (l *Log) Append(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
	err := l.Log.Append(ctx, shard, before, r)
	if err == nil {
		l.records.Add(1)
		l.bytes.Add(int64(len(r.Payload)))
	}
	return err
}

// Appended is how many records were appended until now, and their bytes.
func (l *Log) Appended() (records, bytes int64) { return l.records.Load(), l.bytes.Load() }

// Options are those of a host over the log, with its view in a directory that OpenCounters is given.
func (l *Log) Options() object.Options {
	return object.Options{Storage: shardlog.Options{Log: l}.Storage(storage.Options{})}
}

// Bare appends records of one size to a shard, one at a time.
type Bare struct {
	log     *Log
	at      shardlog.Record
	payload []byte
}

// bareShard is the shard of bare appends, beside that of the store.
const bareShard = 1

// Bare claims a shard for bare appends.
func (l *Log) Bare(ctx context.Context, sizeBytes int) (*Bare, error) {
	head, err := l.Head(ctx, bareShard)
	if err == nil {
		head, err = l.Claim(ctx, bareShard, "bare", head.Term)
	}
	return &Bare{l, shardlog.Record{At: head.Last, Term: head.Term, Chain: head.Chain}, make([]byte, sizeBytes)}, err
}

// Append appends one record.
func (b *Bare) Append(ctx context.Context) error {
	r := shardlog.Record{At: b.at.At + 1, Term: b.at.Term, Chain: shardlog.Next(b.at.Chain, b.payload), Payload: b.payload}
	err := b.log.Log.Append(ctx, bareShard, b.at.Chain, r)
	if err == nil {
		b.at = r
	}
	return err
}

// Replay opens a view of the log in an empty directory.
func (l *Log) Replay(dir string) error {
	s, err := storage.Open(shardlog.Options{Log: l}.Storage(storage.Options{Dir: dir}))
	if err != nil {
		return err
	}
	return s.Close()
}

// ReadAll reads all records of the store, and returns how many batches they have.
func (l *Log) ReadAll(ctx context.Context) (batches int, err error) {
	err = l.Read(ctx, 0, 1, func(r shardlog.Record) error {
		return shardlog.Batches(r.Payload, func([]byte) error { batches++; return nil })
	})
	return batches, err
}
