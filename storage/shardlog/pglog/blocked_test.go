package pglog

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// halted is a client that has executed a statement and not ended it, so that its session keeps its locks.
func halted(t *testing.T, s *pgtest.Server, name, sql string) *pgproto3.Frontend {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr())
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	f := pgproto3.NewFrontend(c, c)
	f.Send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{
		"user": "postgres", "database": "postgres", "application_name": name,
	}})
	must(t, f.Flush())
	must(t, untilReady(f, func(pgproto3.BackendMessage) {}))
	f.Send(&pgproto3.Parse{Query: sql})
	f.Send(&pgproto3.Bind{})
	f.Send(&pgproto3.Execute{})
	f.Send(&pgproto3.Flush{})
	must(t, f.Flush())
	for {
		m, err := f.Receive()
		must(t, err)
		if _, done := m.(*pgproto3.CommandComplete); done {
			return f
		}
	}
}

// A claim ends the session of a log's client that was stopped in the midst of an append, and the append is undone.
func TestClaimEndsStoppedClient(t *testing.T) {
	pair := shared(t)
	said := &loglines.Recorder{}
	o := options(t, pair)
	o.Log = said.Logger()
	l := open(t, o)
	w := shardlogtest.Claim(t, l, 0, "a")
	must(t, w.Append("1"))
	client := halted(t, pair.Primary, "holdfast/n9/append", o.names()(`update {shard} set last = 2 where id = 0`))
	if s, err := l.Claim(context.Background(), 0, "b", 1); err != nil || s.Last != 1 || s.Term != 2 {
		t.Errorf("the claim: %+v, %v", s, err)
	}
	if err := untilReady(client, func(m pgproto3.BackendMessage) {
		if e, ok := m.(*pgproto3.ErrorResponse); ok && e.Code != "57P01" {
			t.Errorf("the stopped client is told %s %s", e.Code, e.Message)
		}
	}); err == nil {
		t.Error("the session of the stopped client lives")
	}
	warned(t, pair.Primary, said, "its session was ended", nil)
	if text := said.Text(slog.LevelWarn); !strings.Contains(text, "holdfast/n9/append") {
		t.Errorf("the log says %q", text)
	}
}

// warned waits until the log has warned with a text, because the goroutine that looks at a blocked claim may write it after the claim has
// returned. It moves the clock of the log on, if the log has one of its own, because that goroutine looks once a second.
func warned(t *testing.T, s *pgtest.Server, said *loglines.Recorder, text string, clock *hand) {
	t.Helper()
	for !strings.Contains(said.Text(slog.LevelWarn), text) {
		if clock != nil {
			clock.pass(patience)
		}
		ask(t, s, "select 1")
	}
}

// A claim ends no session of another program, and none that waits for the standby: it tells of them, and its outcome is unknown.
func TestClaimEndsNoOther(t *testing.T) {
	pair := shared(t)
	said := &loglines.Recorder{}
	o, clock := options(t, pair), newHand()
	o.Log, o.Seams.Clock = said.Logger(), clock
	l := open(t, o)
	shardlogtest.Claim(t, l, 0, "a")
	client := halted(t, pair.Primary, "psql", o.names()(`update {shard} set beat = 9 where id = 0`))
	blocked := beside(func() (shardlog.State, error) { return l.Claim(context.Background(), 0, "b", 1) })
	backends(t, pair.Primary, "head", "Lock", 1)
	warned(t, pair.Primary, said, "psql", clock)
	clock.pass(o.Timeout)
	if r := <-blocked; !errors.Is(r.err, shardlog.ErrUnknown) {
		t.Errorf("the claim of a row that psql has locked: %v, want ErrUnknown", r.err)
	}
	client.Send(&pgproto3.Sync{})
	must(t, client.Flush())
	must(t, untilReady(client, func(pgproto3.BackendMessage) {}))
	if text := said.Text(slog.LevelWarn); strings.Contains(text, "was ended") {
		t.Errorf("the log says %q", text)
	}

	other := shardlogtest.Claim(t, l, 1, "a")
	thaw := frozen(t, pair.Standby)
	record := other.Record("1")
	sent := beside(func() (shardlog.State, error) {
		return shardlog.State{}, l.Append(context.Background(), 1, other.State.Chain, record)
	})
	pid := backends(t, pair.Primary, "append", "SyncRep", 1)
	claimed := beside(func() (shardlog.State, error) { return l.Claim(context.Background(), 1, "b", 1) })
	warned(t, pair.Primary, said, "SyncRep", clock)
	if n := ask(t, pair.Primary, "select count(*) from pg_stat_activity where pid = $1", pid); n != "1" {
		t.Error("the session that waits for the standby was ended")
	}
	thaw()
	<-sent
	<-claimed
}
