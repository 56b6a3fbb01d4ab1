package pglog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// The primary is killed with -9 and stopped at once, in turn, while owners append. Each acknowledged record is there, once, and the owners go
// on with their terms.
func TestCrashesUnderLoad(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	d := begin(t, l, 4)
	n := fromEnv(t, "HOLDFAST_PG_CRASHES", 2, 5)
	for i := range n {
		d.progress(20)
		end := pair.Primary.Kill
		if i%2 == 1 {
			end = pair.Primary.StopNow
		}
		must(t, end())
		must(t, pair.Primary.Start())
	}
	d.progress(20)
	t.Logf("%d crashes, %d records acknowledged, none lost", n, d.check(l))
}

// Proves N2, as far as it is of PostgreSQL: the standby is promoted after the primary was killed under load. The owners go on there with all acknowledged records,
// and the log tells of the new server.
func TestPromote(t *testing.T) {
	t.Parallel()
	pair := own(t)
	o := options(t, pair)
	o.DSN = pgtest.DSN(pair.Primary.Port, pair.Standby.Port)
	o.SingleMachine = true // because the new primary has no standby; the old one waits for its standby in spite of it
	said := &loglines.Recorder{}
	o.Log = said.Logger()
	l := open(t, o)
	d := begin(t, l, 4)
	d.progress(20)
	if text := said.Text(slog.LevelWarn); text != "" {
		t.Errorf("before the promote the log says %q", text)
	}
	must(t, pair.Primary.Kill())
	must(t, pair.Standby.Promote())
	d.progress(20)
	t.Logf("%d records acknowledged, none lost", d.check(l))
	for _, part := range []string{"another server", "timeline 00000001", "timeline 00000002", fmt.Sprint("host 127.0.0.1:", pair.Standby.Port)} {
		if text := said.Text(slog.LevelWarn); !strings.Contains(text, part) || strings.Count(text, "another server") != 1 {
			t.Errorf("after the promote the log says %q, want once %q", text, part)
		}
	}
	session := func() string {
		shardlogtest.Head(t, l, 0)
		return ask(t, pair.Standby, `select pid from pg_stat_activity where application_name = 'holdfast/n1/head'`)
	}
	if first, second := session(), session(); first == "" || first != second {
		t.Errorf("two heads use the sessions %q and %q of the new primary", first, second)
	}
}

// An old primary that is cut off from its clients and its standby is the first host. After the time-out of a call the log goes to the new primary.
// Later the old one takes connections again, and acknowledges nothing: a log that begins there goes to the new one too.
func TestIsolatedOldPrimary(t *testing.T) {
	t.Parallel()
	pair := own(t)
	o, clock := options(t, pair), newHand()
	p, err := pgtest.NewProxy(pair.Primary)
	must(t, err)
	t.Cleanup(p.Close)
	o.DSN = pgtest.DSN(p.Port, pair.Standby.Port)
	o.SingleMachine, o.Lanes, o.Seams.Clock = true, 1, clock
	l := open(t, o)
	d := begin(t, l, 2)
	d.progress(20)
	p.Hold(pgtest.ToServer, pgtest.ToClient)
	p.WaitHeld(1) // the one lane has no answer any more
	must(t, pair.Standby.Promote())
	clock.pass(o.Timeout)
	d.progress(20)
	p.Free()

	later := newHand()
	o.Seams.Clock = later
	late := open(t, o)
	claimed := beside(func() (shardlog.State, error) { return late.Claim(context.Background(), 7, "late", 0) })
	backends(t, pair.Primary, "head", "SyncRep", 1)
	later.pass(o.Timeout)
	if r := <-claimed; !errors.Is(r.err, shardlog.ErrUnknown) {
		t.Errorf("a claim at the old primary: %+v, %v, want ErrUnknown", r.state, r.err)
	}
	w := shardlogtest.Claim(t, late, 7, "late")
	must(t, w.Append("1"))
	if n := ask(t, pair.Standby, o.names()(`select count(*) from {log} where shard = 7`)); n != "1" {
		t.Errorf("the new primary has %s records of the shard, want 1", n)
	}
	d.progress(20)
	d.check(l)
	must(t, pair.Primary.Kill()) // else the logs wait for the ends of sessions there that wait for the standby
}

// A standby that lags behind and is promoted lacks acknowledged records, because PostgreSQL was told not to wait for it. The owner's next
// append is fenced and its head shows the loss.
func TestPromoteOfLaggingStandby(t *testing.T) {
	t.Parallel()
	pair := own(t)
	o := options(t, pair)
	o.DSN = pgtest.DSN(pair.Primary.Port, pair.Standby.Port)
	o.SingleMachine = true // that is the mistake
	l := open(t, o)
	w := shardlogtest.Claim(t, l, 0, "a")
	must(t, w.Append("1"))
	must(t, w.Append("2"))
	must(t, pair.Standby.Set("primary_conninfo", ""))
	must(t, pair.Primary.Set("synchronous_standby_names", ""))
	for ask(t, pair.Primary, `select count(*) from pg_stat_replication`) != "0" {
	}
	must(t, w.Append("3"))
	must(t, pair.Primary.Kill())
	must(t, pair.Standby.Promote())
	if err := w.Append("4"); !errors.Is(err, shardlog.ErrFenced) {
		t.Errorf("the append after the loss of record 3: %v, want ErrFenced", err)
	}
	h := shardlogtest.Head(t, l, 0)
	if h.Last != 2 || h.Term != w.State.Term || w.State.Last != 3 {
		t.Errorf("the head is %+v, the owner's receipt is for record %d", h, w.State.Last)
	}
	shardlogtest.Records(t, l, 0)
}

// A full disk is told by ErrNoSpace, for reads and other shards nothing changes, and the same append succeeds once there is room.
func TestDiskFull(t *testing.T) {
	pair := shared(t)
	o := options(t, pair)
	o.Lanes = 1
	l := open(t, o)
	w := shardlogtest.Claim(t, l, 0, "a")
	large := strings.Repeat("x", 9<<20)
	must(t, w.Append(large))
	pid, err := strconv.Atoi(ask(t, pair.Primary, `select pid from pg_stat_activity where application_name = 'holdfast/n1/append'`))
	must(t, err)
	// A file of PostgreSQL's own log has 16 MiB, so the limit is met by the table alone.
	must(t, pair.Primary.LimitFiles(pid, "17000000"))
	record := w.Record(large)
	for range 2 {
		if err := l.Append(context.Background(), 0, w.State.Chain, record); !errors.Is(err, shardlog.ErrNoSpace) {
			t.Errorf("an append to a full disk: %v, want ErrNoSpace", err)
		}
	}
	if got := len(shardlogtest.Records(t, l, 0)); got != 1 {
		t.Errorf("the log has %d records, want 1", got)
	}
	other := shardlogtest.Claim(t, l, 1, "a")
	must(t, other.Append("small"))
	must(t, pair.Primary.LimitFiles(pid, "unlimited"))
	must(t, w.Append(large))
	must(t, w.Append("small"))
	if got := len(shardlogtest.Records(t, l, 0)); got != 3 {
		t.Errorf("the log has %d records, want 3", got)
	}
}
