package pglog

import (
	"context"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// quarantineSQL stops a shard. If it is stopped already, only its beat changes, so that the commit waits for the standby.
const quarantineSQL = `
with c as materialized (select set_config('synchronous_commit', $3, true) as commit),
p as (
	insert into {shard} as p (id, term, owner, lost) select $1::int, 1, '', $2::text from c
	on conflict (id) do update set term = p.term + (p.lost is null)::int,
		owner = case when split_part(p.owner, ' ', 1) = 'exported' then p.owner else '' end, -- an export is for good
		lost = coalesce(p.lost, excluded.lost), beat = p.beat + 1)
select ` + settingsSQL + ` from c`

// noteLateSQL notes a loss, if the shard has no note.
const noteLateSQL = `
with c as materialized (select set_config('synchronous_commit', $3, true) as commit),
p as (
	insert into {shard} as p (id, term, owner, late) select $1::int, 0, '', $2::text from c
	on conflict (id) do update set late = coalesce(p.late, excluded.late), beat = p.beat + 1)
select ` + settingsSQL + ` from c`

// goesOnSQL is the condition that the records of a recovery go on from the end of the log.
const goesOnSQL = `p.id = $1::int and p.term = $2::bigint and p.lost is not null
	and p.last = $3::bigint - 1 and p.chain = $4::bigint and p.written <= $5::bigint`

// putBackSQL puts some records of a recovery behind the last one, behind lockSQL.
const putBackSQL = `
insert into {log} (shard, at, term, chain, rec)
select p.id, r.at, r.term, r.chain, ($9::bytea[])[r.n]
from {shard} p, unnest($6::bigint[], $7::bigint[], $8::bigint[]) with ordinality r(at, term, chain, n) where ` + goesOnSQL

// recoverSQL ends a quarantine: without records ($6), with those that putBackSQL has stored, or again. It returns the head if it did.
const recoverSQL = `
with u as (
	update {shard} p set lost = null, late = null, last = case when $6::boolean then $7::bigint else last end,
		chain = case when $6 then $8::bigint else chain end, written = case when $6 then $9::bigint else written end
	where ` + goesOnSQL + ` or p.id = $1 and p.term = $2 and (not $6 or p.lost is null and p.last = $7 and p.chain = $8 and p.written = $9)
	returning p.id, ` + headColumns + `)
select u.* from (select) one left join u on true`

// unplacedSQL removes the snapshots of places that a log does not have after a recovery.
const unplacedSQL = `
delete from {snapshot} s using {shard} p where p.id = s.shard and s.shard = $1::int and p.term = $2::bigint and p.lost is null
and s.last + 1 <> p.first and not (s.last between p.first and p.last
	and exists (select from {log} r where r.shard = s.shard and r.at = s.last and r.chain = s.chain))`

// Quarantine implements shardlog.Directory.
func (l *Log) Quarantine(ctx context.Context, shard int, where string) error {
	return l.note(ctx, shard, l.sql.quarantine, where, "quarantine of shard")
}

// NoteLate implements shardlog.Directory.
func (l *Log) NoteLate(ctx context.Context, shard int, where string) error {
	return l.note(ctx, shard, l.sql.noteLate, where, "note of a late loss of shard")
}

// note runs a statement with the place of a loss.
func (l *Log) note(ctx context.Context, shard int, sql, where, about string) error {
	id, err := number(shard)
	switch {
	case err != nil:
		return err
	case where == "":
		return fmt.Errorf("%w: %s %d: a loss without a place", shardlog.ErrRefused, about, shard)
	}
	err = l.reader.do(ctx, func(ctx context.Context, c *conn) error {
		var now settings
		if err := c.QueryRow(ctx, sql, id, where, l.commit).Scan(now.places()...); err != nil {
			return err
		}
		return l.agreed(now)
	})
	if err != nil {
		return fmt.Errorf("%s %d: %w", about, shard, err)
	}
	return nil
}

// Recover implements shardlog.Directory. All records have 256 MiB at most, because one transaction stores them. It has Options.Timeout for
// each 4 MiB of them.
func (l *Log) Recover(ctx context.Context, shard int, term, before uint64, records []shardlog.Record) (shardlog.State, error) {
	id, err := number(shard)
	if err == nil {
		err = follow(term, before, records)
	}
	if err != nil {
		return shardlog.State{}, err
	}
	var r row
	h, err := l.locked(ctx, id, l.commit, l.recovery(id, term, before, records, &r)...)
	if err == nil && r.id == nil {
		err = h.unrecovered(term, records)
	}
	if err != nil {
		return shardlog.State{}, fmt.Errorf("recover shard %d: %w", shard, err)
	}
	return r.head().State, nil
}

// follow refuses records that do not follow one another, or are too many.
func follow(term, before uint64, records []shardlog.Record) error {
	bytes := 0
	for i, r := range records {
		last := shardlog.Record{At: r.At - 1, Chain: before}
		if i > 0 {
			last = records[i-1]
		}
		if err := r.Follows(last, term); err != nil {
			return err
		}
		bytes += len(r.Payload)
	}
	if bytes > maxRecordBytes {
		return fmt.Errorf("%w: the records of a recovery have %d bytes, more than %d: accept the loss", shardlog.ErrRefused, bytes, maxRecordBytes)
	}
	return nil
}

// recovery are the statements of Recover, the head of which goes into r.
func (l *Log) recovery(shard int32, term, before uint64, records []shardlog.Record, r *row) (all []statement) {
	var first, last shardlog.Record
	if len(records) > 0 {
		first, last = records[0], records[len(records)-1]
	}
	from := []any{shard, int64(term), int64(first.At), int64(before), int64(first.Term)}
	for rest := records; len(rest) > 0; {
		var page []any
		page, rest = nextPage(rest)
		all = append(all, statement{sql: l.sql.putBack, args: append(from[:len(from):len(from)], page...)})
	}
	to := append(from, len(records) > 0, int64(last.At), int64(last.Chain), int64(last.Term))
	return append(all, statement{l.sql.recover, to, append([]any{&r.id}, r.places()...)}, statement{sql: l.sql.unplaced, args: from[:2]})
}

// nextPage cuts the records of one statement off, as arrays of their columns.
func nextPage(records []shardlog.Record) (columns []any, rest []shardlog.Record) {
	var at, term, chain []int64
	var payload [][]byte
	bytes := 0
	for len(records) > 0 && len(at) < pageRecords && (len(at) == 0 || bytes+len(records[0].Payload) <= pageBytes) {
		r := records[0]
		at, term, chain = append(at, int64(r.At)), append(term, int64(r.Term)), append(chain, int64(r.Chain))
		payload = append(payload, append([]byte{}, r.Payload...)) // not nil, because that would be null
		bytes, records = bytes+len(r.Payload), records[1:]
	}
	return []any{at, term, chain, payload}, records
}

// unrecovered says why a recovery has changed nothing.
func (h head) unrecovered(term uint64, records []shardlog.Record) error {
	switch {
	case h.Term != term:
		return fmt.Errorf("%w: the log has term %d, not %d", shardlog.ErrFenced, h.Term, term)
	case h.Lost == "":
		return fmt.Errorf("%w: the shard is not in quarantine", shardlog.ErrFenced)
	}
	return fmt.Errorf("%w: record %d does not follow from record %d, the last: an owner has appended since the loss", shardlog.ErrFenced, records[0].At, h.Last)
}
