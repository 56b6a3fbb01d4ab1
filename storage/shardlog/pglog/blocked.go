package pglog

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// patience is how long a claim waits for the row of its shard before it looks at the session that has it. Statements take
// milliseconds, unless they wait for the standby.
const patience = time.Second

// blockedSQL returns the sessions that hold up a session. It ends those of a log that have waited for their client since more than a
// second: such a client was stopped or cut off in the midst of a statement, which PostgreSQL then undoes. A session that
// waits for the standby is no such one.
const blockedSQL = `
select pid, application_name, coalesce(wait_event, ''), stopped and pg_terminate_backend(pid)
from (
	select *, application_name like 'holdfast/%' and coalesce(wait_event, '') = 'ClientRead' and query_start < clock_timestamp() - interval '1 second' as stopped
	from pg_stat_activity where pid = any(pg_blocking_pids($1::int))) a`

// watch looks, each second until stop is called, at that which holds up the statement of a connection.
func (l *Log) watch(ctx context.Context, c *conn, shard int) (stop context.CancelFunc) {
	ctx, stop = context.WithCancel(ctx)
	pid := c.PgConn().PID()
	l.tasks.start("pglog watch", func() {
		for l.o.Seams.Sleep(ctx, patience) == nil {
			if err := l.unblock(pid, shard); err != nil {
				l.warn("cannot see which session holds up a claim", err.Error())
			}
		}
	})
	return stop
}

// unblock tells of the sessions that hold up another one and ends those that are stopped.
func (l *Log) unblock(pid uint32, shard int) error {
	return l.reader.do(l.running, func(ctx context.Context, c *conn) error {
		rows, err := c.Query(ctx, blockedSQL, int32(pid))
		if err != nil {
			return err
		}
		var by int32
		var name, event string
		var ended bool
		_, err = pgx.ForEachRow(rows, []any{&by, &name, &event, &ended}, func() error {
			detail := fmt.Sprintf("shard %d: session %d of %q, which waits for %q", shard, by, name, event)
			if ended {
				l.warn("a stopped client held up a claim, so its session was ended", detail)
			} else {
				l.warn("a session holds up a claim", detail)
			}
			return nil
		})
		return err
	})
}
