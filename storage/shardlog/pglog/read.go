package pglog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// Bounds of one page. A record of more than pageBytes is a page of its own.
const (
	pageBytes   = 4 << 20
	pageRecords = 4096
)

// readSQL returns a page of records, and in each row the first and the last position that the same snapshot shows. Sizes are known
// without reading the payloads.
const readSQL = `
with h as (select first, last from {shard} where id = $1::int),
page as (
	select at, term, chain, rec, sum(octet_length(rec)) over (order by at) - octet_length(rec) as before
	from (select * from {log} where shard = $1 and at >= $2::bigint order by at limit $3::int) r)
select h.first, h.last, page.at, page.term, page.chain, page.rec
from h left join page on page.before < $4::bigint order by page.at`

// page is some records that follow one another, as one snapshot showed them.
type page struct {
	first, last shardlog.Position
	records     []shardlog.Record
	bytes       []byte // the payloads, one after the other
}

// Read implements shardlog.Log. It reads pages of 4 MiB and holds no connection while f runs. It checks that each record follows from the
// one before, but for the first, which f must check. Records at the end may be such that no standby has yet: Head tells the last that is
// durable.
func (l *Log) Read(ctx context.Context, shard int, from shardlog.Position, f func(shardlog.Record) error) error {
	id, err := number(shard)
	if err != nil {
		return err
	}
	var p page
	var last shardlog.Record
	for {
		err := l.reader.do(ctx, func(ctx context.Context, c *conn) error { return p.load(ctx, c, l.sql.read, id, from) })
		if err != nil {
			return fmt.Errorf("read shard %d from record %d: %w", shard, from, err)
		}
		if from < p.first {
			return fmt.Errorf("%w: shard %d: at %d, not at %d", shardlog.ErrTruncated, shard, p.first, from)
		}
		for _, r := range p.records {
			if err := follows(last, r, from); err != nil {
				return fmt.Errorf("%w: shard %d: %w", shardlog.ErrHole, shard, err)
			}
			if err := f(r); err != nil {
				return err
			}
			last, from = r, from+1
			last.Payload = nil // the page will be used again
		}
		if from > p.last {
			return nil
		}
		if len(p.records) == 0 {
			return fmt.Errorf("%w: shard %d: record %d is missing, the last is %d", shardlog.ErrHole, shard, from, p.last)
		}
	}
}

// follows checks that r is the record at a position and follows from the one before, if that is known.
func follows(before, r shardlog.Record, at shardlog.Position) error {
	switch {
	case r.At != at:
		return fmt.Errorf("record %d is missing, the next is %d", at, r.At)
	case r.Term < before.Term:
		return fmt.Errorf("record %d has term %d, the one before has %d", r.At, r.Term, before.Term)
	case before.At > 0 && r.Chain != shardlog.Next(before.Chain, r.Payload):
		return fmt.Errorf("record %d has another chain than its payload and the record before make", r.At)
	}
	return nil
}

// load reads the page from a position on. The payloads of the page before are gone.
func (p *page) load(ctx context.Context, c *conn, sql string, shard int32, from shardlog.Position) error {
	*p = page{first: 1, records: p.records[:0], bytes: p.bytes[:0]}
	rows, err := c.Query(ctx, sql, shard, int64(from), pageRecords, pageBytes)
	if err != nil {
		return err
	}
	var first, last int64
	var at, term, chain *int64 // null if there is no record
	var payload pgtype.DriverBytes
	_, err = pgx.ForEachRow(rows, []any{&first, &last, &at, &term, &chain, &payload}, func() error {
		p.first, p.last = shardlog.Position(first), shardlog.Position(last)
		if at != nil {
			p.add(shardlog.Record{At: shardlog.Position(*at), Term: uint64(*term), Chain: uint64(*chain)}, payload)
		}
		return nil
	})
	return err
}

// add copies a record into the page.
func (p *page) add(r shardlog.Record, payload []byte) {
	begin := len(p.bytes)
	p.bytes = append(p.bytes, payload...) // records before it keep the memory that they have
	r.Payload = p.bytes[begin:len(p.bytes):len(p.bytes)]
	p.records = append(p.records, r)
}
