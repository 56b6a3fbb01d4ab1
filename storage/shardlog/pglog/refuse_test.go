package pglog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// refusedOpen opens a log that must be refused with a text.
func refusedOpen(t *testing.T, o Options, text string) {
	t.Helper()
	l, err := Open(context.Background(), o)
	if err == nil {
		l.Close()
	}
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("open: %v, want a refusal with %q", err, text)
	}
}

// Open refuses each setting that can lose a record, and takes it with the option that the error names.
func TestOpenRefusesSettings(t *testing.T) {
	pair := shared(t)
	for _, c := range []struct {
		name, value, text string
		allow             func(*Options) // nil: nothing allows it
	}{
		{"fsync", "off", "Options.ReplicatedStorage", func(o *Options) { o.ReplicatedStorage = true }},
		{"full_page_writes", "off", "Options.ReplicatedStorage", func(o *Options) { o.ReplicatedStorage = true }},
		{"synchronous_standby_names", "", "Options.ReplicatedStorage", func(o *Options) { o.ReplicatedStorage = true }},
		{"synchronous_standby_names", "", "Options.SingleMachine", func(o *Options) { o.SingleMachine = true }},
		{"synchronous_standby_names", "ANY 1 (*)", "Options.AnyStandby", func(o *Options) { o.AnyStandby = true }},
		{"synchronous_commit", "off", "synchronous_commit is off", nil},
		{"synchronous_commit", "local", "synchronous_commit is local", nil},
		{"synchronous_commit", "remote_write", "synchronous_commit is remote_write", nil},
		{"synchronous_commit", "remote_apply", "", func(*Options) {}},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			o := options(t, pair)
			set(t, pair.Primary, c.name, c.value)
			if c.text != "" {
				refusedOpen(t, o, c.text)
			}
			if c.allow == nil {
				o.ReplicatedStorage, o.SingleMachine, o.AnyStandby = true, true, true
				refusedOpen(t, o, c.text)
				return
			}
			c.allow(&o)
			w := shardlogtest.Claim(t, open(t, o), 0, "a")
			must(t, w.Append("1"))
		})
	}
}

// SingleMachine allows the lack of a standby, and nothing else.
func TestSingleMachineNeedsTheDisk(t *testing.T) {
	pair := shared(t)
	o := options(t, pair)
	o.SingleMachine = true
	for _, name := range []string{"fsync", "full_page_writes"} {
		set(t, pair.Primary, name, "off")
		refusedOpen(t, o, name+" is off")
		must(t, pair.Primary.Set(name, "on"))
	}
}

// The settings of a role do not reach the log's sessions.
func TestRoleSettingsDoNotCount(t *testing.T) {
	pair := shared(t)
	ask(t, pair.Primary, "create role strange login superuser")
	defer ask(t, pair.Primary, "drop role strange")
	for _, setting := range []string{"statement_timeout = '1ms'", "client_min_messages = error", "default_transaction_isolation = serializable", "search_path = nowhere"} {
		ask(t, pair.Primary, "alter role strange set "+setting)
	}
	o := options(t, pair)
	o.DSN = strings.Replace(o.DSN, "user=postgres", "user=strange", 1)
	w := shardlogtest.Claim(t, open(t, o), 0, "a")
	must(t, w.Append("1"))
}

// A schema that is not there, one of another version, and one without its row are refused in words; Init is for the first alone.
func TestOpenRefusesSchemas(t *testing.T) {
	pair := shared(t)
	o := options(t, pair)
	names := o.names()
	named := func(o Options) string {
		t.Helper()
		name, err := open(t, o).Cluster(context.Background())
		must(t, err)
		return name
	}
	cluster := named(o)
	must(t, Init(context.Background(), o))
	if again := named(o); again != cluster || len(again) != 32 {
		t.Errorf("the cluster is %q, and after another Init %q", cluster, again)
	}
	if other := named(options(t, pair)); other == cluster {
		t.Errorf("two schemas have the cluster %q", other)
	}
	ask(t, pair.Primary, names("update {cluster} set version = 2"))
	refusedOpen(t, o, "has version 2, this program reads version 1")
	if err := Init(context.Background(), o); err == nil || !strings.Contains(err.Error(), "has version 2") {
		t.Errorf("Init over version 2: %v", err)
	}
	ask(t, pair.Primary, names("delete from {cluster}"))
	refusedOpen(t, o, "no rows")
	o.Schema = `no "where"`
	refusedOpen(t, o, "make it with Init")
	must(t, Init(context.Background(), o))
	must(t, shardlogtest.Claim(t, open(t, o), 0, "a").Append("1"))
}

// Programs that call Init at once make one schema.
func TestInitAtOnce(t *testing.T) {
	pair := shared(t)
	o := Options{DSN: pgtest.DSN(pair.Primary.Port), Schema: "at_once"}
	var all []<-chan result
	for range 4 {
		all = append(all, beside(func() (shardlog.State, error) { return shardlog.State{}, Init(context.Background(), o) }))
	}
	for _, done := range all {
		if r := <-done; r.err != nil {
			t.Error(r.err)
		}
	}
	if n := ask(t, pair.Primary, o.names()("select count(*) from {cluster}")); n != "1" {
		t.Errorf("the schema has %s clusters, want 1", n)
	}
}

// A right that is missing is refused for good, and so is a table that is gone. Neither is an unknown outcome.
func TestMissingRights(t *testing.T) {
	pair := shared(t)
	o := options(t, pair)
	names := o.names()
	ask(t, pair.Primary, "drop role if exists reader")
	ask(t, pair.Primary, "create role reader login")
	ask(t, pair.Primary, names("grant usage on schema {schema} to reader"))
	ask(t, pair.Primary, names("grant select on {cluster} to reader"))
	l := open(t, o)
	w := shardlogtest.Claim(t, l, 0, "a")

	o.DSN = strings.Replace(o.DSN, "user=postgres", "user=reader", 1)
	poor := open(t, o)
	record := w.Record("1")
	refuses := func(log *Log) {
		t.Helper()
		if err := log.Append(context.Background(), 0, w.State.Chain, record); !errors.Is(err, shardlog.ErrRefused) || !strings.Contains(err.Error(), "shard 0") {
			t.Errorf("append: %v, want ErrRefused", err)
		}
		if _, err := log.Head(context.Background(), 0); !errors.Is(err, shardlog.ErrRefused) {
			t.Errorf("head: %v, want ErrRefused", err)
		}
		if _, err := log.Claim(context.Background(), 0, "b", 1); !errors.Is(err, shardlog.ErrRefused) {
			t.Errorf("claim: %v, want ErrRefused", err)
		}
		if err := log.Read(context.Background(), 0, 1, func(shardlog.Record) error { return nil }); !errors.Is(err, shardlog.ErrRefused) {
			t.Errorf("read: %v, want ErrRefused", err)
		}
		if err := log.Truncate(context.Background(), 0, w.State.Term, 1); !errors.Is(err, shardlog.ErrRefused) {
			t.Errorf("truncate: %v, want ErrRefused", err)
		}
		for about, err := range ofDirectory(log) {
			if !errors.Is(err, shardlog.ErrRefused) {
				t.Errorf("%s: %v, want ErrRefused", about, err)
			}
		}
	}
	refuses(poor)
	ask(t, pair.Primary, names("grant select, insert, update, delete on {shard}, {log}, {node}, {snapshot}, {blob}, {part} to reader"))
	ask(t, pair.Primary, names("grant usage on sequence {incarnation} to reader"))
	for about, err := range ofDirectory(poor) {
		if err != nil {
			t.Errorf("%s with the rights of a node: %v", about, err)
		}
	}
	poorWriter := &shardlogtest.Writer{Log: poor, Shard: 0, State: w.State}
	must(t, poorWriter.Append("1"))
	ask(t, pair.Primary, names("drop table {shard}"))
	refuses(l)
	ask(t, pair.Primary, "drop owned by reader")
	ask(t, pair.Primary, "drop role reader")
}

// ofDirectory are the outcomes of calls that need the table of shards and others. Shard 0 has term 1 and is empty.
func ofDirectory(l *Log) map[string]error {
	ctx := context.Background()
	_, look := l.Look(ctx, 0)
	_, beat := l.Beat(ctx, 0, shardlog.Node{ID: "n"})
	_, snapshots := l.Snapshots(ctx, 0)
	_, recovered := l.Recover(ctx, 7, 0, 0, nil)
	return map[string]error{
		"look": look, "beat": beat, "snapshots": snapshots, "recover": recovered, "note": l.NoteLate(ctx, 7, "record 1"),
		"put": l.Put(ctx, 0, "x", strings.NewReader("x")), "register": l.Register(ctx, 0, 1, shardlog.Snapshot{}), "collect": l.Collect(ctx, 0, 1),
		"begin": l.Begin(ctx, 8, shardlog.Snapshot{Last: 1}), "quarantine": l.Quarantine(ctx, 9, "record 1"),
	}
}

// Calls of Directory and Blobs that no statement could serve are refused without one.
func TestRefusedCallsOfTheDirectory(t *testing.T) {
	l := unconnected(t)
	ctx := context.Background()
	for _, shard := range []int{-1, 1 << 31} {
		_, look := l.Look(ctx, shard)
		_, beat := l.Beat(ctx, shard, shardlog.Node{ID: "n"})
		_, snapshots := l.Snapshots(ctx, shard)
		_, list := l.List(ctx, shard)
		_, recovered := l.Recover(ctx, shard, 1, 0, nil)
		for i, err := range []error{
			look, beat, snapshots, list, recovered, l.Begin(ctx, shard, shardlog.Snapshot{Last: 1}), l.Register(ctx, shard, 1, shardlog.Snapshot{}),
			l.Quarantine(ctx, shard, "x"), l.NoteLate(ctx, shard, "x"), l.Put(ctx, shard, "x", nil), l.Get(ctx, shard, "x", nil), l.Collect(ctx, shard, 1),
		} {
			if !errors.Is(err, shardlog.ErrRefused) || !strings.Contains(err.Error(), fmt.Sprint("shard ", shard)) {
				t.Errorf("call %d of shard %d: %v, want ErrRefused", i, shard, err)
			}
		}
	}
	large := shardlog.Snapshot{Last: 1, Manifest: make([]byte, maxRecordBytes+1)}
	if err := l.Register(ctx, 0, 1, large); !errors.Is(err, shardlog.ErrRefused) {
		t.Errorf("register with a manifest above the limit: %v", err)
	}
	if err := l.Begin(ctx, 0, large); !errors.Is(err, shardlog.ErrRefused) {
		t.Errorf("begin with a manifest above the limit: %v", err)
	}
	large.Manifest = large.Manifest[:maxRecordBytes]
	must(t, whole(large))
	payload := make([]byte, maxRecordBytes/2+1)
	first := shardlog.Record{At: 1, Term: 1, Chain: shardlog.Next(0, payload), Payload: payload}
	second := shardlog.Record{At: 2, Term: 1, Chain: shardlog.Next(first.Chain, payload), Payload: payload}
	if _, err := l.Recover(ctx, 0, 1, 0, []shardlog.Record{first, second}); !errors.Is(err, shardlog.ErrRefused) {
		t.Errorf("a recovery with records above the limit: %v", err)
	}
	payload = payload[1:]
	first.Payload, first.Chain = payload, shardlog.Next(0, payload)
	second.Payload, second.Chain = payload, shardlog.Next(first.Chain, payload)
	must(t, follow(1, 0, []shardlog.Record{first, second}))
	l.Close()
	if _, err := l.Look(ctx, 0); !errors.Is(err, errClosed) {
		t.Errorf("a look after Close: %v", err)
	}
	if err := l.Collect(ctx, 0, 1); !errors.Is(err, errClosed) {
		t.Errorf("a collection after Close: %v", err)
	}
}

// A name has 1,000 bytes at most, of which PostgreSQL makes an index, and is text.
func TestNames(t *testing.T) {
	l := open(t, options(t, shared(t)))
	ctx := context.Background()
	random := make([]byte, maxNameBytes) // because PostgreSQL compresses what repeats
	draw := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte('!' + draw.IntN('~'-'!'))
	}
	for name, fits := range map[string]bool{string(random): true, string(random) + "x": false, "\xff": false, "a\x00b": false, "": false} {
		put := l.Put(ctx, 0, name, strings.NewReader(name))
		_, beat := l.Beat(ctx, 0, shardlog.Node{ID: name})
		for about, err := range map[string]error{"put": put, "beat": beat} {
			if fits && err != nil || !fits && !errors.Is(err, shardlog.ErrRefused) {
				t.Errorf("%s with a name of %d bytes, %.10q: %v", about, len(name), name, err)
			}
		}
	}
	blobsAre(t, l, 0, string(random))
}

// A service that does not tell its server is served, and the log is told.
func TestServerThatDoesNotTell(t *testing.T) {
	pair := shared(t)
	said := &loglines.Recorder{}
	o := options(t, pair)
	ask(t, pair.Primary, "create role quiet login")
	ask(t, pair.Primary, o.names()("grant usage on schema {schema} to quiet"))
	ask(t, pair.Primary, o.names()("grant select, insert, update, delete on all tables in schema {schema} to quiet"))
	ask(t, pair.Primary, "revoke execute on function pg_control_system() from public")
	defer ask(t, pair.Primary, "drop role quiet")
	defer ask(t, pair.Primary, "drop owned by quiet")
	defer ask(t, pair.Primary, "grant execute on function pg_control_system() to public")
	o.DSN, o.Log = strings.Replace(o.DSN, "user=postgres", "user=quiet", 1), said.Logger()
	must(t, shardlogtest.Claim(t, open(t, o), 0, "a").Append("1"))
	if n := strings.Count(said.Text(slog.LevelWarn), "does not tell its system identifier"); n != 1 {
		t.Errorf("the log tells %d times, want once:\n%s", n, said.Text(slog.LevelWarn))
	}
}

// A record that PostgreSQL refuses is refused alone: the other shards of its statement go on.
func TestRefusalIsOfOneShard(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	var batch []*request
	for shard := range int32(3) {
		w := shardlogtest.Claim(t, l, int(shard), "a")
		batch = append(batch, &request{shard: shard, before: 0, r: w.Record("1"), done: make(chan struct{})})
	}
	// A record that the head does not know of: the tables were damaged.
	ask(t, pair.Primary, l.o.names()("insert into {log} values (1, 1, 1, 0, '')"))
	l.append(&lane{link: l.newLink("append")}, batch)
	for i, q := range batch {
		if i == 1 && !errors.Is(q.err, shardlog.ErrRefused) || i != 1 && (q.err != nil || !q.stored) {
			t.Errorf("shard %d: stored %t, %v", i, q.stored, q.err)
		}
	}
}

// Calls that no statement could serve are refused without one.
func TestRefusedCalls(t *testing.T) {
	l := unconnected(t)
	ctx := context.Background()
	for _, shard := range []int{-1, 1 << 31} {
		_, head := l.Head(ctx, shard)
		_, claim := l.Claim(ctx, shard, "a", 0)
		read := l.Read(ctx, shard, 1, nil)
		for _, err := range []error{head, claim, read, l.Truncate(ctx, shard, 1, 1), l.Append(ctx, shard, 0, shardlog.Record{})} {
			if !errors.Is(err, shardlog.ErrRefused) || !strings.Contains(err.Error(), fmt.Sprint("shard ", shard)) {
				t.Errorf("shard %d: %v, want ErrRefused", shard, err)
			}
		}
	}
	large := shardlog.Record{At: 1, Term: 1, Payload: make([]byte, maxRecordBytes+1)}
	if err := l.Append(ctx, 0, 0, large); !errors.Is(err, shardlog.ErrRefused) || !strings.Contains(err.Error(), "make the commit smaller") {
		t.Errorf("a payload above the limit: %v", err)
	}
	if err := l.Append(ctx, 0, 0, shardlog.Record{At: 1, Term: 1, Chain: 1}); !errors.Is(err, shardlog.ErrRefused) {
		t.Errorf("a chain that is not that of the payload: %v", err)
	}
	l.Close()
	l.Close()
	if _, err := l.Head(ctx, 0); !errors.Is(err, errClosed) || !errors.Is(err, shardlog.ErrUnknown) {
		t.Errorf("a head after Close: %v", err)
	}
	if err := l.Append(ctx, 0, 0, shardlog.Record{At: 1, Term: 1, Chain: shardlog.Next(0, nil)}); !errors.Is(err, errClosed) {
		t.Errorf("an append after Close: %v", err)
	}
	if err := l.Read(ctx, 0, 1, nil); !errors.Is(err, errClosed) {
		t.Errorf("a read after Close: %v", err)
	}
}

// unconnected is a log without a server: nothing listens at its port.
func unconnected(t *testing.T) *Log {
	t.Helper()
	l, err := prepare(Options{DSN: "host=127.0.0.1 port=1 user=x sslmode=disable"})
	must(t, err)
	t.Cleanup(l.Close)
	return l
}

// Mistakes in options are told by the name of the option; the bounds themselves are taken.
func TestOptions(t *testing.T) {
	const dsn = "host=127.0.0.1"
	for _, c := range []struct {
		o    Options
		text string
	}{
		{Options{}, "Options.DSN is missing"},
		{Options{DSN: "port=x"}, "Options.DSN"},
		{Options{DSN: dsn, Lanes: -1}, "Options.Lanes is -1"},
		{Options{DSN: dsn, Lanes: 65}, "Options.Lanes is 65"},
		{Options{DSN: dsn, Lanes: 64}, ""},
		{Options{DSN: dsn, Timeout: -1}, "Options.Timeout"},
		{Options{DSN: dsn, Node: strings.Repeat("n", 41)}, "Options.Node has 41 bytes"},
		{Options{DSN: dsn, Node: strings.Repeat("n", 40)}, ""},
		{Options{DSN: dsn}, ""},
	} {
		l, err := prepare(c.o)
		if err == nil {
			l.Close()
		}
		if (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.text)
		}
	}
	o, err := Options{DSN: dsn}.withDefaults()
	if err != nil || o.Schema != "holdfast" || o.Lanes != 2 || o.Timeout != 5*time.Second || o.Log == nil {
		t.Errorf("the defaults are %+v, %v", o, err)
	}
}
