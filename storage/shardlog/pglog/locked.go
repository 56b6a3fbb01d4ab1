package pglog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// lockSQL locks the row of a shard, which it makes if there is none, and returns the head. It changes the row, so that the commit waits for the
// standby also if the statements behind it find nothing to do: a repeat is as durable as the call before.
const lockSQL = `
with c as materialized (select set_config('synchronous_commit', $2, true) as commit),
p as (
	insert into {shard} as p (id, term, owner) select $1::int, 0, '' from c
	on conflict (id) do update set beat = p.beat + 1
	returning ` + headColumns + `)
select ` + settingsSQL + `, p.* from c, p`

// statement is one of those behind lockSQL. It returns one row, into places, or none if there are no places.
type statement struct {
	sql    string
	args   []any
	places []any
}

// locked runs statements behind lockSQL and returns the head that was locked. All are one message and one transaction, so that a client that
// stops keeps no lock. They are statements of their own, because one that waits for a lock goes on with a snapshot from before the wait: a
// registration would see blobs that the collection before it has removed. They are not run twice in silence, as link.once says.
func (l *Log) locked(ctx context.Context, shard int32, commit string, all ...statement) (head, error) {
	var now settings
	var r row
	err := l.reader.use(ctx, 1, 1+len(all), func(ctx context.Context, c *conn) error {
		var b pgx.Batch
		b.Queue(l.sql.lock, shard, commit).QueryRow(func(row pgx.Row) error { return row.Scan(now.places(r.places()...)...) })
		for _, s := range all {
			q := b.Queue(s.sql, s.args...)
			if s.places != nil {
				q.QueryRow(func(row pgx.Row) error { return row.Scan(s.places...) })
			}
		}
		if err := c.SendBatch(ctx, &b).Close(); err != nil {
			return err
		}
		if commit == lazily {
			return nil // it promises nothing
		}
		return l.agreed(now)
	})
	if err != nil {
		return head{}, outcome(err)
	}
	return r.head(), nil
}

// lazily is synchronous_commit of what need not survive a crash yet: beats, and blobs without a snapshot.
const lazily = "off"

// claimed returns the number of a shard for a call that only an owner makes. It refuses term 0, because lockSQL would make a row for it.
func claimed(shard int, term uint64) (id int32, err error) {
	if term == 0 {
		return 0, fmt.Errorf("%w: shard %d: no owner has term 0", shardlog.ErrFenced, shard)
	}
	return number(shard)
}

// owned returns ErrFenced unless term is the newest, and not that of a quarantine.
func (h head) owned(term uint64) error {
	switch {
	case h.Lost != "":
		return fmt.Errorf("%w: the shard is in quarantine: %s", shardlog.ErrFenced, h.Lost)
	case h.Term != term:
		return fmt.Errorf("%w: the log has term %d, of %q, not %d", shardlog.ErrFenced, h.Term, h.Owner, term)
	}
	return nil
}
