package pglog

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// claimSQL begins a term. A shard without a row has term 0. The update looks at the newest version of the row.
const claimSQL = `
with c as materialized (select set_config('synchronous_commit', $4, true) as commit),
n as (
	insert into {shard} as p (id, term, owner) select $1::int, 1, $2::text where $3::bigint = 0 or exists (select from {shard} where id = $1)
	on conflict (id) do update set term = p.term + 1, owner = excluded.owner where p.term = $3 and p.lost is null
	returning ` + headColumns + `)
select ` + settingsSQL + `, n.* from c left join n on true`

// Claim implements shardlog.Log. The owner must have random bits of this one claim, at least 128: they tell the claim if its answer was
// lost, so a repeat of a claim that has succeeded succeeds again. If the row of the shard is locked for more than a second, it looks at the
// session that has it: it ends that of a log with a client that was stopped or cut off in the midst of a statement, and logs any other.
func (l *Log) Claim(ctx context.Context, shard int, owner string, seen uint64) (shardlog.State, error) {
	id, err := number(shard)
	if err != nil {
		return shardlog.State{}, err
	}
	var claimed *shardlog.State
	err = l.control.do(ctx, func(ctx context.Context, c *conn) (err error) {
		defer l.watch(ctx, c, shard)()
		claimed, err = l.claim(ctx, c, id, owner, seen)
		return err
	})
	if err == nil && claimed == nil {
		claimed, err = l.recognize(ctx, id, owner, seen)
	}
	if err != nil {
		return shardlog.State{}, fmt.Errorf("claim shard %d after term %d: %w", shard, seen, err)
	}
	return *claimed, nil
}

// claim runs the statement. It returns nil if the shard has another term.
func (l *Log) claim(ctx context.Context, c *conn, shard int32, owner string, seen uint64) (*shardlog.State, error) {
	var now settings
	var r row
	if err := c.QueryRow(ctx, l.sql.claim, shard, owner, int64(seen), l.commit).Scan(now.places(r.places()...)...); err != nil {
		return nil, err
	}
	if err := l.agreed(now); err != nil || r.term == nil {
		return nil, err
	}
	h := r.head()
	return &h.State, nil
}

// recognize tells a claim that was made before, its answer lost, from one that came too late.
func (l *Log) recognize(ctx context.Context, shard int32, owner string, seen uint64) (*shardlog.State, error) {
	h, err := l.head(ctx, shard)
	switch {
	case err != nil:
		return nil, err
	case h.Term == seen+1 && h.Owner == owner && h.Lost == "":
		return &h.State, nil
	case h.Term == seen && h.Lost == "":
		return nil, unknown(errors.New("the term was free again"))
	}
	return nil, fmt.Errorf("%w: the log has term %d, of %q%s", shardlog.ErrFenced, h.Term, h.Owner, quarantine(h.Lost))
}
