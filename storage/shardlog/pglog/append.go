package pglog

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// maxRecordBytes is the largest payload. PostgreSQL takes messages below 1 GiB and needs several times their size in memory.
const maxRecordBytes = 256 << 20

// appendSQL appends the records of several shards, at most one of each. l locks the rows in order, so that statements of the
// same shards never wait for one another in a circle. The update is the fence: after the wait for a row PostgreSQL looks at its newest version. A
// row goes into the log for each row that was updated, and it is that of the record which the row was updated for, so
// (shard, term, at) tells the record.
const appendSQL = `
with c as materialized (select set_config('synchronous_commit', $7, true) as commit),
l as materialized (select id from {shard} where id = any($1::int[]) order by id for update),
s as (
	update {shard} p set last = a.at, chain = a.chain, written = a.term
	from unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) with ordinality a(id, term, at, before, chain, n) join l using (id)
	where p.id = a.id and p.term = a.term and p.last = a.at - 1 and p.chain = a.before
	returning p.id, p.term, p.last, p.chain, a.n),
i as (
	insert into {log} (shard, at, term, chain, rec) select id, last, term, chain, ($6::bytea[])[n] from s
	returning shard, term, at)
select ` + settingsSQL + `, i.shard, i.term, i.at from c left join i on true`

// Append implements shardlog.Log. Appends of several shards that wait at the same time share a statement. It returns
// shardlog.ErrRefused for a payload above 256 MiB, and for a chain that is not that of the payload, because no reader would take it.
func (l *Log) Append(ctx context.Context, shard int, before uint64, r shardlog.Record) error {
	id, err := number(shard)
	switch {
	case err != nil:
		return err
	case len(r.Payload) > maxRecordBytes:
		return fmt.Errorf("%w: shard %d: record %d has %d bytes, more than %d: make the commit smaller", shardlog.ErrRefused, shard, r.At, len(r.Payload), maxRecordBytes)
	case r.Chain != shardlog.Next(before, r.Payload):
		return fmt.Errorf("%w: shard %d: the chain of record %d is not that of its payload", shardlog.ErrRefused, shard, r.At)
	}
	q := &request{shard: id, before: before, size: len(r.Payload), done: make(chan struct{}), r: r}
	if err = l.lanes.add(q); err == nil {
		if err = l.o.Seams.Executor.Wait(ctx, q.done); err != nil {
			q.leave()
		} else {
			err = q.err
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("append record %d to shard %d: %w", r.At, shard, unknown(err))
	case q.stored:
		return nil
	}
	return l.judge(ctx, id, before, r)
}

// judge says why a record was not stored by its statement. The head tells, and only as it is durable.
func (l *Log) judge(ctx context.Context, shard int32, before uint64, r shardlog.Record) error {
	h, err := l.head(ctx, shard)
	switch {
	case err != nil:
		return fmt.Errorf("append record %d to shard %d, which did not store it: %w", r.At, shard, err)
	case r.Term != h.Term:
		return fmt.Errorf("%w: shard %d: record %d has term %d, the log has %d, of %q%s", shardlog.ErrFenced, shard, r.At, r.Term, h.Term, h.Owner, quarantine(h.Lost))
	case r.At == h.Last && r.Chain == h.Chain && r.Term == h.written:
		return nil // a repeat
	case r.At == h.Last+1 && before == h.Chain:
		return fmt.Errorf("%w: shard %d: record %d was not stored, and can be now", shardlog.ErrUnknown, shard, r.At)
	}
	return fmt.Errorf("%w: shard %d: record %d does not follow from record %d, the last", shardlog.ErrFenced, shard, r.At, h.Last)
}

// append stores the records of requests and sets their answers. If PostgreSQL refuses one, each is appended alone, because a damaged
// shard must not stop the others.
func (l *Log) append(n *lane, batch []*request) {
	err := l.appendOnce(n, batch)
	if errors.Is(err, shardlog.ErrRefused) && len(batch) > 1 {
		for i := range batch {
			one := batch[i : i+1]
			answer(one, l.appendOnce(n, one))
		}
		return
	}
	answer(batch, err)
}

func answer(batch []*request, err error) {
	for _, q := range batch {
		q.err = err
	}
}

// appendOnce stores the records in one statement.
func (l *Log) appendOnce(n *lane, batch []*request) error {
	n.group.fill(batch)
	if n.group.id.n == 0 {
		return errClosed // never seen, because all callers have gone
	}
	var stored map[place]bool
	err := n.once(l.running, func(ctx context.Context, c *conn) (err error) {
		stored, err = l.exec(ctx, c, &n.group)
		return err
	})
	if err != nil {
		return err
	}
	for _, q := range batch {
		q.stored = stored[place{q.shard, q.r.Term, q.r.At}]
	}
	return nil
}

// place tells a record.
type place struct {
	shard int32
	term  uint64
	at    shardlog.Position
}

// binaryArrays are the formats of the parameters: six arrays, and a text.
var binaryArrays = []int16{1, 1, 1, 1, 1, 1, 0}

// exec runs the statement and returns the records that it has stored.
func (l *Log) exec(ctx context.Context, c *conn, g *group) (map[place]bool, error) {
	if c.append == nil {
		var err error
		if c.append, err = c.Prepare(ctx, "append", l.sql.append); err != nil {
			return nil, err
		}
	}
	rows := c.PgConn().ExecStatement(ctx, c.append, append(g.values, []byte(l.commit)), binaryArrays, nil)
	stored, now, err := places(rows)
	if _, closing := rows.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = l.agreed(now)
	}
	return stored, err
}

// places reads the rows of appendSQL, which are in the form of text.
func places(rows *pgconn.ResultReader) (stored map[place]bool, now settings, err error) {
	stored = make(map[place]bool)
	for rows.NextRow() {
		v := rows.Values()
		now = settings{string(v[0]), string(v[1]), string(v[2]), string(v[3])}
		if v[4] == nil {
			continue // no record was stored
		}
		shard, err1 := strconv.ParseInt(string(v[4]), 10, 32)
		term, err2 := strconv.ParseInt(string(v[5]), 10, 64)
		at, err3 := strconv.ParseInt(string(v[6]), 10, 64)
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, now, err
		}
		stored[place{int32(shard), uint64(term), shardlog.Position(at)}] = true
	}
	return stored, now, nil
}

// agreed compares the settings of a statement with those that were agreed at the start. If they differ, the outcome is unknown.
func (l *Log) agreed(now settings) error {
	wrong := now.wrong(l.o, l.commit)
	if wrong == "" {
		return nil
	}
	l.warn("the settings of PostgreSQL do not keep records, so nothing is acknowledged", wrong)
	return unknown(errors.New(wrong))
}

// quarantine is the end of an error for a log that has lost records.
func quarantine(lost string) string {
	if lost == "" {
		return ""
	}
	return ", and is in quarantine: " + lost
}
