package pglog

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// truncateSQL moves the beginning of a log, behind lockSQL. The records before it are of no reader any more.
const truncateSQL = `
update {shard} set first = greatest(first, least($3::bigint, last) + 1) where id = $1::int and term = $2::bigint and lost is null`

// Bounds of one statement that removes records. PostgreSQL removes a payload in pieces of 2 KB, so a statement without a bound of bytes would
// take longer than Options.Timeout, and each repeat as long again.
const (
	deleteRecords = 1000
	deleteBytes   = 16 << 20
)

// deleteSQL removes the oldest records that are before the beginning. Sizes are known without reading the payloads.
const deleteSQL = `
delete from {log} where shard = $1::int and at <= (
	select max(at) from (
		select at, sum(octet_length(rec)) over (order by at) - octet_length(rec) as before
		from (select at, rec from {log} where shard = $1 and at < (select first from {shard} where id = $1) order by at limit $2::int) r) p
	where before < $3::bigint)`

// Truncate implements shardlog.Log. A position beyond the end removes all records. It removes them 1,000 at a time, or 16 MiB and the
// rest of a record; after an error a repeat removes the rest.
func (l *Log) Truncate(ctx context.Context, shard int, term uint64, upTo shardlog.Position) error {
	id, err := claimed(shard, term)
	if err != nil {
		return err
	}
	err = l.beginBehind(ctx, id, term, upTo)
	for removed := int64(1); err == nil && removed > 0; {
		removed, err = l.change(ctx, l.sql.delete, id, deleteRecords, deleteBytes)
	}
	if err != nil {
		return fmt.Errorf("truncate shard %d up to record %d: %w", shard, upTo, err)
	}
	return nil
}

// beginBehind moves the beginning of a log behind a position. The records stay.
func (l *Log) beginBehind(ctx context.Context, shard int32, term uint64, upTo shardlog.Position) error {
	h, err := l.locked(ctx, shard, l.commit, statement{sql: l.sql.truncate, args: []any{shard, int64(term), int64(upTo)}})
	if err != nil {
		return err
	}
	return h.owned(term)
}

// change runs a statement and returns how many rows it has changed.
func (l *Log) change(ctx context.Context, sql string, args ...any) (rows int64, err error) {
	err = l.reader.do(ctx, func(ctx context.Context, c *conn) error {
		tag, err := c.Exec(ctx, sql, args...)
		rows = tag.RowsAffected()
		return err
	})
	return rows, err
}
