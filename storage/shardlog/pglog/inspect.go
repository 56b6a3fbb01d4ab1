package pglog

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Inspect is Open for a look: it takes a server with settings that Open refuses, because an operator looks when something is wrong. Nothing is
// less safe for it, because each call that acknowledges looks at the settings by itself. A role with the right to select from the tables is enough for Look,
// Snapshots, List, Read and Health. The log must be closed.
func Inspect(ctx context.Context, options Options) (*Log, error) {
	l, err := prepare(options)
	if err != nil {
		return nil, err
	}
	err = l.control.run(ctx, func(ctx context.Context, c *conn) (err error) {
		l.cluster, err = l.identify(ctx, c)
		return err
	})
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("pglog: open for a look: %w", err)
	}
	return l, nil
}

// Health is the server behind a log at one moment, as far as the log depends on it.
type Health struct {
	// Version is that of PostgreSQL, such as 16.4, and System and Timeline tell this server from others; empty if it does not tell.
	Version  string `json:"version"`
	System   string `json:"system,omitempty"`
	Timeline string `json:"timeline,omitempty"`
	// Settings are those that decide whether an acknowledged record is safe, by their names in PostgreSQL.
	Settings map[string]string `json:"settings"`
	// Unsafe says which of them breaks the promise of the options, and the remedy. Nothing is acknowledged then. Empty: none does.
	Unsafe string `json:"unsafe,omitempty"`
	// LogBytes is how much the records take, with the space that vacuum has yet to make usable again.
	LogBytes int64 `json:"log_bytes"`
	// DeadRows is how many dead rows the table shard has. Each append leaves one, and vacuum removes them.
	DeadRows int64 `json:"dead_rows"`
	// Holds are those that keep vacuum from removing dead rows, so that appends become slower.
	Holds []Hold `json:"holds"`
}

// Hold keeps vacuum from removing rows that have died since it began.
type Hold struct {
	// Kind is "replication slot", "session", "prepared transaction", or "dead rows" for a table that vacuum does not keep up with.
	Kind string `json:"kind"`
	// Name says which one, for example the name of a slot, or the process id and application_name of a session.
	Name string `json:"name"`
	// Age is how many transactions have begun since. It is the number of dead rows for that kind.
	Age int64 `json:"age"`
}

func (h Hold) String() string {
	switch h.Kind {
	case deadRows:
		return fmt.Sprintf("the table %s has %d dead rows: look whether autovacuum runs", h.Name, h.Age)
	case slots:
		return fmt.Sprintf("the %s %s keeps dead rows since %d transactions: drop it if its standby is gone, or turn hot_standby_feedback off there", h.Kind, h.Name, h.Age)
	}
	return fmt.Sprintf("the %s %s keeps dead rows since %d transactions: end it if nothing needs it", h.Kind, h.Name, h.Age)
}

// Kinds of holds.
const (
	deadRows = "dead rows"
	slots    = "replication slot"
)

// holdBounds are from when on something counts as a hold.
type holdBounds struct {
	age   int64         // transactions: a busy cluster makes some thousands a second, each with a dead row
	since time.Duration // of a session's transaction, and of a prepared transaction
	dead  int64         // rows of table shard; autovacuum comes once a minute and leaves fewer
}

// production are the bounds outside of tests. A dump of a minute or a standby that reads is no reason to warn.
var production = holdBounds{age: 200_000, since: time.Minute, dead: 200_000}

// healthSQL returns the server.
const healthSQL = `select current_setting('server_version'), pg_total_relation_size($1::regclass), pg_stat_get_dead_tuples($2::regclass), ` + settingsSQL + `
from (select current_setting('synchronous_commit') as commit) c`

// holdsSQL returns the holds with their ages. A role that may not see the sessions of others sees those of its own.
const holdsSQL = `
select 'replication slot', slot_name::text, age(xmin)::bigint from pg_replication_slots where xmin is not null and age(xmin) > $1::bigint
union all
select 'session', pid::text || coalesce(' ' || nullif(application_name, ''), ''), age(backend_xmin)::bigint from pg_stat_activity
where backend_xmin is not null and pid <> pg_backend_pid() and (datname is null or datname = current_database())
	and (age(backend_xmin) > $1 or xact_start < clock_timestamp() - $2::bigint * interval '1 microsecond')
union all
select 'prepared transaction', gid, age(transaction)::bigint from pg_prepared_xacts
where database = current_database() and (age(transaction) > $1 or prepared < clock_timestamp() - $2 * interval '1 microsecond')
order by 3 desc, 2`

// Health looks at the server and changes nothing. It waits for no lock.
func (l *Log) Health(ctx context.Context) (Health, error) { return l.health(ctx, production) }

func (l *Log) health(ctx context.Context, bounds holdBounds) (h Health, err error) {
	names := l.o.names()
	err = l.reader.do(ctx, func(ctx context.Context, c *conn) error {
		var now settings
		row := c.QueryRow(ctx, healthSQL, names("{log}"), names("{shard}"))
		h = Health{Holds: []Hold{}}
		if err := row.Scan(append([]any{&h.Version, &h.LogBytes, &h.DeadRows}, now.places()...)...); err != nil {
			return err
		}
		h.Unsafe = now.wrong(l.o, "on", "remote_apply")
		h.Settings = map[string]string{
			"synchronous_commit": now.commit, "fsync": now.fsync, "full_page_writes": now.pages, "synchronous_standby_names": now.names,
		}
		rows, err := c.Query(ctx, holdsSQL, bounds.age, bounds.since.Microseconds())
		if err != nil {
			return err
		}
		holds, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Hold])
		h.Holds = append(h.Holds, holds...)
		return err
	})
	if err != nil {
		return Health{}, fmt.Errorf("health of PostgreSQL: %w", err)
	}
	if h.DeadRows > bounds.dead {
		h.Holds = append(h.Holds, Hold{deadRows, names("{shard}"), h.DeadRows})
	}
	l.met.Lock()
	h.System, h.Timeline = l.met.system, l.met.timeline
	l.met.Unlock()
	return h, nil
}
