package pglog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// argument is the name of an argument in a statement.
var argument = regexp.MustCompile(`\$(\d+)`)

// ask is Server.Ask for a test, without a process of its own, because loops ask until an answer comes.
func ask(t *testing.T, s *pgtest.Server, sql string, args ...any) string {
	t.Helper()
	ctx := context.Background()
	c, err := pgconn.Connect(ctx, pgtest.DSN(s.Port))
	must(t, err)
	defer c.Close(ctx)
	results, err := c.Exec(ctx, argument.ReplaceAllStringFunc(sql, func(name string) string {
		n, err := strconv.Atoi(name[1:])
		must(t, err)
		return "'" + fmt.Sprint(args[n-1]) + "'"
	})).ReadAll()
	must(t, err)
	if len(results) == 0 || len(results[0].Rows) == 0 {
		return ""
	}
	return string(results[0].Rows[0][0])
}

// backends waits until n backends of a purpose wait for an event of a type or name, and returns the process id of one.
func backends(t *testing.T, s *pgtest.Server, purpose, event string, n int) (pid int) {
	t.Helper()
	for {
		got := ask(t, s, `select min(pid) from pg_stat_activity where application_name like 'holdfast/%/' || $1 and state = 'active'
			and $2 in (wait_event, wait_event_type) having count(*) >= $3`, purpose, event, n)
		if got != "" {
			pid, err := strconv.Atoi(got)
			must(t, err)
			return pid
		}
	}
}

// frozen freezes a server until the function that it returns is called, or the test ends.
func frozen(t *testing.T, s *pgtest.Server) (thaw func()) {
	t.Helper()
	s.Freeze()
	t.Cleanup(s.Thaw)
	return s.Thaw
}

// result is the outcome of a call that runs beside the test.
type result struct {
	state shardlog.State
	err   error
}

// arrived waits until the backend of a client has bytes that it has not read. The client is told by its port.
func arrived(t *testing.T, s *pgtest.Server, client string) {
	t.Helper()
	port, err := strconv.Atoi(client)
	must(t, err)
	from, to := fmt.Sprintf(":%04X", s.Port), fmt.Sprintf(":%04X", port)
	for unread := false; !unread; {
		sockets, err := os.ReadFile("/proc/net/tcp")
		must(t, err)
		for line := range strings.Lines(string(sockets)) {
			if f := strings.Fields(line); strings.HasSuffix(f[1], from) && strings.HasSuffix(f[2], to) {
				unread = !strings.HasSuffix(f[4], ":00000000")
			}
		}
	}
}

// beside runs a call and returns where its outcome comes.
func beside(call func() (shardlog.State, error)) <-chan result {
	done := make(chan result, 1)
	go func() {
		s, err := call()
		done <- result{s, err}
	}()
	return done
}

// A wait for the standby that is cancelled acknowledges nothing, though PostgreSQL reports success.
func TestCancelledWaitIsNoAcknowledgement(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	d := begin(t, l, 4)
	d.progress(10)
	thaw := frozen(t, pair.Standby)
	backends(t, pair.Primary, "append", "SyncRep", l.o.Lanes)
	d.caught()
	acked := func(o *owner) int { return len(o.acked) }
	had := d.counts(acked)
	for range 10 {
		backends(t, pair.Primary, "%", "SyncRep", 1)
		ask(t, pair.Primary, `select count(pg_cancel_backend(pid)) from pg_stat_activity where wait_event = 'SyncRep'`)
	}
	d.until(func(o *owner) bool { return o.unknown > 0 })
	for shard, n := range d.counts(acked) {
		if n != had[shard] {
			t.Errorf("shard %d has %d records acknowledged while the standby stood still", shard, n-had[shard])
		}
	}
	thaw()
	d.progress(10)
	d.check(l)
}

// A head, a claim and a truncation that are cancelled while they wait for the standby have an unknown outcome too. The repeat of the claim knows
// its own.
func TestCancelledWaitOfHeadAndClaim(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	w := shardlogtest.Claim(t, l, 0, "a")
	must(t, w.Append("1"))
	thaw := frozen(t, pair.Standby)
	cancel := func(purpose string, call func() (shardlog.State, error)) {
		t.Helper()
		done := beside(call)
		pid := backends(t, pair.Primary, purpose, "SyncRep", 1)
		ask(t, pair.Primary, `select pg_cancel_backend($1)`, pid)
		if r := <-done; !errors.Is(r.err, shardlog.ErrUnknown) {
			t.Errorf("a cancelled wait of %s: %+v, %v, want ErrUnknown", purpose, r.state, r.err)
		}
	}
	cancel("head", func() (shardlog.State, error) { return l.Head(context.Background(), 0) })
	cancel("head", func() (shardlog.State, error) { return l.Claim(context.Background(), 0, "b", 1) })
	cancel("read", func() (shardlog.State, error) { return shardlog.State{}, l.Truncate(context.Background(), 0, 2, 1) })
	thaw()
	s, err := l.Claim(context.Background(), 0, "b", 1)
	if err != nil || s.Term != 2 || s.Owner != "b" || s.First != 2 {
		t.Errorf("the repeat of the cancelled claim: %+v, %v", s, err)
	}
	if _, err := l.Claim(context.Background(), 0, "c", 1); !errors.Is(err, shardlog.ErrFenced) {
		t.Errorf("the claim of another owner: %v", err)
	}
}

// An append that waits for the row while a claim commits stores nothing. A claim that waits while an append commits sees its record.
func TestClaimAndAppendWaitForTheRow(t *testing.T) {
	pair := shared(t)
	l := open(t, options(t, pair))
	a := shardlogtest.Claim(t, l, 0, "a")
	must(t, a.Append("1"))
	record := a.Record("2")
	send := func() (shardlog.State, error) {
		return shardlog.State{}, l.Append(context.Background(), 0, a.State.Chain, record)
	}
	claim := func() (shardlog.State, error) { return l.Claim(context.Background(), 0, "b", 1) }

	thaw := frozen(t, pair.Standby)
	claimed := beside(claim)
	backends(t, pair.Primary, "head", "SyncRep", 1)
	sent := beside(send)
	backends(t, pair.Primary, "append", "Lock", 1)
	thaw()
	if r := <-claimed; r.err != nil || r.state.Last != 1 {
		t.Errorf("the claim: %+v, %v", r.state, r.err)
	}
	if r := <-sent; !errors.Is(r.err, shardlog.ErrFenced) {
		t.Errorf("the append that waited for the claim: %v, want ErrFenced", r.err)
	}
	if n := ask(t, pair.Primary, l.o.names()(`select count(*) from {log}`)); n != "1" {
		t.Errorf("the log has %s records, want 1", n)
	}

	b := &shardlogtest.Writer{Log: l, Shard: 0, State: shardlogtest.Head(t, l, 0)}
	record = b.Record("2")
	a = b
	claim = func() (shardlog.State, error) { return l.Claim(context.Background(), 0, "c", 2) }
	thaw = frozen(t, pair.Standby)
	sent = beside(send)
	backends(t, pair.Primary, "append", "SyncRep", 1)
	claimed = beside(claim)
	backends(t, pair.Primary, "head", "Lock", 1)
	thaw()
	if r := <-sent; r.err != nil {
		t.Errorf("the append that the claim waited for: %v", r.err)
	}
	if r := <-claimed; r.err != nil || r.state.Last != 2 || r.state.Chain != record.Chain {
		t.Errorf("the claim sees %+v, %v, want record 2", r.state, r.err)
	}
}

// A backend that stands still leaves an append unknown. Its repeat is stored, once, and the backend stores nothing when it wakes.
func TestStoppedBackend(t *testing.T) {
	pair := shared(t)
	o := options(t, pair)
	clock := newHand()
	o.Lanes, o.Seams.Clock = 1, clock
	l := open(t, o)
	w := shardlogtest.Claim(t, l, 0, "a")
	must(t, w.Append("1"))
	const of = ` from pg_stat_activity where application_name = 'holdfast/n1/append'`
	pid, err := strconv.Atoi(ask(t, pair.Primary, `select pid`+of))
	must(t, err)
	port := ask(t, pair.Primary, `select client_port`+of)
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	record := w.Record("2")
	sent := doing(func() error { return l.Append(context.Background(), 0, w.State.Chain, record) })
	arrived(t, pair.Primary, port)
	clock.pass(o.Timeout)
	if r := <-sent; !errors.Is(r.err, shardlog.ErrUnknown) || !errors.Is(r.err, errSlow) {
		t.Errorf("an append by a backend that stands still: %v", r.err)
	}
	must(t, w.Append("2"))
	must(t, w.Append("3"))
	must(t, syscall.Kill(pid, syscall.SIGCONT))
	for ask(t, pair.Primary, `select count(*) from pg_stat_activity where pid = $1`, pid) != "0" {
	}
	if got := len(shardlogtest.Records(t, l, 0)); got != 3 {
		t.Errorf("the log has %d records, want 3", got)
	}
}

// A backend that stands still with the lock of the row holds up its shard and no other. When it goes on, so does the shard.
func TestStoppedBackendWithTheLock(t *testing.T) {
	pair := shared(t)
	o, clock := options(t, pair), newHand()
	o.Seams.Clock = clock
	l := open(t, o)
	w, other := shardlogtest.Claim(t, l, 0, "a"), shardlogtest.Claim(t, l, 1, "a")
	thaw := frozen(t, pair.Standby)
	record := w.Record("1")
	sent := beside(func() (shardlog.State, error) {
		return shardlog.State{}, l.Append(context.Background(), 0, w.State.Chain, record)
	})
	pid := backends(t, pair.Primary, "append", "SyncRep", 1)
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	thaw()
	clock.pass(o.Timeout)
	if r := <-sent; !errors.Is(r.err, shardlog.ErrUnknown) {
		t.Errorf("the append of the stopped backend: %v, want ErrUnknown", r.err)
	}
	must(t, other.Append("1"))
	again := doing(func() error { return l.Append(context.Background(), 0, w.State.Chain, record) })
	backends(t, pair.Primary, "append", "Lock", 1)
	clock.pass(o.Timeout)
	if r := <-again; !errors.Is(r.err, shardlog.ErrUnknown) {
		t.Errorf("the repeat while the row is locked: %v, want ErrUnknown", r.err)
	}
	must(t, other.Append("2"))
	must(t, syscall.Kill(pid, syscall.SIGCONT))
	must(t, w.Append("1"))
	must(t, w.Append("2"))
	if got := len(shardlogtest.Records(t, l, 0)); got != 2 {
		t.Errorf("the log has %d records, want 2", got)
	}
}

// Appends of many shards in different groups, heads of all of them, and claims, in two logs at once, never wait for one another in a circle.
func TestNoDeadlock(t *testing.T) {
	pair := shared(t)
	o := options(t, pair)
	o.Lanes = 4
	l, other := open(t, o), open(t, o)
	const shards = 16
	d := begin(t, l, shards)
	var asked []<-chan result
	for i := range shards {
		asked = append(asked, beside(func() (s shardlog.State, err error) {
			for range 30 {
				for _, log := range []*Log{l, other} {
					if s, err = log.Head(context.Background(), (i*7)%shards); err != nil {
						return s, err
					}
				}
			}
			return s, nil
		}))
	}
	for i, done := range asked {
		if r := <-done; r.err != nil {
			t.Errorf("heads %d: %v", i, r.err)
		}
	}
	d.progress(10)
	for shard, n := range d.counts(func(o *owner) int { return o.unknown }) {
		if n > 0 {
			t.Errorf("shard %d had %d appends of unknown outcome", shard, n)
		}
	}
	d.check(l)
	if n := ask(t, pair.Primary, `select deadlocks from pg_stat_database where datname = 'postgres'`); n != "0" {
		t.Error(fmt.Sprint(n, " deadlocks"))
	}
}
