package pglog

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-dev/holdfast/seam"
)

// host is a host of the DSN, with the ways to encrypt the connection in the order in which they are tried.
type host struct {
	name string
	port uint16
	ways []*tls.Config
}

func (h host) String() string { return fmt.Sprintf("%s:%d", h.name, h.port) }

// hosts are those of a DSN, in its order.
func hosts(c *pgx.ConnConfig) []host {
	all := []host{{c.Host, c.Port, []*tls.Config{c.TLSConfig}}}
	for _, f := range c.Fallbacks {
		last := &all[len(all)-1]
		if f.Host == last.name && f.Port == last.port {
			last.ways = append(last.ways, f.TLSConfig)
			continue
		}
		all = append(all, host{f.Host, f.Port, []*tls.Config{f.TLSConfig}})
	}
	return all
}

// session are the settings of each connection. Those of the role and the database do not count.
var session = map[string]string{
	"client_min_messages":                 "warning", // because a wait for the standby that was cancelled is told by a warning alone
	"default_transaction_isolation":       "read committed",
	"idle_in_transaction_session_timeout": "0",
	"idle_session_timeout":                "0",
	"jit":                                 "off", // because the statements are small, and the compiler is not
	"lock_timeout":                        "0",
	"search_path":                         "pg_catalog",
	"statement_timeout":                   "0",
}

// conn is a connection. One task uses it at a time.
type conn struct {
	*pgx.Conn
	at      int    // its host
	warning string // of the server, during the statement that runs
	append  *pgconn.StatementDescription
}

// connect opens a connection to the host that takes writes. All other connections go there too before their next use.
func (l *Log) connect(ctx context.Context, purpose string) (*conn, error) {
	var problems []error
	first := int(l.first.Load())
	for i := range l.hosts {
		at := (first + i) % len(l.hosts)
		c, err := l.dial(ctx, at, purpose)
		if err == nil {
			l.first.Store(int32(at))
			return c, nil
		}
		problems = append(problems, fmt.Errorf("host %v: %w", l.hosts[at], err))
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("connect to PostgreSQL: %w", errors.Join(problems...))
}

// dial opens a connection to one host.
func (l *Log) dial(ctx context.Context, at int, purpose string) (*conn, error) {
	h := l.hosts[at]
	config := l.config.Copy()
	config.Host, config.Port, config.TLSConfig, config.Fallbacks = h.name, h.port, h.ways[0], nil
	for _, way := range h.ways[1:] {
		config.Fallbacks = append(config.Fallbacks, &pgconn.FallbackConfig{Host: h.name, Port: h.port, TLSConfig: way})
	}
	config.RuntimeParams["application_name"] = "holdfast/" + l.o.Node + "/" + purpose
	for name, value := range session {
		config.RuntimeParams[name] = value
	}
	config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	c := &conn{at: at}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { c.warning = n.Message }
	within, cancel := l.within(ctx)
	defer cancel()
	var err error
	if c.Conn, err = pgx.ConnectConfig(within, config); err == nil {
		if err = c.checkSession(within); err == nil {
			err = l.meet(within, c)
		}
		if err == nil {
			return c, nil
		}
		l.hangUp(c)
	}
	l.late(within, at)
	return nil, err
}

// checkSession refuses a connection that has not the settings of session.
func (c *conn) checkSession(ctx context.Context) error {
	names, values := make([]string, 0, len(session)), make([]string, 0, len(session))
	for name, value := range session {
		names, values = append(names, name), append(values, value)
	}
	var wrong []string
	err := c.QueryRow(ctx, `select coalesce(array_agg(name || ' = ' || current_setting(name)), '{}')
		from unnest($1::text[], $2::text[]) t(name, value) where current_setting(name) <> value`, pgx.QueryExecModeExec, names, values).Scan(&wrong)
	if err == nil && len(wrong) > 0 {
		err = fmt.Errorf("%w: the session has %s in spite of the log's own settings", errPooler, strings.Join(wrong, ", "))
	}
	return err
}

// late has the next connection begin with the host after one that did not answer within Options.Timeout, because an old primary that was
// cut off takes connections and never acknowledges. A context that the caller has ended says nothing about the host.
func (l *Log) late(ctx context.Context, at int) {
	if errors.Is(seam.Cause(ctx), errSlow) {
		l.first.CompareAndSwap(int32(at), int32((at+1)%len(l.hosts)))
	}
}

// hangUp closes a connection. Because pgx may have to cancel its statement first, a task does it; once the log has closed, the caller.
func (l *Log) hangUp(c *conn) {
	end := func() {
		ctx, cancel := l.within(context.Background())
		defer cancel()
		_ = c.Close(ctx) // the connection is of no use any more
		_ = l.o.Seams.Executor.Wait(context.Background(), c.PgConn().CleanupDone())
	}
	if !l.tasks.start("pglog hang up", end) {
		end()
	}
}
