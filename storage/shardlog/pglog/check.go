package pglog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// oldest is the oldest version that the tests run with.
const oldest = 150000

// check refuses a server that does not keep records as Options say, and reads the id of the cluster.
func (l *Log) check(ctx context.Context) error {
	err := l.control.run(ctx, func(ctx context.Context, c *conn) error {
		if err := l.checkServer(ctx, c); err != nil {
			return err
		}
		return l.reader.run(ctx, func(ctx context.Context, other *conn) error { return checkDirect(ctx, c, other) })
	})
	if err != nil {
		return err
	}
	return l.control.run(ctx, func(ctx context.Context, c *conn) (err error) {
		l.cluster, err = l.identify(ctx, c)
		return err
	})
}

// checkServer looks at the version and at the settings of the session, before any statement sets its own.
func (l *Log) checkServer(ctx context.Context, c *conn) error {
	var number int
	var now settings
	const sql = `select current_setting('server_version_num')::int, ` + settingsSQL + ` from (select current_setting('synchronous_commit') as commit) c`
	if err := c.QueryRow(ctx, sql, pgx.QueryExecModeExec).Scan(append([]any{&number}, now.places()...)...); err != nil {
		return err
	}
	if number < oldest {
		return fmt.Errorf("PostgreSQL has version %d: use version %d or newer", number/10000, oldest/10000)
	}
	if wrong := now.wrong(l.o, "on", "remote_apply"); wrong != "" {
		return errors.New(wrong)
	}
	return nil
}

// checkDirect refuses a pooler: the session keeps its backend and its settings from statement to statement, and another session has another
// backend. It prepares no statement, because a pooler may refuse that with an error that tells less.
func checkDirect(ctx context.Context, c, other *conn) error {
	const set = `select set_config('holdfast.session', 'kept', false), pg_backend_pid()`
	const kept = `select coalesce(current_setting('holdfast.session', true), ''), pg_backend_pid()`
	var mark [4]string
	var backend [4]int
	for i, ask := range []struct {
		c   *conn
		sql string
	}{{c, set}, {c, kept}, {other, kept}, {c, kept}} {
		if err := ask.c.QueryRow(ctx, ask.sql, pgx.QueryExecModeExec).Scan(&mark[i], &backend[i]); err != nil {
			return err
		}
	}
	if mark != [4]string{"kept", "kept", "", "kept"} || backend[0] != backend[1] || backend[0] != backend[3] || backend[0] == backend[2] {
		return fmt.Errorf("%w: statements of two sessions, the third of the second one, had the backends %v and the settings %q", errPooler, backend, mark)
	}
	return nil
}
