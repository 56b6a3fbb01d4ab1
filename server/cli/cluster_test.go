package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/cluster"
	"github.com/holdfast-dev/holdfast/internal/pgtest"
	"github.com/holdfast-dev/holdfast/internal/testing/outside"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/shardlog"
	"github.com/holdfast-dev/holdfast/storage/shardlog/pglog"
)

// servers is the pair of servers that all tests of clusters share. It ends with the process.
var servers struct {
	once sync.Once
	pair *pgtest.Pair
	err  error
}

var schemas atomic.Int64

// town is a cluster in a schema of its own.
type town struct {
	t      *testing.T
	schema string
}

func newTown(t *testing.T) *town {
	t.Helper()
	bin := outside.Postgres(t)
	servers.once.Do(func() { servers.pair, servers.err = pgtest.Start(bin) })
	if servers.err != nil {
		t.Fatal(servers.err)
	}
	t.Setenv(dsnVariable, pgtest.DSN(servers.pair.Primary.Port))
	return &town{t, fmt.Sprint("town", schemas.Add(1))}
}

// run runs a verb of cluster, and returns its code and all that it printed.
func (w *town) run(args ...string) (code int, out string) {
	w.t.Helper()
	var b, errs bytes.Buffer
	all := append([]string{"cluster", "--schema", w.schema}, args...)
	code = Run(w.t.Context(), Program{}, all, strings.NewReader(""), &b, &errs)
	return code, b.String() + errs.String()
}

// wants runs a verb that must end with a code and print a text.
func (w *town) wants(code int, text string, args ...string) string {
	w.t.Helper()
	got, out := w.run(args...)
	if got != code || !strings.Contains(out, text) {
		w.t.Fatalf("cluster %s ended with %d and printed %q, want %d and %q", strings.Join(args, " "), got, out, code, text)
	}
	return out
}

// becomes runs a verb until it ends with a code and prints a text, because a node of a busy machine may be late with its
// heartbeats.
func (w *town) becomes(code int, text string, args ...string) string {
	w.t.Helper()
	for {
		if got, out := w.run(args...); got == code && strings.Contains(out, text) {
			return out
		}
	}
}

func (w *town) options() pglog.Options {
	return pglog.Options{DSN: os.Getenv(dsnVariable), Schema: w.schema, Timeout: 24 * time.Hour, Log: slog.New(slog.DiscardHandler)}
}

// log opens the log as a program does.
func (w *town) log() *pglog.Log {
	w.t.Helper()
	l, err := pglog.Open(w.t.Context(), w.options())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(l.Close)
	return l
}

// join starts a node, which must serve.
func (w *town) join(id string) *cluster.Node {
	w.t.Helper()
	return w.joinIn(id, filepath.Join(w.t.TempDir(), "node"))
}

func (w *town) joinIn(id, dir string) *cluster.Node {
	w.t.Helper()
	o := cluster.Options{Log: w.log(), ID: id, Addr: "127.0.0.1:1", Dir: dir, Logger: slog.New(slog.DiscardHandler),
		Dial: func(context.Context, string) error { return nil }}
	n, err := cluster.Join(w.t.Context(), o, carts)
	if err == nil {
		w.t.Cleanup(func() { _ = n.Drain(context.Background()) })
		_, err = n.Serving(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// plain is the directory of a store of one machine with one object.
func plain(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "plain")
	h, err := object.Open(object.Options{Dir: dir}, carts)
	if err == nil {
		_, err = put.Call(t.Context(), h, "alice", order{Key: "total", Value: "499"})
	}
	if err == nil {
		err = h.Shutdown(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The way of a store: into a cluster, through a node, and out again.
func TestClusterFromBeginToEnd(t *testing.T) {
	w := newTown(t)
	dir, out := plain(t), filepath.Join(t.TempDir(), "out")
	name := strings.Fields(w.wants(Fine, "CLUSTER", "init"))[2]
	w.wants(Fine, name, "init")
	w.wants(Fine, name, "status")
	w.wants(Fine, "the store is in the cluster", "import", dir)
	w.wants(Fine, "the store is in the cluster", "import", dir)
	w.wants(Refused, "moved", "import", dir, "--undo")
	if code := Run(t.Context(), Program{}, []string{"--dir", dir, "ls"}, strings.NewReader(""), io.Discard, io.Discard); code != Unopened {
		t.Errorf("ls of the directory that was imported ended with %d", code)
	}
	n := w.join("a\x1b[2Jb")
	for {
		_, err := put.Call(t.Context(), n, "bob", order{Key: "total", Value: "1"})
		if err == nil {
			break
		}
		if !errors.Is(err, object.ErrSuspended) { // for a moment, if a heartbeat was late
			t.Fatal(err)
		}
	}
	status := w.becomes(Fine, `"a\x1b[2Jb"`, "status")
	if !strings.Contains(status, "serves") || strings.Contains(status, "\x1b") {
		t.Errorf("status is %q", status)
	}
	var state clusterState
	if err := json.Unmarshal([]byte(w.becomes(Fine, "{", "status", "-o", "json")), &state); err != nil || state.Cluster != name || state.Owner != "a\x1b[2Jb" || len(state.Nodes) != 1 || len(state.Warnings) != 0 || len(state.Snapshots) != 1 {
		t.Errorf("status is %+v, %v", state, err)
	}
	w.wants(Refused, "no such node", "drain", "b")
	w.wants(Fine, `DRAINED`, "drain", "a\x1b[2Jb")
	<-n.Done()
	w.wants(Refused, "no such node", "drain", "a\x1b[2Jb")
	w.wants(Fine, "the store is in", "export", out)
	w.wants(Fine, "the store is in", "export", out)
	second := filepath.Join(t.TempDir(), "second")
	w.wants(Refused, "the log has ended", "export", second)
	w.wants(Found, "the log has ended", "status")
	w.wants(Refused, "no view of a log", "export", plain(t))
	w.wants(Fine, "the store is in", "export", second, "--again")
	var list bytes.Buffer
	if code := Run(t.Context(), Program{}, []string{"--dir", out, "ls", "cart"}, strings.NewReader(""), &list, io.Discard); code != Fine || !strings.Contains(list.String(), "alice") || !strings.Contains(list.String(), "bob") {
		t.Errorf("ls of the exported store ended with %d and printed %s", code, &list)
	}
}

// lose puts the log into a quarantine in which it lacks the last records, and writes them into a rescue file.
func (w *town) lose() (file string) {
	w.t.Helper()
	l := w.log()
	dir := filepath.Join(w.t.TempDir(), "view")
	rescued := filepath.Join(w.t.TempDir(), "rescue")
	name, err := l.Cluster(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	o := shardlog.Options{Log: l, Directory: l, RescueDir: rescued, Cluster: name, Owner: "a"}
	h, err := object.Open(object.Options{Storage: o.Storage(storage.Options{Dir: dir})}, carts)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range 3 {
		if _, err := put.Call(w.t.Context(), h, fmt.Sprint("cart", i), order{Key: hostile, Value: "1"}); err != nil {
			w.t.Fatal(err)
		}
	}
	ask := func(sql string) string {
		v, err := servers.pair.Primary.Ask(strings.ReplaceAll(sql, "S.", w.schema+"."))
		if err != nil {
			w.t.Fatal(err)
		}
		return v
	}
	// As after a fail-over to a server that lags behind.
	ask(`with p as (select at, chain, term from S.log order by at desc offset 1 limit 1), d as (delete from S.log using p where log.at > p.at)
		update S.shard set last = p.at, chain = p.chain, written = p.term from p returning 1`)
	if _, err := put.Call(w.t.Context(), h, "next", order{Key: "total"}); err == nil {
		w.t.Fatal("a commit behind the loss is acknowledged")
	}
	for file == "" {
		if found, _ := filepath.Glob(filepath.Join(rescued, "*.rescue")); len(found) > 0 {
			file = found[0]
		}
	}
	for ask(`select count(*) from S.shard where lost is not null`) != "1" {
	}
	_ = h.Shutdown(w.t.Context()) // it has failed
	return file
}

// A log that has lost its last record gets it back from the rescue file, once.
func TestClusterPutsRecordsBack(t *testing.T) {
	w := newTown(t)
	w.wants(Fine, "", "init")
	file := w.lose()
	status := w.wants(Found, "in quarantine", "status")
	if !strings.Contains(status, "cluster recover") {
		t.Errorf("status is %s", status)
	}
	w.wants(Usage, "give one of", "recover")
	w.wants(Usage, "give one of", "recover", "--accept-loss", "--append", file)
	w.wants(Usage, "no such file", "recover", "--append", file+".absent")
	damaged := filepath.Join(t.TempDir(), "damaged.rescue")
	b, err := os.ReadFile(file)
	if err == nil {
		b[len(b)/2] ^= 1
		err = os.WriteFile(damaged, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.wants(Usage, "no rescue file", "recover", "--append", damaged)
	other := newTown(t)
	other.wants(Fine, "", "init")
	other.wants(Refused, "nothing to recover", "recover", "--accept-loss")
	lost := other.wants(Refused, "of cluster", "recover", "--append", file)
	if !strings.Contains(lost, "RECORD") || !strings.Contains(lost, "cart/cart2") {
		t.Errorf("the list of lost records is %s", lost)
	}
	w.wants(Fine, "are back in the log", "recover", "--append", file)
	w.wants(Refused, "nothing to recover", "recover", "--append", file)
	w.wants(Refused, "nothing to recover", "recover", "--accept-loss")
	n := w.join("b")
	if h, _ := n.Active(); h.Store().Epoch() != 2 {
		t.Errorf("epoch %d", h.Store().Epoch())
	}
}

// A loss that is accepted ends the quarantine, and the next node gives out numbers 2^20 epochs ahead.
func TestClusterAcceptsALoss(t *testing.T) {
	w := newTown(t)
	w.wants(Fine, "", "init")
	file := w.lose()
	scratch := filepath.Join(t.TempDir(), "scratch")
	w.wants(Fine, "the loss is accepted", "recover", "--accept-loss", "--scratch", scratch)
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("left in the scratch directory: %v, %v", left, err)
	}
	w.wants(Refused, "nothing to recover", "recover", "--append", file)
	n := w.join("b")
	if h, _ := n.Active(); h.Store().Epoch() != 2+1<<20 {
		t.Errorf("epoch %d", h.Store().Epoch())
	}
}

// Mistakes are errors of one line that say the remedy, and no password is in them.
func TestClusterRefuses(t *testing.T) {
	w := newTown(t)
	w.wants(Unopened, "make it with Init", "status")
	w.wants(Unopened, "make it with Init", "drain", "a")
	w.wants(Fine, "", "init")
	w.wants(Usage, "--shard is -1", "status", "--shard", "-1")
	w.wants(Usage, "arg", "drain")
	w.wants(Unopened, "no such", "import", filepath.Join(t.TempDir(), "absent"))
	empty := t.TempDir()
	w.wants(Unopened, empty, "import", empty)
	out := w.wants(Unopened, "connection refused", "status", "--dsn", "postgres://u:secret@127.0.0.1:1/db")
	bad := w.wants(Unopened, "DSN", "status", "--dsn", "postgres://u:secret@127.0.0.1:port/db")
	if strings.Contains(out+bad, "secret") || strings.Count(strings.TrimSpace(out), "\n") > 0 {
		t.Errorf("the errors are %q and %q", out, bad)
	}
	if _, err := servers.pair.Primary.Ask("create role " + w.schema + " login"); err != nil {
		t.Fatal(err)
	}
	poor := fmt.Sprintf("host=127.0.0.1 port=%d user=%s dbname=postgres", servers.pair.Primary.Port, w.schema)
	w.wants(Unopened, "permission denied", "status", "--dsn", poor)
	w.wants(Unopened, "permission denied", "init", "--dsn", poor, "--schema", w.schema+"x")
	t.Setenv(dsnVariable, "")
	w.wants(Usage, "set "+dsnVariable, "status")
}

// A store goes into a fresh cluster alone, and not into two.
func TestClusterImportRefuses(t *testing.T) {
	w, other := newTown(t), newTown(t)
	w.wants(Fine, "", "init")
	other.wants(Fine, "", "init")
	first, second := plain(t), plain(t)
	w.wants(Fine, "", "import", first, "--undo")
	w.wants(Fine, "in the cluster", "import", first)
	w.wants(Refused, "has begun without this store", "import", second)
	other.wants(Refused, "has moved to cluster", "import", first)
	other.wants(Fine, "in the cluster", "import", second)
	view := filepath.Join(t.TempDir(), "node")
	if err := w.joinIn("a", view).Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	other.wants(Refused, "view", "import", filepath.Join(view, "view"))
}

// A verb that is interrupted says so.
func TestClusterInterrupted(t *testing.T) {
	w := newTown(t)
	w.wants(Fine, "", "init")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs bytes.Buffer
	if code := Run(ctx, Program{}, []string{"cluster", "--schema", w.schema, "status"}, strings.NewReader(""), io.Discard, &errs); code != Interrupted {
		t.Errorf("status ended with %d: %s", code, &errs)
	}
}
