package pglog

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// A page has 4 MiB of records or 4,096 of them, but for a larger record, which is a page of its own.
func TestPages(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	load := func(shard int32, from shardlog.Position) int {
		t.Helper()
		var p page
		must(t, l.reader.do(context.Background(), func(ctx context.Context, c *conn) error { return p.load(ctx, c, l.sql.read, shard, from) }))
		return len(p.records)
	}
	quarter := strings.Repeat("q", pageBytes/4)
	w := shardlogtest.Claim(t, l, 0, "a")
	for _, p := range []string{quarter, quarter, quarter, quarter, quarter, strings.Repeat("l", pageBytes+1), "", "s"} {
		must(t, w.Append(p))
	}
	for from, want := range map[shardlog.Position]int{1: 4, 2: 4, 3: 4, 6: 1, 7: 2, 9: 0} {
		if got := load(0, from); got != want {
			t.Errorf("the page from record %d has %d records, want %d", from, got, want)
		}
	}
	if got := len(shardlogtest.Records(t, l, 0)); got != 8 {
		t.Errorf("%d records are read, want 8", got)
	}

	many(t, l, 1, pageRecords+1)
	if got := load(1, 1); got != pageRecords {
		t.Errorf("the page from record 1 has %d records, want %d", got, pageRecords)
	}
	if got := load(1, 2); got != pageRecords {
		t.Errorf("the page from record 2 has %d records, want %d", got, pageRecords)
	}
	if got := len(shardlogtest.Records(t, l, 1)); got != pageRecords+1 {
		t.Errorf("%d records are read, want %d", got, pageRecords+1)
	}
}

// many puts n empty records into a shard that was never claimed.
func many(t *testing.T, l *Log, shard, n int) {
	t.Helper()
	var chain uint64
	at, chains := make([]int64, n), make([]int64, n)
	for i := range n {
		chain = shardlog.Next(chain, nil)
		at[i], chains[i] = int64(i+1), int64(chain)
	}
	_, err := l.change(context.Background(), l.o.names()(`with s as (insert into {shard} (id, term, owner, last, chain, written) values ($1, 1, 'many', $4, $5, 1))
		insert into {log} select $1, at, 1, chain, '' from unnest($2::bigint[], $3::bigint[]) t(at, chain)`), shard, at, chains, int64(n), int64(chain))
	must(t, err)
}

// Truncate deletes 1,000 records in a statement, so a thousand and one take two, and the others are there.
func TestTruncateInPortions(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	many(t, l, 0, 1003)
	ctx := context.Background()
	must(t, l.beginBehind(ctx, 0, 1, 1001))
	for i, want := range []int64{1000, 1, 0} {
		if got, err := l.change(ctx, l.sql.delete, 0, deleteRecords, deleteBytes); err != nil || got != want {
			t.Errorf("statement %d deletes %d records, %v, want %d", i, got, err, want)
		}
	}
	must(t, l.Truncate(ctx, 0, 1, 1002))
	must(t, l.Truncate(ctx, 0, 1, 5))
	if n := ask(t, pair.Primary, l.o.names()("select count(*) from {log}")); n != "1" {
		t.Errorf("%s records are left, want 1", n)
	}
	if h := shardlogtest.Head(t, l, 0); h.First != 1003 || h.Last != 1003 {
		t.Errorf("the head is %+v", h)
	}
	must(t, l.Truncate(ctx, 0, 1, 9999))
	if h := shardlogtest.Head(t, l, 0); h.First != 1004 || h.Last != 1003 {
		t.Errorf("after a truncation beyond the end the head is %+v", h)
	}
	if err := l.Truncate(ctx, 77, 1, 1); !errors.Is(err, shardlog.ErrFenced) {
		t.Errorf("the truncation of a shard without an owner: %v, want ErrFenced", err)
	}
}

// A record that is missing, at another place, of an older term or with another payload is a hole.
func TestHoles(t *testing.T) {
	pair := shared(t)
	for _, c := range []struct{ about, damage, says string }{
		{"a record is gone", "delete from {log} where at = 2", "record 2 is missing, the next is 3"},
		{"the last record is gone", "delete from {log} where at = 3", "record 3 is missing, the last is 3"},
		{"all records are gone", "delete from {log}", "record 1 is missing, the last is 3"},
		{"a term falls", "update {log} set term = 0 where at = 3", "record 3 has term 0"},
		{"a byte is another", `update {log} set rec = '\x00' where at = 2`, "record 2 has another chain"},
		{"a chain is another", "update {log} set chain = chain + 1 where at = 2", "record 2 has another chain"},
	} {
		t.Run(c.about, func(t *testing.T) {
			l := open(t, options(t, pair))
			w := shardlogtest.Claim(t, l, 0, "a")
			for range 3 {
				must(t, w.Append("x"))
			}
			ask(t, pair.Primary, l.o.names()(c.damage))
			err := l.Read(context.Background(), 0, 1, func(shardlog.Record) error { return nil })
			if !errors.Is(err, shardlog.ErrHole) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("read: %v, want a hole with %q", err, c.says)
			}
		})
	}
}
