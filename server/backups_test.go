package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-dev/holdfast/admin/backup"
	"github.com/holdfast-dev/holdfast/internal/testing/fulldisk"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/seam"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
	"github.com/holdfast-dev/holdfast/storage/pebblestore"
)

// vault is a server of a host with a store in files, and its repository.
type vault struct {
	*fixture
	options storage.Options // of the store
	repo    *backup.Repository
}

// filesInMemory are options of a store in files of memory.
func filesInMemory() storage.Options {
	return storage.Options{Shards: 4, MinFreeBytes: -1, Pebble: pebblestore.Options{FS: fulldisk.New(), MemTableBytes: 64 << 10, CacheBytes: 1 << 20}}
}

// openVault opens the store "store" and names the repository "repo", both below dir in the file system of o. The clock of the
// repository is clock, unless that is nil.
func openVault(t *testing.T, o storage.Options, dir string, clock seam.Clock) *vault {
	t.Helper()
	v := &vault{options: o}
	v.options.Dir = filepath.Join(dir, "store")
	o.Seams.Clock = clock
	var err error
	if v.repo, err = backup.Open(filepath.Join(dir, "repo"), o); err != nil {
		t.Fatal(err)
	}
	class := cartClass(newGates())
	v.fixture = startOn(t, object.Options{Storage: v.options}, func(c *Config) {
		exposeCarts(class)(c)
		c.Backups = v.repo
	}, class)
	return v
}

// list is the answer of GET /v1/backups.
func (v *vault) list(query string) backupPage {
	v.t.Helper()
	return into[backupPage](v.t, v.ask("admin", "GET", "/v1/backups"+query, ""))
}

// begin begins a backup.
func (v *vault) begin() (run backupRun) {
	v.t.Helper()
	a := v.ask("admin", "POST", "/v1/backups", "")
	if a.status != 202 {
		v.t.Fatalf("V22: %d %s", a.status, a.body)
	}
	a.status = 200
	return into[backupRun](v.t, a)
}

// ended waits until no backup is under way, and returns the last.
func (v *vault) ended() backupRun {
	v.t.Helper()
	if err := v.srv.backups.wait(v.t.Context()); err != nil {
		v.t.Fatal(err)
	}
	running, last := v.srv.backups.runs()
	if running != nil || last == nil {
		v.t.Fatalf("V22: no backup has ended: %+v, %+v", running, last)
	}
	return *last
}

// another is another server of the same host.
func (v *vault) another() *vault {
	v.t.Helper()
	f := *v.fixture
	var err error
	if f.srv, err = New(v.host, v.srv.config); err != nil {
		v.t.Fatal(err)
	}
	f.web = newWeb(v.t, f.srv)
	return &vault{&f, v.options, v.repo}
}

// audited are the entries of backups in the audit.
func (v *vault) audited() []string {
	v.t.Helper()
	return briefs(into[auditPage](v.t, v.ask("admin", "GET", "/v1/audit?verb=backup", "")).Entries)
}

// wantBackup compares the metric of the newest verified backup with a time.
func (v *vault) wantBackup(at time.Time) {
	v.t.Helper()
	value := 0.0
	if !at.IsZero() {
		value = float64(at.UnixMilli()) / 1000
	}
	v.wantGauge("holdfast_backup_last_verified_timestamp_seconds", value)
}

// wantGauge compares the value of a metric without labels.
func (v *vault) wantGauge(name string, value float64) {
	v.t.Helper()
	v.wantSamples(name, name+" "+strconv.FormatFloat(value, 'g', -1, 64))
}

// Proves V22: a backup over HTTP runs without its client, is told as verified with its size and time, in the list, the
// metrics, the health and the audit, holds each call that was answered before, and is known after a restart. Snapshots
// that are not verified, or of another store, do not count.
func TestBackupOverHTTP(t *testing.T) {
	v := openVault(t, filesInMemory(), "data", nil)
	v.call("a", "add", "41")
	if page := v.list(""); len(page.Snapshots) != 0 || page.Snapshots == nil || page.Damaged != "" || page.Running != nil || page.Last != nil {
		t.Errorf("V22: before the first: %+v", page)
	}
	v.wantBackup(time.Time{})
	v.wantSamples("holdfast_backup_last_seconds")
	bare, err := v.repo.Create(t.Context(), v.host.Store())
	if err != nil {
		t.Fatal(err)
	}
	other := v.options
	other.Dir = "data/other"
	store, err := storage.Open(other)
	if err == nil {
		var s backup.Snapshot
		if s, err = v.repo.Create(t.Context(), store); err == nil {
			_, err = v.repo.Verify(t.Context(), s.Name, nil)
		}
		err = errors.Join(err, store.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	page := v.list("")
	if len(page.Snapshots) != 2 || !page.Snapshots[0].Other || page.Snapshots[0].Unverified != "" || page.Snapshots[1].Name != bare.Name || page.Snapshots[1].Other || !strings.Contains(page.Snapshots[1].Unverified, "never verified") || !page.Newest.IsZero() {
		t.Errorf("V22: of another store, and not verified: %+v", page)
	}
	v.wantBackup(time.Time{})

	begun := v.begin()
	if begun.State != copying || begun.Who != "admin" || begun.ID == "" || begun.Began.IsZero() {
		t.Errorf("V22: begun: %+v", begun)
	}
	run := v.ended()
	if run.State != verified || run.ID != begun.ID || run.Error != "" || run.Ended.Before(run.Began) || run.Seconds <= 0 {
		t.Fatalf("V22: ended: %+v", run)
	}
	page = v.list("?limit=1")
	newest := page.Snapshots[0]
	if page.Running != nil || page.Last == nil || page.Last.ID != run.ID || page.Last.State != verified {
		t.Errorf("V22: the list after the end: %+v", page)
	}
	if newest.Name != run.Snapshot || newest.Bytes != run.Bytes || newest.Bytes == 0 || newest.Verified.IsZero() || newest.Unverified != "" || newest.Other || !page.Newest.Equal(newest.Begun) || page.Next == "" {
		t.Errorf("V22: the newest: %+v of %+v", newest, page)
	}
	if rest := v.list("?after=" + page.Next); len(rest.Snapshots) != 2 || rest.Snapshots[1].Name != bare.Name || rest.Next != "" {
		t.Errorf("V22: the rest: %+v", rest)
	}
	v.wantBackup(newest.Begun)
	v.wantGauge("holdfast_backup_last_bytes", float64(newest.Bytes))
	v.wantGauge("holdfast_backup_last_seconds", run.Seconds)
	if h := into[health](t, v.ask("viewer", "GET", "/v1/health", "")); !h.LastBackup.Equal(newest.Begun) {
		t.Errorf("V22: health: %+v", h)
	}
	if got := v.audited(); !slices.Equal(got, []string{"admin backup / done"}) {
		t.Errorf("V20: %q", got)
	}

	if _, err := v.repo.Restore(t.Context(), newest.Name, "data/copy"); err != nil {
		t.Fatal(err)
	}
	o := v.options
	o.Dir = "data/copy"
	class := cartClass(newGates())
	restored := startOn(t, object.Options{Storage: o}, exposeCarts(class), class)
	if a := restored.call("a", "get", ""); a.body != "41" {
		t.Errorf("B2: the copy has %s", a.body)
	}

	if err := v.host.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := openVault(t, filesOf(v.options), "data", nil)
	again.wantBackup(newest.Begun)
	again.wantSamples("holdfast_backup_last_seconds")
	if page := again.list(""); page.Last != nil || len(page.Snapshots) != 3 || !page.Newest.Equal(newest.Begun) {
		t.Errorf("V22: after a restart: %+v", page)
	}
}

// filesOf are the options of another store in the same file system.
func filesOf(o storage.Options) storage.Options {
	o.Dir = ""
	return o
}

// slowClock is a clock that tells when it is asked for the time, and answers when it may.
type slowClock struct {
	seam.Clock
	asked chan struct{} // with room for one
	goOn  chan struct{}
}

func newSlowClock() *slowClock {
	return &slowClock{seam.Seams{}.WithDefaults().Clock, make(chan struct{}, 1), make(chan struct{})}
}

func (h *slowClock) Now() time.Time {
	select {
	case h.asked <- struct{}{}:
	default:
	}
	<-h.goOn
	return h.Clock.Now()
}

// Proves V22: one backup runs at a time, and a second is refused with the id of the first. Calls are answered meanwhile.
func TestOneBackupAtATime(t *testing.T) {
	clock := newSlowClock()
	v := openVault(t, filesInMemory(), "data", clock)
	first := v.begin()
	<-clock.asked
	a := v.ask("admin", "POST", "/v1/backups", "")
	if p := a.problem(t); a.status != 409 || p.Type != "backup-running" || p.Outcome != none || p.Retryable || !strings.Contains(p.Detail, first.ID) || !strings.Contains(p.Detail, "admin") {
		t.Errorf("V22: a second: %+v", p)
	}
	if page := v.list(""); page.Running == nil || page.Running.ID != first.ID || page.Running.State != copying || page.Last != nil {
		t.Errorf("V22: under way: %+v", page)
	}
	if a := v.call("a", "add", "1"); a.body != "1" {
		t.Errorf("B3: a call meanwhile: %d %s", a.status, a.body)
	}
	if got := v.audited(); !slices.Equal(got, []string{"admin backup / unknown", "admin backup / none: backup-running"}) {
		t.Errorf("V20: %q", got)
	}
	close(clock.goOn)
	if run := v.ended(); run.State != verified || run.ID != first.ID {
		t.Errorf("V22: the first: %+v", run)
	}
	v.begin()
	if run := v.ended(); run.State != verified || run.ID == first.ID {
		t.Errorf("V22: the next: %+v", run)
	}
	if page := v.list(""); len(page.Snapshots) != 2 {
		t.Errorf("V22: %+v", page)
	}
	if got := v.audited(); !slices.Equal(got, []string{"admin backup / done", "admin backup / none: backup-running", "admin backup / done"}) {
		t.Errorf("V20: %q", got)
	}
}

// Proves V22: the error of a backup is shown in the list, the log and the audit, and the host does not see it. A snapshot
// that cannot be verified is listed with the reason, and the last good one counts on.
func TestBackupThatFails(t *testing.T) {
	dir := t.TempDir()
	o := filesInMemory()
	o.Pebble.FS = nil
	v := openVault(t, o, dir, nil)
	v.call("a", "add", "1")
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "repo"), 0o700), os.WriteFile(filepath.Join(dir, "repo", "photo"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	v.begin()
	run := v.ended()
	if run.State != failed || !strings.Contains(run.Error, "not a repository") || run.Snapshot != "" {
		t.Errorf("V22: into a foreign directory: %+v", run)
	}
	if err := os.Remove(filepath.Join(dir, "repo", "photo")); err != nil {
		t.Fatal(err)
	}
	v.begin()
	good := v.ended()
	if good.State != verified {
		t.Fatalf("V22: %+v", good)
	}
	format, err := os.ReadFile(filepath.Join(dir, "store", storage.FormatFile))
	if err != nil {
		t.Fatal(err)
	}
	blobs, err := filepath.Glob(filepath.Join(dir, "repo", "blobs", "*"))
	if err != nil {
		t.Fatal(err)
	}
	broken := "" // the content of a file that each snapshot has
	for _, blob := range blobs {
		if b, err := os.ReadFile(blob); err == nil && string(b) == string(format) {
			broken = blob
		}
	}
	if err := os.WriteFile(broken, []byte(strings.ToUpper(string(format))), 0o600); err != nil {
		t.Fatal(err)
	}
	v.begin()
	run = v.ended()
	if run.State != failed || !strings.Contains(run.Error, filepath.Base(broken)) || run.Snapshot == "" || run.Snapshot == good.Snapshot {
		t.Errorf("V22: over a damaged blob: %+v", run)
	}
	page := v.list("")
	if len(page.Snapshots) != 2 || page.Snapshots[0].Unverified != run.Error || page.Snapshots[1].Name != good.Snapshot || !page.Newest.Equal(page.Snapshots[1].Begun) {
		t.Errorf("V22: %+v", page)
	}
	v.wantBackup(page.Snapshots[1].Begun)
	if got := v.audited(); !slices.Equal(got, []string{"admin backup / none: backup-failed", "admin backup / done", "admin backup / unknown: backup-failed"}) {
		t.Errorf("V20: %q", got)
	}
	if log := v.log.String(); strings.Count(log, "server: backup failed") != 2 || !strings.Contains(log, run.ID) || !strings.Contains(log, filepath.Base(broken)) {
		t.Errorf("V22: the log has %s", log)
	}
	if a := v.call("a", "add", "1"); a.body != "2" || v.host.Err() != nil {
		t.Errorf("B3: a call after it: %d %s, %v", a.status, a.body, v.host.Err())
	}
	if err := os.WriteFile(filepath.Join(dir, "repo", "snapshots", "torn.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if page := v.list(""); len(page.Snapshots) != 2 || !strings.Contains(page.Damaged, "torn.json") {
		t.Errorf("V22: with a file that is torn: %+v", page)
	}
}

// Proves V22: the end of Serve ends a backup, and then the host, with the outcome in the audit. None begins after it.
func TestServeEndsABackup(t *testing.T) {
	clock := newSlowClock()
	v := openVault(t, filesInMemory(), "data", clock)
	over := make(chan error, 1)
	v.srv.config.KeepHost = true
	first := v.begin()
	<-clock.asked
	ctx, end := context.WithCancel(t.Context())
	go func() { over <- v.srv.Serve(ctx, "127.0.0.1:0") }()
	end()
	<-v.srv.serving.ending.Done()
	if a := v.ask("admin", "POST", "/v1/backups", ""); a.status != 503 || a.problem(t).Outcome != none {
		t.Errorf("V22: another: %d %s", a.status, a.body)
	}
	close(clock.goOn)
	if err := <-over; err != nil {
		t.Errorf("V22: Serve returned %v", err)
	}
	if run := v.ended(); run.ID != first.ID || run.State != failed || !strings.Contains(run.Error, "the server is ending") {
		t.Errorf("V22: %+v", run)
	}
	v = v.another()
	if got := v.audited(); !slices.Equal(got, []string{"admin backup / none: backup-failed"}) {
		t.Errorf("V20: %q", got)
	}
	if page := v.list(""); len(page.Snapshots) != 0 {
		t.Errorf("V22: it has left %+v", page.Snapshots)
	}
}

// A backup that does not end is left behind at the time of the requests, and Serve says so.
func TestServeLeavesABackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := newSlowClock()
		v := openVault(t, filesInMemory(), "data", clock)
		v.srv.config.KeepHost = true
		serveInMemory(v.srv)
		v.begin()
		<-clock.asked
		ctx, end := context.WithCancel(t.Context())
		end()
		began := time.Now()
		err := v.srv.Serve(ctx, "127.0.0.1:0")
		if took := time.Since(began); took != defaultShutdownTimeout {
			t.Errorf("V22: Serve returned after %v", took)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "a backup is still under way") || strings.Contains(err.Error(), "\n") {
			t.Errorf("V22: Serve returned %v", err)
		}
		close(clock.goOn)
		v.ended()
	})
}

// Proves V22: a repository on a disk that hangs holds up the list of backups until the end of the request, and the metrics
// for a moment; one goroutine waits for it.
func TestRepositoryThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := openVault(t, filesInMemory(), "data", nil)
		v.srv.backups.reading <- struct{}{} // as a goroutine that reads does
		began := time.Now()
		if a := v.ask("admin", "GET", "/v1/backups", "", "Holdfast-Timeout", "1ms"); a.status != 504 || a.problem(t).Outcome != none {
			t.Errorf("V22: the list: %d %s", a.status, a.body)
		}
		if took := time.Since(began); took != time.Millisecond {
			t.Errorf("V22: the list was answered after %v", took)
		}
		began = time.Now()
		v.wantSamples("holdfast_backup_last_verified_timestamp_seconds")
		if took := time.Since(began); took != v.srv.limits.lookTime {
			t.Errorf("V22: the metrics were answered after %v", took)
		}
		v.wantSamples("holdfast_up", "holdfast_up 1")
		if h := into[health](t, v.ask("viewer", "GET", "/v1/health", "")); !h.OK || !h.LastBackup.IsZero() {
			t.Errorf("V22: health: %+v", h)
		}
		<-v.srv.backups.reading
		v.wantBackup(time.Time{})
		v.begin()
		v.ended()
		newest := v.list("").Newest
		v.srv.backups.reading <- struct{}{}
		v.wantBackup(newest) // the look after the backup is young
		<-v.srv.backups.reading
	})
}

// A server without a repository makes no backups, and one over a store without files is refused.
func TestNoBackups(t *testing.T) {
	f := start(t, nil)
	for _, method := range []string{"GET", "POST"} {
		if a := f.ask("admin", method, "/v1/backups", ""); a.status != 404 || a.problem(t).Type != "no-backups" {
			t.Errorf("%s: %d %s", method, a.status, a.body)
		}
	}
	f.wantSamples("holdfast_backup")
	if body := f.ask("admin", "GET", "/ui/overview", "").body; strings.Contains(body, "Backups") || strings.Contains(body, "No backup") {
		t.Error("a page tells of backups")
	}
	repo, err := backup.Open("repo", filesInMemory())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(f.host, Config{Auth: everyone, Backups: repo}); err == nil || !strings.Contains(err.Error(), "Config.Backups") {
		t.Errorf("over memory: %v", err)
	}
}

// Proves V13, V22: the page of backups has a button for an admin, tells how far a backup is and how it has ended, and the
// first page tells of a store without one.
func TestPageOfBackups(t *testing.T) {
	clock := newSlowClock()
	v := openVault(t, filesInMemory(), "data", clock)
	v.srv.config.Auth = people{"admin": {Role: auth.Admin}, "operator": {Role: auth.Operator}, "acme": {Role: auth.Admin, Prefix: "acme/"}}
	v.sees("admin", "/ui/overview", []string{"No backup of the store is verified.", "Backups"}, nil)
	if body := v.sees("operator", "/ui/overview", []string{"No backup of the store is verified."}, nil); strings.Contains(body, `href="backups"`) {
		t.Error("V13: an operator has a link to the backups")
	}
	for who, want := range map[string]int{"operator": 403, "acme": 404} {
		for method, page := range map[string]string{"GET": "/ui/backups", "POST": "/ui/backup"} {
			if a := v.ask(who, method, page, ""); a.status != want {
				t.Errorf("V13: %s %s of %s: %d", method, page, who, a.status)
			}
		}
	}
	v.sees("admin", "/ui/backups", []string{"Back up now", "No backup of this store is verified.", "There is none here."}, nil)
	a := v.ask("admin", "POST", "/ui/backup", "")
	if a.status != 303 || a.header.Get("Location") != "backups" {
		t.Fatalf("V22: the form: %d %s", a.status, a.body)
	}
	<-clock.asked
	v.sees("admin", "/ui/backups", []string{"A backup is under way", "copying"}, []string{"Back up now"})
	if a := v.ask("admin", "GET", "/ui/backups", ""); a.header.Get("Refresh") != "1" {
		t.Error("V22: the page does not ask again")
	}
	if a := v.ask("admin", "POST", "/ui/backup", ""); a.status != 409 || pageProblem(t, a) != "backup-running" {
		t.Errorf("V22: a second form: %d", a.status)
	}
	close(clock.goOn)
	run := v.ended()
	v.sees("admin", "/ui/backups", []string{"Back up now", run.Snapshot, "verified", "and is verified."}, []string{"under way", "No backup"})
	if a := v.ask("admin", "GET", "/ui/backups", ""); a.header.Get("Refresh") != "" {
		t.Error("V22: the page asks again for ever")
	}
	v.sees("admin", "/ui/overview", nil, []string{"No backup", "newest verified backup"})
	newest := *v.srv.backups.seen.Load()
	newest.list = slices.Clone(newest.list)
	newest.list[0].Begun = newest.list[0].Begun.Add(-backupAge - time.Minute)
	v.srv.backups.seen.Store(&newest)
	v.sees("admin", "/ui/overview", []string{"The newest verified backup of the store was begun"}, nil)
}
