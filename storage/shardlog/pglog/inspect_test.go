package pglog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

// look opens a log for a look that the end of the test closes.
func look(t *testing.T, o Options) *Log {
	t.Helper()
	l, err := Inspect(context.Background(), o)
	must(t, err)
	t.Cleanup(l.Close)
	return l
}

// A look is possible with settings that Open refuses, and tells of them. Calls that acknowledge stay refused.
func TestInspectTellsOfSettings(t *testing.T) {
	pair := shared(t)
	o := options(t, pair)
	h, err := look(t, o).Health(t.Context())
	must(t, err)
	if h.Unsafe != "" || h.Version == "" || h.System == "" || h.Timeline != "00000001" || h.LogBytes < 8192 || len(h.Holds) > 0 {
		t.Errorf("a server that is safe: %+v", h)
	}
	for _, b := range broken {
		t.Run(b.name+"="+b.value, func(t *testing.T) {
			set(t, pair.Primary, b.name, b.value)
			if l, err := Open(t.Context(), o); err == nil {
				l.Close()
				t.Error("Open takes it")
			}
			l := look(t, o)
			h, err := l.Health(t.Context())
			if err != nil || !strings.Contains(h.Unsafe, b.word) || h.Settings[b.name] != b.value {
				t.Errorf("%+v, %v: want %q", h, err, b.word)
			}
			if _, err := l.Claim(t.Context(), 0, "n1", 0); !errors.Is(err, shardlog.ErrUnknown) {
				t.Errorf("a claim: %v", err)
			}
		})
	}
}

// A schema that is not there, one of another version, and a server that is not there are errors of a look.
func TestInspectRefuses(t *testing.T) {
	pair := shared(t)
	o := options(t, pair)
	absent, down := o, o
	absent.Schema, down.DSN = "absent", "postgres://postgres@127.0.0.1:1/postgres"
	for _, c := range []struct {
		o    Options
		want string
	}{{absent, "schema absent: no log is there"}, {down, "connection refused"}, {Options{}, "Options.DSN is missing"}} {
		if l, err := Inspect(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: want %q", err, c.want)
			l.Close()
		}
	}
}

// The right to select is enough for a look.
func TestInspectNeedsNoRightToWrite(t *testing.T) {
	pair := shared(t)
	o := options(t, pair)
	reader := "reader_" + o.Schema
	for _, sql := range []string{
		`create role ` + reader + ` login`, `grant usage on schema ` + o.Schema + ` to ` + reader, `grant select on all tables in schema ` + o.Schema + ` to ` + reader,
	} {
		must(t, execute(t, pair, sql))
	}
	o.DSN = fmt.Sprintf("host=127.0.0.1 port=%d user=%s dbname=postgres", pair.Primary.Port, reader)
	l := look(t, o)
	_, err := l.Look(t.Context(), 0)
	must(t, err)
	_, err = l.Snapshots(t.Context(), 0)
	must(t, err)
	_, err = l.List(t.Context(), 0)
	must(t, err)
	_, err = l.Health(t.Context())
	must(t, err)
	if _, err := l.Head(t.Context(), 0); !errors.Is(err, shardlog.ErrRefused) {
		t.Errorf("a head, which writes: %v", err)
	}
}

// execute runs a statement at the primary.
func execute(t *testing.T, pair *pgtest.Pair, sql string) error {
	c, err := pgx.Connect(t.Context(), pgtest.DSN(pair.Primary.Port))
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	_, err = c.Exec(t.Context(), sql)
	return err
}

// kinds are the kinds of the holds with some bounds.
func kinds(t *testing.T, l *Log, bounds holdBounds) map[string]Hold {
	t.Helper()
	h, err := l.health(t.Context(), bounds)
	must(t, err)
	found := map[string]Hold{}
	for _, hold := range h.Holds {
		found[hold.Kind] = hold
	}
	return found
}

// A session with an open transaction is a hold from its bounds on, of age or of time, and no longer than it is there. So are dead rows.
func TestHoldsOfSessions(t *testing.T) {
	pair := shared(t)
	l := look(t, options(t, pair))
	never := holdBounds{math.MaxInt64, 24 * time.Hour, math.MaxInt64}
	c, err := pgx.Connect(t.Context(), pgtest.DSN(pair.Primary.Port))
	must(t, err)
	defer c.Close(context.WithoutCancel(t.Context()))
	tx, err := c.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	must(t, err)
	_, err = tx.Exec(t.Context(), "select 1")
	must(t, err)
	byAge, bySince := never, never
	byAge.age, bySince.since = -1, 0
	for about, bounds := range map[string]holdBounds{"age": byAge, "time": bySince} {
		if hold, ok := kinds(t, l, bounds)["session"]; !ok || !strings.Contains(hold.Name, fmt.Sprint(c.PgConn().PID())) || !strings.Contains(hold.String(), "end it") {
			t.Errorf("a session by its %s: %+v, %v", about, hold, ok)
		}
	}
	if found := kinds(t, l, never); len(found) > 0 {
		t.Errorf("within all bounds: %v", found)
	}
	must(t, tx.Rollback(t.Context()))
	if hold, ok := kinds(t, l, bySince)["session"]; ok {
		t.Errorf("after its end: %+v", hold)
	}
	dead := never
	dead.dead = -1
	if hold, ok := kinds(t, l, dead)[deadRows]; !ok || !strings.Contains(hold.String(), "autovacuum") {
		t.Errorf("dead rows: %+v, %v", hold, ok)
	}
}

// A replication slot whose standby reads, and a prepared transaction, are holds.
func TestHoldsOfSlotsAndPreparedTransactions(t *testing.T) {
	t.Parallel()
	pair := own(t)
	l := look(t, options(t, pair))
	must(t, execute(t, pair, "select pg_create_physical_replication_slot('left')"))
	must(t, pair.Standby.Set("primary_slot_name", "left"))
	must(t, pair.Standby.Set("hot_standby_feedback", "on"))
	for there := ""; there != "true"; {
		var err error
		there, err = pair.Primary.Ask("select (xmin is not null)::text from pg_replication_slots")
		must(t, err)
	}
	bounds := holdBounds{age: -1, since: 0, dead: math.MaxInt64}
	if hold, ok := kinds(t, l, bounds)[slots]; !ok || hold.Name != "left" || !strings.Contains(hold.String(), "hot_standby_feedback") {
		t.Errorf("a slot: %+v, %v", hold, ok)
	}
	for _, s := range []*pgtest.Server{pair.Standby, pair.Primary} {
		_, err := s.Ask("alter system set max_prepared_transactions = 2") // new sessions have it after the start
		must(t, err)
		must(t, s.StopNow())
		must(t, s.Start())
	}
	must(t, pair.Standby.WaitStreaming())
	c, err := pgx.Connect(t.Context(), pgtest.DSN(pair.Primary.Port))
	must(t, err)
	defer c.Close(context.WithoutCancel(t.Context()))
	for _, sql := range []string{"begin", "create table t (a int)", "prepare transaction 'old'"} {
		_, err := c.Exec(t.Context(), sql)
		must(t, err)
	}
	if hold, ok := kinds(t, l, bounds)["prepared transaction"]; !ok || hold.Name != "old" {
		t.Errorf("a prepared transaction: %+v, %v", hold, ok)
	}
	if found := kinds(t, l, holdBounds{math.MaxInt64, 24 * time.Hour, math.MaxInt64}); len(found) > 0 {
		t.Errorf("within all bounds: %v", found)
	}
}
