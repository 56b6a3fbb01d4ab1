package pglog

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// maxNameBytes bounds the ids of nodes and the names of blobs, because an index has them.
const maxNameBytes = 1000

// beatSQL stores the row of a node and returns the directory. The row comes from the update itself, because the rest of the statement sees the
// table as it was before. A process with an older incarnation stores nothing.
const beatSQL = `
with c as materialized (select set_config('synchronous_commit', $8, true) as commit),
b as (
	insert into {node} as p (id, incarnation, addr, version, draining, beat, at)
	select $2::text, case $3::bigint when 0 then nextval($9::text::regclass) else $3 end, $4::text, $5::bigint, $6::boolean, $7::bigint, clock_timestamp()
	from c
	on conflict (id) do update set incarnation = excluded.incarnation, addr = excluded.addr, version = excluded.version,
		draining = excluded.draining, beat = excluded.beat, at = excluded.at
	where p.incarnation <= excluded.incarnation
	returning id, incarnation, addr, version, draining, beat),
n as (select * from b union all select id, incarnation, addr, version, draining, beat from {node} where id <> $2)
select ` + settingsSQL + `, exists (select from b), ` + lookColumns

// lookSQL returns the directory.
const lookSQL = `
with c as (select current_setting('synchronous_commit') as commit), n as (select * from {node})
select ` + settingsSQL + `, true, ` + lookColumns

// lookColumns are a directory: in each row what is of the shard, and one node, in the order of their ids.
const lookColumns = `clock_timestamp(), coalesce(p.late, ''), p.id, ` + headColumns + `, n.id, n.incarnation, n.addr, n.version, n.draining, n.beat
from c left join {shard} p on p.id = $1::int left join n on true order by n.id`

// forgetSQL removes the rows of nodes without a beat since some microseconds. It leaves a row that is locked, because its node beats, perhaps the first
// time, and waits for the standby.
const forgetSQL = `
with c as materialized (select set_config('synchronous_commit', 'off', true))
delete from {node} using c where id in (
	select id from {node} where at <= clock_timestamp() - $1::bigint * interval '1 microsecond' for update skip locked)`

// Cluster implements shardlog.Directory. Init has drawn the name, and Open has read it, so Cluster asks nobody.
func (l *Log) Cluster(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", unknown(err)
	}
	return l.cluster, nil
}

// Beat implements shardlog.Directory. It waits for no lock of a shard and, but for a new incarnation, for no standby.
func (l *Log) Beat(ctx context.Context, shard int, n shardlog.Node) (shardlog.Look, error) {
	id, err := number(shard)
	if err == nil {
		err = nameable("node", n.ID)
	}
	if err != nil {
		return shardlog.Look{}, err
	}
	commit := lazily
	if n.Incarnation == 0 {
		commit = l.commit // because a number that a crash loses would be given again
	}
	var view directory
	err = l.beats.do(ctx, func(ctx context.Context, c *conn) error {
		err := view.load(ctx, c, l.sql.beat, id, n.ID, int64(n.Incarnation), n.Addr, int64(n.Version), n.Draining, int64(n.Beat), commit, l.sql.incarnation)
		if err == nil && commit != lazily {
			err = l.agreed(view.now)
		}
		return err
	})
	switch {
	case err != nil:
		return shardlog.Look{}, fmt.Errorf("beat of node %s: %w", n.ID, err)
	case !view.stored:
		return shardlog.Look{}, fmt.Errorf("%w: another process with the id of node %s began after incarnation %d", shardlog.ErrFenced, n.ID, n.Incarnation)
	}
	return view.look, nil
}

// Look implements shardlog.Directory. It waits for no lock and no standby.
func (l *Log) Look(ctx context.Context, shard int) (shardlog.Look, error) {
	id, err := number(shard)
	if err != nil {
		return shardlog.Look{}, err
	}
	var view directory
	err = l.beats.do(ctx, func(ctx context.Context, c *conn) error { return view.load(ctx, c, l.sql.look, id) })
	if err != nil {
		return shardlog.Look{}, fmt.Errorf("look at shard %d: %w", shard, err)
	}
	return view.look, nil
}

// Forget implements shardlog.Directory. It counts age in microseconds, rounded up.
func (l *Log) Forget(ctx context.Context, age time.Duration) error {
	micros := age / time.Microsecond
	if age%time.Microsecond > 0 {
		micros++
	}
	err := l.beats.do(ctx, func(ctx context.Context, c *conn) error {
		_, err := c.Exec(ctx, l.sql.forget, int64(micros))
		return err
	})
	if err != nil {
		return fmt.Errorf("forget nodes: %w", err)
	}
	return nil
}

// nameable refuses a name that no column holds. PostgreSQL itself refuses those that are not text.
func nameable(of, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: the name of a %s is empty", shardlog.ErrRefused, of)
	case len(name) > maxNameBytes:
		return fmt.Errorf("%w: the name of a %s has %d bytes, more than %d: %.40s…", shardlog.ErrRefused, of, len(name), maxNameBytes, name)
	}
	return nil
}

// directory is the answer to a statement with lookColumns.
type directory struct {
	now    settings
	stored bool
	look   shardlog.Look
}

// load runs the statement.
func (d *directory) load(ctx context.Context, c *conn, sql string, args ...any) error {
	rows, err := c.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	d.look = shardlog.Look{State: unclaimed().State}
	var r row
	var n nodeRow
	to := append([]any{&d.stored, &d.look.Clock, &d.look.Late, &r.id}, r.places()...)
	_, err = pgx.ForEachRow(rows, d.now.places(append(to, n.places()...)...), func() error {
		if r.id != nil {
			d.look.State = r.head().State
		}
		if n.id != nil {
			d.look.Nodes = append(d.look.Nodes, n.node())
		}
		return nil
	})
	return err
}

// nodeRow is the row of a node as it is scanned: all is null if there is no node.
type nodeRow struct {
	id, addr                   *string
	incarnation, version, beat *int64
	draining                   *bool
}

func (n *nodeRow) places() []any {
	return []any{&n.id, &n.incarnation, &n.addr, &n.version, &n.draining, &n.beat}
}

func (n *nodeRow) node() shardlog.Node {
	return shardlog.Node{
		ID: *n.id, Incarnation: uint64(*n.incarnation), Addr: *n.addr, Version: int(*n.version), Draining: *n.draining, Beat: uint64(*n.beat),
	}
}
