package cli

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/holdfast-dev/holdfast/admin/backup"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server"
	"github.com/holdfast-dev/holdfast/server/auth"
	"github.com/holdfast-dev/holdfast/storage"
)

// A backup by the verbs: made, listed as verified, removed with its content, and restored. Neither create
// changes a byte of the store, nor do ls, why and verify of the copy, which sleeps until go.
//
// Proves B1. Proves O26.
func TestBackupVerbs(t *testing.T) {
	dir := killedShop(t)
	repo, to := filepath.Join(t.TempDir(), "repo"), filepath.Join(t.TempDir(), "copy")
	before := sum(t, dir)
	made := run(t, Program{}, "--dir", dir, "backup", "create", "--to", repo)
	made.must(t, Fine, "SNAPSHOT", "VERIFIED")
	run(t, Program{}, "--dir", dir, "backup", "create", "--to", repo).must(t, Fine)
	if before != sum(t, dir) {
		t.Error("a backup has changed the store")
	}
	names := regexp.MustCompile(`(?m)^\d{8}T\S+`).FindAllString(run(t, Program{}, "backup", "ls", "--from", repo).out, -1)
	if len(names) != 2 {
		t.Fatalf("snapshots %q", names)
	}
	run(t, Program{}, "backup", "rm", "--from", repo, names[0]).must(t, Fine)
	run(t, Program{}, "backup", "rm", "--from", repo, names[0]).must(t, Usage, "no such snapshot")
	run(t, Program{}, "backup", "gc", "--from", repo, "--keep-last", "1", "--keep-days", "2").must(t, Fine, "of content removed")
	run(t, Program{}, "backup", "verify", "--from", repo).must(t, Fine, names[1])
	run(t, Program{}, "backup", "verify", "--from", repo, "nightly").must(t, Usage, "nightly")
	run(t, Program{}, "backup", "ls").must(t, Usage, "--from is missing")
	run(t, Program{}, "backup", "ls", "--from", dir).must(t, Unopened, "not a repository")

	run(t, Program{}, "--dir", dir, "restore", "--from", repo).must(t, Usage, "not empty")
	run(t, Program{}, "--dir", to, "restore", "--from", repo).must(t, Fine, names[1], "sleeps")
	linked := filepath.Join(t.TempDir(), "linked")
	run(t, Program{}, "--dir", linked, "restore", "--link", "--from", repo, names[1]).must(t, Fine, names[1], "sleeps")
	run(t, Program{}, "--dir", linked, "verify").must(t, Fine, "nothing found")
	copied := sum(t, to)
	run(t, Program{}, "--dir", to, "verify").must(t, Fine, "nothing found")
	run(t, Program{}, "--dir", to, "ls").must(t, Fine)
	run(t, Program{}, "--dir", to, "why").must(t, Found, "The store is a dormant copy")
	if copied != sum(t, to) {
		t.Error("a look has changed the copy")
	}
	run(t, Program{}, "--dir", to, "go").must(t, Fine, "awake")
	run(t, Program{}, "--dir", to, "go").must(t, Fine, "awake")
	if out := run(t, Program{}, "--dir", to, "why"); regexp.MustCompile("dormant").MatchString(out.out) {
		t.Errorf("after go: %s", out.out)
	}

	blobs, err := filepath.Glob(filepath.Join(repo, "blobs", "*"))
	if err != nil || len(blobs) == 0 {
		t.Fatal(blobs, err)
	}
	for _, blob := range blobs {
		if err := os.Truncate(blob, 1); err != nil {
			t.Fatal(err)
		}
	}
	run(t, Program{}, "backup", "verify", "--from", repo).must(t, Found, "damaged", "blobs")
	run(t, Program{}, "--dir", filepath.Join(t.TempDir(), "other"), "restore", "--from", repo, names[1]).must(t, Found, "damaged", "blobs")
}

// A server that answers makes the backup in its own repository, and the verb waits until it is verified. Proves V22.
func TestBackupOfServer(t *testing.T) {
	class, put := cartClass(object.ClassOptions{})
	host, err := object.Open(object.Options{Dir: filepath.Join(t.TempDir(), "data")}, server.Definitions(class)...)
	must(t, err)
	defer host.Shutdown(t.Context())
	_, err = put.Call(t.Context(), host, "alice", order{Key: "a"})
	must(t, err)
	repo := filepath.Join(t.TempDir(), "repo")
	serve := func(r *backup.Repository) string {
		srv, err := server.New(host, server.Config{Auth: auth.Insecure(), Backups: r})
		must(t, err)
		web := httptest.NewServer(srv)
		t.Cleanup(web.Close)
		return web.URL
	}
	r, err := backup.Open(repo, storage.Options{})
	must(t, err)
	at := serve(r)
	run(t, Program{}, "--addr", at, "backup", "create").must(t, Fine, "verified", "SNAPSHOT")
	run(t, Program{}, "backup", "ls", "--from", repo).must(t, Fine, host.Store().ID())
	run(t, Program{}, "--addr", at, "backup", "create", "--to", repo).must(t, Usage, "repository of its own")
	run(t, Program{}, "--addr", serve(nil), "backup", "create").must(t, Refused, "Config.Backups")
}
