package pglog

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// startSQL begins an upload, unless a blob of the name is there, which it returns.
const startSQL = `
with c as materialized (select set_config('synchronous_commit', 'off', true)),
w as (select from {blob} where shard = $1::int and name = $3::text and whole),
b as (insert into {blob} (shard, upload, name) select $1, $2::bigint, $3 from c where not exists (select from w) on conflict do nothing)
select exists (select from w)`

// partSQL stores a part of an upload, if no collection has removed that.
const partSQL = `
with c as materialized (select set_config('synchronous_commit', 'off', true))
insert into {part} (shard, upload, part, data) select $1::int, $2::bigint, $3::bigint, $4::bytea from c
where exists (select from {blob} where shard = $1 and upload = $2) on conflict do nothing`

// finishSQL ends an upload, behind lockSQL, and returns whether the blob is there. It counts the parts, because a crash of the server may have
// lost some in the midst of the upload.
const finishSQL = `
with other as (select from {blob} where shard = $1::int and name = $3::text and whole and upload <> $2::bigint),
b as (
	update {blob} set whole = true, bytes = $4::bigint where shard = $1 and upload = $2 and not exists (select from other)
	and $5::bigint = (select count(*) from {part} where shard = $1 and upload = $2)
	returning upload)
select exists (select from other) or exists (select from b)`

// getSQL returns the length of a blob, and one part.
const getSQL = `
select b.bytes, p.data from {blob} b left join {part} p on p.shard = b.shard and p.upload = b.upload and p.part = $3::bigint
where b.shard = $1::int and b.name = $2::text and b.whole`

const listSQL = `select name, bytes from {blob} where shard = $1::int and whole order by name`

// collectSQL removes the snapshots that have lost their place to a truncation, the blobs that no other snapshot names, and uploads that
// have not ended, behind lockSQL. Their parts stay behind.
const collectSQL = `
with p as (select first from {shard} where id = $1::int and term = $2::bigint and lost is null),
s as (delete from {snapshot} s using p where s.shard = $1 and s.last + 1 < p.first)
delete from {blob} b using p where b.shard = $1
and not (b.whole and b.name in (select unnest(k.blobs) from {snapshot} k, p where k.shard = $1 and k.last + 1 >= p.first))`

// leftoverSQL removes some parts without an upload: no upload comes back, and each one has its row before its parts. It removes four at a
// time, which are 16 MiB, so that no statement runs for long.
const leftoverSQL = `
with c as materialized (select set_config('synchronous_commit', 'off', true))
delete from {part} using c where (shard, upload, part) in (
	select p.shard, p.upload, p.part from {part} p
	where p.shard = $1::int and not exists (select from {blob} b where b.shard = p.shard and b.upload = p.upload) limit 4)`

// Put implements shardlog.Blobs. It has one part in memory, and holds no connection while it reads. A name has at most 1,000 bytes.
func (l *Log) Put(ctx context.Context, shard int, name string, r io.Reader) error {
	id, err := number(shard)
	if err == nil {
		err = nameable("blob", name)
	}
	if err != nil {
		return err
	}
	u := upload{l: l, shard: id, name: name, number: int64(l.o.Seams.Rand.Uint64())}
	there, err := u.start(ctx)
	var failed error
	if err == nil && !there {
		failed, err = u.copy(ctx, r)
	}
	if err == nil && !there && failed == nil {
		err = u.finish(ctx)
	}
	if err != nil {
		return fmt.Errorf("put blob %s of shard %d: %w", name, shard, err)
	}
	return failed // as it is
}

// upload is one call of Put.
type upload struct {
	l      *Log
	shard  int32
	name   string
	number int64
	parts  int64
	bytes  int64
}

// start reports whether the blob is there already.
func (u *upload) start(ctx context.Context) (there bool, err error) {
	err = u.l.reader.do(ctx, func(ctx context.Context, c *conn) error {
		return c.QueryRow(ctx, u.l.sql.start, u.shard, u.number, u.name).Scan(&there)
	})
	return there, err
}

// copy stores the parts of a reader. failed is an error of the reader, err one of PostgreSQL.
func (u *upload) copy(ctx context.Context, r io.Reader) (failed, err error) {
	var part bytes.Buffer
	part.Grow(shardlog.PartBytes + bytes.MinRead) // because ReadFrom wants room to see the end
	for {
		part.Reset()
		n, err := part.ReadFrom(io.LimitReader(r, shardlog.PartBytes))
		if err != nil {
			return err, nil
		}
		if n == 0 {
			return nil, nil
		}
		if _, err := u.l.change(ctx, u.l.sql.part, u.shard, u.number, u.parts, part.Bytes()); err != nil {
			return nil, err
		}
		u.parts, u.bytes = u.parts+1, u.bytes+n
	}
}

// finish makes the blob whole.
func (u *upload) finish(ctx context.Context) error {
	var there bool
	_, err := u.l.locked(ctx, u.shard, lazily, statement{u.l.sql.finish, []any{u.shard, u.number, u.name, u.bytes, u.parts}, []any{&there}})
	if err == nil && !there {
		err = fmt.Errorf("%w: a collection or a crash of PostgreSQL has removed parts of it: put it again", shardlog.ErrUnknown)
	}
	return err
}

// Get implements shardlog.Blobs. It has one part in memory, and holds no connection while f runs.
func (l *Log) Get(ctx context.Context, shard int, name string, f func(part []byte) error) error {
	id, err := number(shard)
	if err != nil {
		return err
	}
	for n := int64(0); ; n++ {
		bytes, part, err := l.part(ctx, id, name, n)
		left := bytes - n*shardlog.PartBytes
		switch {
		case err != nil:
			return fmt.Errorf("get blob %s of shard %d: %w", name, shard, err)
		case left <= 0:
			return nil
		case int64(len(part)) != min(left, shardlog.PartBytes):
			return fmt.Errorf("%w: part %d of blob %s of shard %d has %d bytes of %d: the tables are damaged", shardlog.ErrMissing, n, name, shard, len(part), min(left, shardlog.PartBytes))
		}
		if err := f(part); err != nil {
			return err
		}
		if left <= shardlog.PartBytes {
			return nil
		}
	}
}

// part returns the length of a blob, and one part.
func (l *Log) part(ctx context.Context, shard int32, name string, n int64) (length int64, part []byte, err error) {
	found := false
	err = l.reader.do(ctx, func(ctx context.Context, c *conn) error {
		rows, err := c.Query(ctx, l.sql.get, shard, name, n)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, []any{&length, &part}, func() error { found = true; return nil })
		return err
	})
	if err == nil && !found {
		err = shardlog.ErrMissing
	}
	return length, part, err
}

// List implements shardlog.Blobs.
func (l *Log) List(ctx context.Context, shard int) (found []shardlog.Blob, err error) {
	id, err := number(shard)
	if err != nil {
		return nil, err
	}
	err = l.reader.do(ctx, func(ctx context.Context, c *conn) error {
		rows, err := c.Query(ctx, l.sql.list, id)
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[shardlog.Blob])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the blobs of shard %d: %w", shard, err)
	}
	return found, nil
}

// Collect implements shardlog.Blobs. It holds the row of the shard while it removes the names, and then removes the parts, 16 MiB at a time; after an
// error a repeat removes the rest.
func (l *Log) Collect(ctx context.Context, shard int, term uint64) error {
	id, err := number(shard)
	if err != nil {
		return err
	}
	h, err := l.locked(ctx, id, l.commit, statement{sql: l.sql.collect, args: []any{id, int64(term)}})
	if err == nil {
		err = h.owned(term)
	}
	for removed := int64(1); err == nil && removed > 0; {
		removed, err = l.change(ctx, l.sql.leftover, id)
	}
	if err != nil {
		return fmt.Errorf("collect the blobs of shard %d: %w", shard, err)
	}
	return nil
}
