package pglog

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/internal/testing/loglines"
	"github.com/holdfast-dev/holdfast/internal/testing/prove"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/shardlogtest"
)

// asleep stops the processes of the primary that write its log in the background, so that only commits that wait for the disk write it, however
// long a test takes.
func asleep(t *testing.T, pair *pgtest.Pair) {
	t.Helper()
	t.Cleanup(pair.Primary.Thaw)
	const background = `('walwriter', 'background writer', 'checkpointer', 'autovacuum launcher')`
	for _, pid := range strings.Split(ask(t, pair.Primary, `select string_agg(pid::text, ' ') from pg_stat_activity where backend_type in `+background), " ") {
		n, err := strconv.Atoi(pid)
		must(t, err)
		must(t, syscall.Kill(n, syscall.SIGSTOP))
	}
}

// killed kills the primary with all that it had only in memory, and starts it again with its background processes asleep.
func killed(t *testing.T, pair *pgtest.Pair) {
	t.Helper()
	must(t, pair.Primary.Kill())
	must(t, pair.Primary.Start())
	asleep(t, pair)
}

// A log that acknowledges with synchronous_commit = off loses records at a power loss. The suite finds it each time.
func TestSuiteFindsAsynchronousCommit(t *testing.T) {
	pair := shared(t)
	times := 2
	if prove.Long() {
		times = 10
	}
	asleep(t, pair)
	for i := range times {
		l := open(t, options(t, pair))
		l.commit = "off"
		c := config(t, pair, l)
		c.Restart = func() shardlog.Log {
			killed(t, pair)
			return l
		}
		for _, k := range shardlogtest.Cases(c) {
			if k.Name != "durable" {
				continue
			}
			if found := shardlogtest.Failures(k); len(found) == 0 {
				t.Errorf("time %d: the case durable passes with synchronous_commit = off", i)
			}
		}
	}
}

// set changes a setting until the test ends.
func set(t *testing.T, s *pgtest.Server, name, value string) {
	t.Helper()
	before, err := s.Ask("select setting from pg_settings where name = $1", name)
	must(t, err)
	must(t, s.Set(name, value))
	t.Cleanup(func() { must(t, s.Set(name, before)) })
}

// broken are settings that must stop all acknowledgements, and the word of the warning.
var broken = []struct{ name, value, word string }{
	{"synchronous_standby_names", "", "synchronous_standby_names is empty"},
	{"synchronous_standby_names", "*", "Options.AnyStandby"},
	{"fsync", "off", "fsync is off"},
	{"full_page_writes", "off", "full_page_writes is off"},
}

// Proves N2, as far as it is of settings that change under load: at most the statement of each lane that was under way is acknowledged; then none is until the setting is
// as before, and the log is told once.
func TestSettingsChangeUnderLoad(t *testing.T) {
	pair := shared(t)
	for _, b := range broken {
		t.Run(b.name+"="+b.value, func(t *testing.T) {
			said := &loglines.Recorder{}
			o := options(t, pair)
			o.Log = said.Logger()
			l := open(t, o)
			d := begin(t, l, l.o.Lanes)
			d.progress(10)

			before, err := pair.Primary.Ask("select setting from pg_settings where name = $1", b.name)
			must(t, err)
			must(t, pair.Primary.Set(b.name, b.value))
			acked := func(o *owner) int { return len(o.acked) }
			unknown := func(o *owner) int { return o.unknown }
			had, doubts := d.counts(acked), d.counts(unknown)
			d.until(func(o *owner) bool { return o.unknown >= doubts[o.Shard]+20 })
			for shard, n := range d.counts(acked) {
				if n > had[shard]+1 {
					t.Errorf("shard %d has %d records acknowledged after %s was set to %q", shard, n-had[shard], b.name, b.value)
				}
			}
			if _, err := l.Head(context.Background(), 0); err == nil || !strings.Contains(err.Error(), b.word) {
				t.Errorf("a head is told: %v", err)
			}
			if _, err := l.Claim(context.Background(), l.o.Lanes, "x", 0); err == nil || !strings.Contains(err.Error(), b.word) {
				t.Errorf("a claim is told: %v", err)
			}
			must(t, pair.Primary.Set(b.name, before))
			d.progress(10)
			d.check(l)
			if n := strings.Count(said.Text(slog.LevelWarn), b.word); n != 1 {
				t.Errorf("the log tells %d times, want once:\n%s", n, said.Text(slog.LevelWarn))
			}
		})
	}
}
