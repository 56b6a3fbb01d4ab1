package pglog

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Log is the logs of the shards of a cluster in PostgreSQL, with its directory and its blobs. It is a shardlog.Log, a shardlog.Directory and a
// shardlog.Blobs, and its methods may be called from any goroutine. Shards are numbered from 0 to 2^31-1.
//
// An error that leaves the outcome unknown wraps shardlog.ErrUnknown. A time-out and an end of the context are among them, because
// PostgreSQL may still store the record.
type Log struct {
	o       Options
	config  *pgx.ConnConfig
	hosts   []host
	first   atomic.Int32 // index of the host to ask first, where all connections belong
	commit  string       // synchronous_commit of each statement that acknowledges: "on"
	cluster string
	sql     statements

	tasks   tasks
	running context.Context // ends when the log is closed
	stop    context.CancelFunc

	lanes   *lanes
	asked   asked
	control *link // for Head and Claim
	reader  *link // for records that are read or removed, snapshots, losses, blobs, and a look at that which holds up a claim
	beats   *link // for Beat, Look and Forget

	met struct { // the server of the last connection
		sync.Mutex
		server
	}

	warned struct {
		sync.Mutex
		at map[string]time.Time // of the last warning, by its detail
	}
}

var (
	_ shardlog.Log       = (*Log)(nil)
	_ shardlog.Directory = (*Log)(nil)
	_ shardlog.Blobs     = (*Log)(nil)
)

// Open connects to the logs of the schema, which Init has made, and checks that PostgreSQL keeps them as Options say. It refuses settings
// with which an acknowledged record could be lost, and names the option that allows them. The context bounds Open
// alone. The log must be closed.
func Open(ctx context.Context, options Options) (*Log, error) {
	l, err := prepare(options)
	if err != nil {
		return nil, err
	}
	if err := l.check(ctx); err != nil {
		l.Close()
		return nil, fmt.Errorf("pglog: open: %w", err)
	}
	return l, nil
}

// prepare returns a log that has not connected yet.
func prepare(options Options) (*Log, error) {
	o, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(o.DSN)
	if err != nil {
		return nil, fmt.Errorf("pglog: Options.DSN: %w", err)
	}
	l := &Log{o: o, config: config, hosts: hosts(config), commit: "on", sql: newStatements(o)}
	l.tasks.seams = &l.o.Seams
	l.running, l.stop = context.WithCancel(context.Background())
	l.warned.at = make(map[string]time.Time)
	l.control, l.reader, l.beats = l.newLink("head"), l.newLink("read"), l.newLink("beat")
	l.lanes = newLanes(l)
	l.asked.waiting = make(map[int32]*question)
	return l, nil
}

// Close ends the connections. Calls under way end with an unknown outcome. It waits for their statements: up to Options.Timeout, and up to
// 15 s more if PostgreSQL does not answer at all. A second Close does nothing.
func (l *Log) Close() {
	ended := l.tasks.close()
	if ended == nil {
		return
	}
	l.stop()
	_ = l.o.Seams.Executor.Wait(context.Background(), ended)
	for _, k := range l.links() {
		k.close()
	}
}

// links are all connections. All lanes are idle, because the tasks have ended.
func (l *Log) links() []*link {
	all := []*link{l.control, l.reader, l.beats}
	for _, n := range l.lanes.idle {
		all = append(all, n.link)
	}
	return all
}

// within bounds a statement by Options.Timeout.
func (l *Log) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return l.withinAll(ctx, 1)
}

// withinAll bounds so many statements by Options.Timeout each.
func (l *Log) withinAll(ctx context.Context, statements int) (context.Context, context.CancelFunc) {
	limit := l.o.Timeout * time.Duration(statements)
	return l.o.Seams.WithDeadline(ctx, l.o.Seams.Clock.Now().Add(limit), errSlow)
}

// warn logs a problem, the same one at most once a minute, because each statement meets it.
func (l *Log) warn(kind, detail string) {
	now := l.o.Seams.Steady()
	l.warned.Lock()
	last, again := l.warned.at[detail]
	quiet := again && now.Sub(last) < time.Minute
	if !quiet {
		l.warned.at[detail] = now
	}
	l.warned.Unlock()
	if !quiet {
		l.o.Log.Warn("pglog: "+kind, "detail", detail, "schema", l.o.Schema)
	}
}

// number refuses a shard that no column holds.
func number(shard int) (int32, error) {
	if shard < 0 || shard > math.MaxInt32 {
		return 0, fmt.Errorf("%w: shard %d: give 0 to %d", shardlog.ErrRefused, shard, math.MaxInt32)
	}
	return int32(shard), nil
}
