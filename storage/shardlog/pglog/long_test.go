package pglog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// A lap is so many records of so many shards.
const (
	lapRecords = 4000
	lapShards  = 32
)

// laps are owners that append through the lanes, and truncate behind themselves as snapshots do.
type laps struct {
	t      *testing.T
	pair   *pgtest.Pair
	log    *Log
	owners []*shardlogtest.Writer
	small  string // payload in the row
	large  string // payload beside the row, of each tenth record
}

// startLaps claims the shards.
func startLaps(t *testing.T, pair *pgtest.Pair, l *Log) *laps {
	t.Helper()
	p := &laps{t: t, pair: pair, log: l, small: strings.Repeat("s", 200), large: strings.Repeat("l", 3000)}
	for i := range lapShards {
		p.owners = append(p.owners, shardlogtest.Claim(t, l, i, fmt.Sprint("owner ", i)))
	}
	return p
}

// run has all owners append one lap.
func (p *laps) run() {
	p.t.Helper()
	failed := make([]error, len(p.owners))
	var running sync.WaitGroup
	for i, w := range p.owners {
		running.Go(func() { failed[i] = p.one(w) })
	}
	running.Wait()
	must(p.t, errors.Join(failed...))
}

// one appends the records of one shard, truncates twice meanwhile, and leaves ten records.
func (p *laps) one(w *shardlogtest.Writer) error {
	const records, left = lapRecords / lapShards, 10
	for n := 1; n <= records; n++ {
		payload := p.small
		if n%10 == 0 {
			payload = p.large
		}
		if err := w.Append(payload); err != nil {
			return err
		}
		if n == records/2 || n == records {
			if err := p.log.Truncate(context.Background(), w.Shard, w.State.Term, w.State.Last-left); err != nil {
				return err
			}
		}
	}
	return nil
}

// traces are what a lap has left behind.
type traces struct {
	log, shard  int64 // bytes of the tables, with their indexes and the payloads beside the rows
	row, oldest int64 // pages that PostgreSQL visits to find the row of a shard, and its oldest record
}

func (p *laps) look() traces {
	p.t.Helper()
	return traces{
		log: p.bytes("{log}"), shard: p.bytes("{shard}"),
		row:    p.pages("select last from {shard} where id = 1"),
		oldest: p.pages("select min(at) from {log} where shard = 1"),
	}
}

// number asks for a whole number. The statement has the names of tables in braces.
func (p *laps) number(sql string) int64 {
	p.t.Helper()
	n, err := strconv.ParseInt(ask(p.t, p.pair.Primary, p.log.o.names()(sql)), 10, 64)
	must(p.t, err)
	return n
}

func (p *laps) bytes(table string) int64 {
	p.t.Helper()
	return p.number("select pg_total_relation_size('" + table + "')")
}

// pages are those in memory or on disk that a statement visits. They tell its cost on a busy machine too.
func (p *laps) pages(sql string) int64 {
	p.t.Helper()
	c := connection(p.t, p.pair)
	var text string
	must(p.t, c.QueryRow(p.t.Context(), p.log.o.names()("explain (analyze, buffers, timing off, format json) "+sql)).Scan(&text))
	must(p.t, c.Close(p.t.Context()))
	var plans []struct {
		Plan struct {
			Hit  int64 `json:"Shared Hit Blocks"`
			Read int64 `json:"Shared Read Blocks"`
		}
	}
	must(p.t, json.Unmarshal([]byte(text), &plans))
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// connection is a connection to the primary.
func connection(t *testing.T, pair *pgtest.Pair) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), pgtest.DSN(pair.Primary.Port))
	must(t, err)
	t.Cleanup(func() { _ = c.Close(context.Background()) }) // it may be closed
	return c
}

// count has each session tell of the rows that it has changed, because PostgreSQL would wait up to ten seconds with that.
func (p *laps) count() {
	p.t.Helper()
	lanes := p.log.lanes
	for idle := 0; idle < p.log.o.Lanes; runtime.Gosched() { // a lane answers before it is idle
		lanes.mu.Lock()
		idle = len(lanes.idle)
		lanes.mu.Unlock()
	}
	for _, k := range p.log.links() {
		must(p.t, k.run(context.Background(), func(ctx context.Context, c *conn) error {
			_, err := c.Exec(ctx, "select pg_stat_force_next_flush()")
			return err
		}))
	}
}

// autovacuumed waits until autovacuum leaves at most a quarter of the records of a lap in each table.
func (p *laps) autovacuumed() {
	p.t.Helper()
	p.count()
	for p.number("select max(n_dead_tup) from pg_stat_all_tables where relid in ('{log}'::regclass, '{shard}'::regclass)") > lapRecords/4 {
	}
}

// vacuum runs VACUUM on the tables.
func (p *laps) vacuum() {
	p.t.Helper()
	p.count()
	must(p.t, execute(p.t, p.pair, p.log.o.names()("vacuum {log}, {shard}")))
}

// Bounds of the tables after laps each of which autovacuum follows. A lap leaves about 2 MB of dead records, so a log of five laps
// without truncation, or without a vacuum, is beyond them. A look-up of the oldest record visits 2 to 4 pages, and up to 45 after one lap in
// a thousand, because a transaction beside a vacuum, such as that of an analyze, keeps dead records of that lap; 240 pages are two laps
// without a vacuum.
const (
	mostLog    = 8 << 20 // bytes
	mostShard  = 2 << 20
	mostPages  = 16
	mostOldest = 64
)

// bounded fails the test if a table is beyond its bounds.
func (p *laps) bounded(got traces, when string) {
	p.t.Helper()
	if got.log > mostLog || got.shard > mostShard || got.row > mostPages || got.oldest > mostOldest {
		p.t.Fatalf("%s: %+v, want at most %+v", when, got, traces{mostLog, mostShard, mostPages, mostOldest})
	}
}

// The tables do not grow with the number of appends, and neither does the work for one, because owners truncate behind themselves and
// autovacuum makes the space usable again. It looks each second here and once a minute by default, and each lap waits for it. The times of
// appends are told and fail nothing.
func TestTablesStayBounded(t *testing.T) {
	pair := shared(t)
	set(t, pair.Primary, "autovacuum_naptime", "1")
	p := startLaps(t, pair, open(t, options(t, pair)))
	var times []time.Duration
	for n := 1; n <= fromEnv(t, "HOLDFAST_PG_APPENDS", 20_000, 160_000)/lapRecords; n++ {
		began := p.log.o.Seams.Steady()
		p.run()
		times = append(times, p.log.o.Seams.Steady().Sub(began)/lapRecords)
		p.autovacuumed()
		got := p.look()
		p.bounded(got, fmt.Sprintf("after %d appends", n*lapRecords))
		if n&(n-1) == 0 || n%25 == 0 {
			t.Logf("%d appends, %v each in the last lap: %+v", n*lapRecords, times[n-1], got)
		}
	}
	quarter := (len(times) + 3) / 4
	t.Logf("TIMED: an append took %v in the first quarter and %v in the last", median(times[:quarter]), median(times[len(times)-quarter:]))
}

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}

// A transaction that stays open, such as a dump, keeps the dead rows of both tables: they grow, and each append visits more pages. Health
// names its session. Once it has ended, vacuum makes the space usable again, and the work is as before.
func TestOpenTransactionKeepsDeadRows(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	p := startLaps(t, pair, l)
	lap := func(when string) traces {
		p.run()
		p.vacuum()
		got := p.look()
		t.Logf("%s: %+v", when, got)
		return got
	}
	before := lap("before the dump")
	p.bounded(before, "before the dump")

	dump := connection(t, pair)
	tx, err := dump.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	must(t, err)
	_, err = tx.Exec(t.Context(), "select 1") // it takes the snapshot
	must(t, err)
	first, second := lap("beside the dump"), lap("beside the dump")
	for range fromEnv(t, "HOLDFAST_PG_APPENDS", 0, 160_000)/lapRecords/10 - 2 { // a tenth of the others, because each takes longer
		second = lap("beside the dump")
	}
	for _, pair := range [][2]traces{{before, first}, {first, second}} {
		if a, b := pair[0], pair[1]; b.shard <= a.shard || b.row <= a.row || b.oldest <= a.oldest {
			t.Errorf("beside a dump one lap leaves %+v and the next %+v, want more of each", a, b)
		}
	}
	if second.log <= first.log { // the first lap had the space of the one before the dump
		t.Errorf("beside a dump the log has %d bytes after one lap and %d after two, want more", first.log, second.log)
	}
	watched := holdBounds{age: 100, since: 24 * time.Hour, dead: lapRecords}
	h, err := l.health(t.Context(), watched)
	must(t, err)
	if h.DeadRows < 2*lapRecords || h.LogBytes <= first.log {
		t.Errorf("two laps beside the dump: %d dead rows of %d appends, %d bytes of log, want more than %d", h.DeadRows, 2*lapRecords, h.LogBytes, first.log)
	}
	found := kinds(t, l, watched)
	if hold := found["session"]; !strings.Contains(hold.Name, fmt.Sprint(dump.PgConn().PID())) || found[deadRows].Age != h.DeadRows {
		t.Errorf("the holds are %v, want session %d and the dead rows", h.Holds, dump.PgConn().PID())
	}

	must(t, tx.Rollback(t.Context()))
	p.vacuum()
	if found := kinds(t, l, watched); len(found) > 0 {
		t.Errorf("after the end of the dump: %v", found)
	}
	after := lap("after the dump")
	if after.log > second.log || after.shard > second.shard || after.row > mostPages || after.oldest > mostPages {
		t.Errorf("after the dump a lap leaves %+v; beside it the last left %+v", after, second)
	}
}
