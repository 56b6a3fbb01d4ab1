package pglog

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/internal/testing/prove"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// The log keeps each promise of Directory and Blobs, also over the loss of power of the primary.
func TestDirectory(t *testing.T) {
	pair := shared(t)
	shardlogtest.RunDirectory(t, directoryConfig(t, pair, func(l *Log) shardlogtest.Engine { return l }, func() {
		must(t, pair.Primary.StopNow())
		must(t, pair.Primary.Start())
	}))
}

// directoryConfig is the suite's view of a log in a new schema, with something in front of it. Each restart cuts the power of the primary and
// opens another log.
func directoryConfig(t *testing.T, pair *pgtest.Pair, front func(*Log) shardlogtest.Engine, cut func()) shardlogtest.DirectoryConfig {
	o := options(t, pair)
	l := open(t, o)
	return shardlogtest.DirectoryConfig{
		Engine: front(l),
		Restart: func() shardlogtest.Engine {
			cut()
			l.Close()
			l = open(t, o)
			return front(l)
		},
		Rewind: func(shard int, to shardlog.Position) error {
			_, err := l.change(context.Background(), o.names()(`with d as (delete from {log} where shard = $1::int and at > $2::bigint)
				update {shard} p set last = r.at, chain = r.chain, written = r.term from {log} r where p.id = $1 and r.shard = $1 and r.at = $2`), shard, int64(to))
			return err
		},
	}
}

// lazyBlobs is a log with registrations that are not durable, and neither are the blobs before them.
type lazyBlobs struct {
	*Log
	lazy *Log
}

func (l lazyBlobs) Begin(ctx context.Context, shard int, base shardlog.Snapshot) error {
	return l.lazy.Begin(ctx, shard, base)
}

func (l lazyBlobs) Register(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error {
	return l.lazy.Register(ctx, shard, term, s)
}

// A log that registers with synchronous_commit = off loses snapshots and their blobs at a power loss. The suite finds it each time.
func TestSuiteFindsLazyRegistration(t *testing.T) {
	pair := shared(t)
	times := 1
	if prove.Long() {
		times = 3
	}
	asleep(t, pair)
	for i := range times {
		c := directoryConfig(t, pair, func(l *Log) shardlogtest.Engine {
			lazy := open(t, l.o)
			lazy.commit = lazily
			return lazyBlobs{l, lazy}
		}, func() { killed(t, pair) })
		for _, k := range shardlogtest.DirectoryCases(c) {
			if k.Name != "durable" {
				continue
			}
			found := shardlogtest.Failures(k)
			t.Logf("time %d: %d failures: %.300s", i, len(found), found)
			if len(found) == 0 {
				t.Errorf("time %d: the case durable passes with synchronous_commit = off", i)
			}
		}
	}
}

// Forget goes by the clock of the database.
func TestForgetGoesByTheLastBeat(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	ctx := context.Background()
	const week = 7 * 24 * time.Hour
	for _, id := range []string{"younger", "older"} {
		_, err := l.Beat(ctx, 0, shardlog.Node{ID: id})
		must(t, err)
	}
	ask(t, pair.Primary, l.o.names()("update {node} set at = clock_timestamp() - interval '7 days' + case id when 'older' then interval '0' else interval '1 hour' end"))
	must(t, l.Forget(ctx, week))
	look, err := l.Look(ctx, 0)
	if err != nil || len(look.Nodes) != 1 || look.Nodes[0].ID != "younger" {
		t.Errorf("after a week there are %+v: %v", look.Nodes, err)
	}
	must(t, l.Forget(ctx, week-time.Hour-1))
	if look, err = l.Look(ctx, 0); err != nil || len(look.Nodes) != 0 {
		t.Errorf("after a week there are %+v: %v", look.Nodes, err)
	}
}

// A recovery of several pages puts all of them back in one transaction.
func TestRecoverPages(t *testing.T) {
	var small []shardlog.Record
	for range pageRecords + 1 {
		small = append(small, shardlog.Record{})
	}
	columns, rest := nextPage(small)
	if len(columns[0].([]int64)) != pageRecords || len(rest) != 1 {
		t.Errorf("a page has %d records and leaves %d", len(columns[0].([]int64)), len(rest))
	}
	half := make([]byte, pageBytes/2)
	for extra, want := range map[int]int{0: 2, 1: 1} {
		records := []shardlog.Record{{Payload: half}, {Payload: append(half, make([]byte, extra)...)}}
		if columns, _ = nextPage(records); len(columns[0].([]int64)) != want {
			t.Errorf("two records, %d bytes more than a page, are %d in a page, want %d", extra, len(columns[0].([]int64)), want)
		}
	}

	l := open(t, options(t, shared(t)))
	ctx := context.Background()
	w := shardlogtest.Claim(t, l, 0, "a")
	must(t, w.Append("1"))
	before := w.State
	var lost []shardlog.Record
	for _, n := range []int{3 << 20, 3 << 20, 0, pageBytes + 1, 1} { // pages of 1, 2, 1 and 1 records
		r := w.Record(strings.Repeat("x", n))
		w.State.Last, w.State.Chain = r.At, r.Chain
		lost = append(lost, r)
	}
	must(t, l.Quarantine(ctx, 0, "record 6"))
	if n := len(l.recovery(0, 2, before.Chain, lost, &row{})); n != 4+2 {
		t.Errorf("the recovery has %d statements, want 4 pages and 2", n)
	}
	h, err := l.Recover(ctx, 0, before.Term+1, before.Chain, lost)
	if err != nil || h.Last != w.State.Last || h.Chain != w.State.Chain {
		t.Errorf("the recovery: %+v, %v", h, err)
	}
	if n := len(shardlogtest.Records(t, l, 0)); n != 6 {
		t.Errorf("after the recovery there are %d records, want 6", n)
	}
}
