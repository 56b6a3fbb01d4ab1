package pglog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// missingSQL are the blobs of a snapshot that are not there.
const missingSQL = `missing as (
	select name from unnest($6::text[]) t(name) where not exists (select from {blob} b where b.shard = $1 and b.name = t.name and b.whole))`

// beginSQL registers the base of a fresh log, behind lockSQL. It returns whether the log has exactly this snapshot, whether it is fresh, and a blob that
// is missing.
const beginSQL = `
with has as (
	select from {snapshot} s join {shard} p on p.id = s.shard
	where s.shard = $1::int and s.last = $2::bigint and s.last + 1 >= p.first and s.chain = $3::bigint and s.manifest = $4::bytea and s.blobs = $6),
fresh as (
	select from {shard} where id = $1 and term = 0 and first = 1 and last = 0 and chain = 0 and lost is null
	and $2 >= $5::bigint and not exists (select from has)),
` + missingSQL + `,
p as (
	update {shard} set first = $2 + 1, last = $2, chain = $3, written = 0
	where id = $1 and exists (select from fresh) and not exists (select from missing)
	returning id),
s as (insert into {snapshot} (shard, last, chain, manifest, blobs) select id, $2, $3, $4, $6 from p)
select exists (select from has), exists (select from fresh), (select min(name) from missing)`

// registerSQL adds a snapshot, behind lockSQL. It returns whether the log of the owner has the place of the snapshot, and a blob that is missing. Records
// before the beginning of the log do not count: Truncate removes them later.
const registerSQL = `
with place as (
	select from {shard} p where p.id = $1::int and p.term = $5::bigint and p.lost is null
	and ($2::bigint + 1 = p.first
		or $2 between p.first and p.last and exists (select from {log} r where r.shard = $1 and r.at = $2 and r.chain = $3::bigint))),
` + missingSQL + `,
s as (
	insert into {snapshot} (shard, last, chain, manifest, blobs) select $1, $2, $3, $4::bytea, $6 from place where not exists (select from missing)
	on conflict (shard, last) do update set chain = excluded.chain, manifest = excluded.manifest, blobs = excluded.blobs)
select exists (select from place), (select min(name) from missing)`

// snapshotsSQL returns the snapshots from which the log goes on.
const snapshotsSQL = `
select s.last, s.chain, s.manifest, s.blobs from {snapshot} s join {shard} p on p.id = s.shard
where s.shard = $1::int and s.last + 1 >= p.first order by s.last desc`

// columns are the parameters of beginSQL and registerSQL; fifth is the one in which they differ.
func columns(shard int32, s shardlog.Snapshot, fifth int64) []any {
	manifest, blobs := append([]byte{}, s.Manifest...), append([]string{}, s.Blobs...) // not nil, because that would be null
	return []any{shard, int64(s.Last), int64(s.Chain), manifest, fifth, blobs}
}

// whole refuses a snapshot that no row holds.
func whole(s shardlog.Snapshot) error {
	if len(s.Manifest) > maxRecordBytes {
		return fmt.Errorf("%w: the manifest of the snapshot of record %d has %d bytes, more than %d", shardlog.ErrRefused, s.Last, len(s.Manifest), maxRecordBytes)
	}
	return nil
}

// Begin implements shardlog.Directory.
func (l *Log) Begin(ctx context.Context, shard int, base shardlog.Snapshot) error {
	id, err := number(shard)
	if err == nil {
		err = whole(base)
	}
	if err != nil {
		return err
	}
	const lowest = 1 // place of a base
	var has, fresh bool
	var missing *string
	h, err := l.locked(ctx, id, l.commit, statement{l.sql.begin, columns(id, base, lowest), []any{&has, &fresh, &missing}})
	switch {
	case err != nil:
		return fmt.Errorf("begin shard %d behind a base: %w", shard, err)
	case has:
		return nil // a repeat
	case base.Last < lowest:
		return fmt.Errorf("%w: shard %d: a base ends at record %d or later", shardlog.ErrRefused, shard, lowest)
	case !fresh:
		return fmt.Errorf("%w: the log of shard %d is not fresh: it has term %d and ends at record %d", shardlog.ErrRefused, shard, h.Term, h.Last)
	case missing != nil:
		return fmt.Errorf("%w: shard %d: %s, of the base", shardlog.ErrMissing, shard, *missing)
	}
	return nil
}

// Register implements shardlog.Directory. It waits for the standby as an append does, and makes the blobs durable with it, because they came
// before.
func (l *Log) Register(ctx context.Context, shard int, term uint64, s shardlog.Snapshot) error {
	id, err := claimed(shard, term)
	if err != nil {
		return err
	}
	if err := whole(s); err != nil {
		return err
	}
	var place bool
	var missing *string
	h, err := l.locked(ctx, id, l.commit, statement{l.sql.register, columns(id, s, int64(term)), []any{&place, &missing}})
	if err == nil {
		err = h.owned(term)
	}
	switch {
	case err != nil:
		return fmt.Errorf("register the snapshot of record %d of shard %d: %w", s.Last, shard, err)
	case !place:
		return fmt.Errorf("%w: the log of shard %d does not have the place of the snapshot, record %d with chain %x", shardlog.ErrRefused, shard, s.Last, s.Chain)
	case missing != nil:
		return fmt.Errorf("%w: shard %d: %s, of the snapshot of record %d", shardlog.ErrMissing, shard, *missing, s.Last)
	}
	return nil
}

// Snapshots implements shardlog.Directory.
func (l *Log) Snapshots(ctx context.Context, shard int) (found []shardlog.Snapshot, err error) {
	id, err := number(shard)
	if err != nil {
		return nil, err
	}
	err = l.reader.do(ctx, func(ctx context.Context, c *conn) error {
		rows, err := c.Query(ctx, l.sql.snapshots, id)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (s shardlog.Snapshot, err error) {
			var last, chain int64
			err = row.Scan(&last, &chain, &s.Manifest, &s.Blobs)
			s.Last, s.Chain = shardlog.Position(last), uint64(chain)
			return s, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("snapshots of shard %d: %w", shard, err)
	}
	return found, nil
}
