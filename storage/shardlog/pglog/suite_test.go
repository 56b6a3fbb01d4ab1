package pglog

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/internal/testing/prove"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// The log keeps each promise of shardlog.Log, also over the loss of power of the primary.
func TestLog(t *testing.T) {
	pair := shared(t)
	shardlogtest.Run(t, config(t, pair, open(t, options(t, pair))))
}

// The log keeps them through a proxy that cuts its connections before and after PostgreSQL has done an append or a claim. A claim is
// cut twice, because the log repeats it once by itself. It repeats no append, whose caller must know of the unknown outcome.
func TestLogThroughCuts(t *testing.T) {
	pair := shared(t)
	p, err := pgtest.NewProxy(pair.Primary)
	must(t, err)
	t.Cleanup(p.Close)
	o := options(t, pair)
	o.DSN = pgtest.DSN(p.Port)
	c := config(t, pair, open(t, o))
	moments := map[shardlogtest.Moment]pgtest.Moment{shardlogtest.Before: pgtest.Before, shardlogtest.After: pgtest.After}
	cuts := 0
	c.Cut = func(m shardlogtest.Moment) {
		cuts++
		p.Cut(moments[m], map[string]int{"unnest(": 1, "as p (id, term, owner)": 2})
	}
	for _, k := range shardlogtest.Cases(c) {
		if strings.HasPrefix(k.Name, "cut") || k.Name == "same-node" {
			t.Run(k.Name, func(t *testing.T) { k.Run(t) })
		}
	}
	if cuts == 0 || p.Done() < cuts {
		t.Errorf("%d calls were to be cut, and %d statements were", cuts, p.Done())
	}
}

// config is the suite's view of a log: its engine can be stopped at once and started again, and put into states that
// other parts of a cluster make.
func config(t *testing.T, pair *pgtest.Pair, l *Log) shardlogtest.Config {
	exec := func(sql string, args ...any) error {
		_, err := l.change(context.Background(), l.o.names()(sql), args...)
		return err
	}
	overlaps := 200
	if prove.Long() {
		overlaps = 1000
	}
	return shardlogtest.Config{
		Log: l, Overlaps: overlaps,
		Restart: func() shardlog.Log {
			must(t, pair.Primary.StopNow())
			must(t, pair.Primary.Start())
			return l
		},
		Base: func(shard int, last shardlog.Position, chain uint64) error {
			return exec(`with d as (delete from {log} where shard = $1)
				insert into {shard} (id, term, owner, first, last, chain) values ($1, 0, '', $2::bigint + 1, $2, $3)
				on conflict (id) do update set first = excluded.first, last = excluded.last, chain = excluded.chain, written = 0`, shard, int64(last), int64(chain))
		},
		Lose: func(shard int, where string) error {
			return exec(`update {shard} set lost = $2::text, term = term + 1, owner = '' where id = $1`, shard, where)
		},
	}
}
