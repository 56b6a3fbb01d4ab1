package pglog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// server tells a server of PostgreSQL from others: a standby has the system identifier of its primary, and begins a timeline when it is
// promoted.
type server struct {
	system   string
	timeline string // hexadecimal, as in the names of PostgreSQL's own log files
}

func (s server) String() string { return fmt.Sprintf("system %s, timeline %s", s.system, s.timeline) }

// serverSQL returns the server. The name of the current log file begins with the timeline; pg_control_checkpoint shows a new
// one only after a checkpoint.
const serverSQL = `select (select system_identifier::text from pg_control_system()), substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)`

// meet logs that a new connection leads to another server than the one before, because a fail-over may have lost records. A
// service that does not tell its server is taken as it is.
func (l *Log) meet(ctx context.Context, c *conn) error {
	var now server
	err := c.QueryRow(ctx, serverSQL, pgx.QueryExecModeExec).Scan(&now.system, &now.timeline)
	var refusal *pgconn.PgError
	switch {
	case errors.As(err, &refusal):
		l.warn("PostgreSQL does not tell its system identifier and timeline, so a fail-over is not seen", refusal.Message)
		return nil
	case err != nil:
		return err
	}
	l.met.Lock()
	before := l.met.server
	l.met.server = now
	l.met.Unlock()
	if before != now && before != (server{}) {
		l.warn("a connection leads to another server of PostgreSQL than the one before", fmt.Sprintf("host %v: %v; before: %v", l.hosts[c.at], now, before))
	}
	return nil
}
