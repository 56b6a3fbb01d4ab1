package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs/workflow"
	"github.com/holdfast-dev/holdfast/object"
)

// runProgram runs the whole program with -json, and returns its report.
func runProgram(t *testing.T, args ...string) (r report, code int, stderr string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var stdout, errs strings.Builder
	code = run(append(args, "-json"), &stdout, &errs)
	return reportOf(t, stdout.String()), code, errs.String()
}

// reportOf reads the standard output of the program: one line of JSON, or nothing.
func reportOf(t *testing.T, stdout string) (r report) {
	t.Helper()
	if stdout == "" {
		return r
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("standard output is %q, %v", stdout, err)
	}
	return r
}

// wantForest compares a report with the totals of a forest of nine packages.
func wantForest(t *testing.T, r report, code int, stderr string) {
	t.Helper()
	want := totals{
		Packages: 9, sums: sums{Documents: 9, Words: 54}, Terms: 9,
		Top: []count{{"and", 9}, {"grows", 9}, {"has", 9}, {"package", 9}, {"ash", 5}, {"elm", 5}, {"oak", 5}, {"birch", 2}, {"alder", 1}},
	}
	if code != 0 || !reflect.DeepEqual(r.totals, want) || r.Equal == nil || !*r.Equal {
		t.Fatalf("exit code %d, the report is %+v, want %+v\n%s", code, r, want, stderr)
	}
}

// A run counts the tree as a plain loop does. Nothing is left of it.
func TestProgram(t *testing.T) {
	r, code, stderr := runProgram(t, "-src", forest(t, 9), "-check")
	wantForest(t, r, code, stderr)
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A store holds a run for each tree and limit. A run that has ended is not begun anew.
func TestStoreWithSeveralRuns(t *testing.T) {
	root, dir := forest(t, 9), filepath.Join(t.TempDir(), "store")
	for _, c := range []struct {
		limit    string
		packages int
	}{{"4", 4}, {"0", 9}, {"4", 4}} {
		r, code, stderr := runProgram(t, "-src", root, "-dir", dir, "-n", c.limit, "-check")
		if code != 0 || r.Packages != c.packages || !*r.Equal {
			t.Errorf("-n %s: exit code %d, the report is %+v\n%s", c.limit, code, r, stderr)
		}
	}
}

// A tree that has changed since is not equal any more: -check tells each difference, and
// ends with an exit code of its own.
func TestDifferenceIsTold(t *testing.T) {
	root, dir := forest(t, 3), t.TempDir()
	args := []string{"-src", root, "-dir", dir}
	if r, code, stderr := runProgram(t, args...); code != 0 || r.Equal != nil {
		t.Fatalf("exit code %d, the report is %+v\n%s", code, r, stderr)
	}
	plant(t, root, "p3/p.go", "// Oak yew.\npackage p\n")
	r, code, stderr := runProgram(t, append(args, "-check")...)
	if code != exitError || r.Equal == nil || *r.Equal ||
		!strings.Contains(stderr, "- packages: 3, and in the plain loop 4\n") || !strings.Contains(stderr, "- term yew: 0, and in the plain loop 1\n") {
		t.Errorf("exit code %d, the report is %+v\n%s", code, r, stderr)
	}
	var stdout strings.Builder
	if code := run(append(args, "-check"), &stdout, io.Discard); code != exitError || !strings.Contains(stdout.String(), "A plain loop counts otherwise.") {
		t.Errorf("exit code %d: %s", code, stdout.String())
	}
}

// A run that has failed, because the tree had no package, goes on once there is one: its only
// step is tried again.
func TestFailedRunIsRetried(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	args := []string{"-src", root, "-dir", dir, "-check"}
	if _, code, stderr := runProgram(t, args...); code != exitError || !strings.Contains(stderr, "the tree has no Go files") {
		t.Fatalf("without Go files: exit code %d\n%s", code, stderr)
	}
	plant(t, root, "p/p.go", "// Oak.\npackage p\n")
	if r, code, stderr := runProgram(t, args...); code != 0 || r.Packages != 1 || r.Words != 1 {
		t.Fatalf("with one: exit code %d, the report is %+v\n%s", code, r, stderr)
	}
}

// badDisk is a tree whose files cannot be read.
type badDisk struct{ fs.FS }

func (badDisk) ReadFile(string) ([]byte, error) {
	return nil, object.Permanent(errors.New("bad sector"))
}

// A run with a child that has failed cannot go on, and the error says how to begin anew.
func TestFailedChild(t *testing.T) {
	root, dir := forest(t, 1), t.TempDir()
	p := newProgram(badDisk{os.DirFS(root)}, 2)
	host, err := object.Open(object.Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)}, p.definitions()...)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if _, err := p.count(ctx, host, runID(root, 0), 0, newMeter(io.Discard)); !errors.Is(err, workflow.ErrFailed) || !strings.Contains(err.Error(), "package p0: ") || !strings.Contains(err.Error(), "bad sector") {
		t.Errorf("with a bad disk: %v", err)
	}
	if err := host.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if _, code, stderr := runProgram(t, "-src", root, "-dir", dir); code != exitError || !strings.Contains(stderr, "an earlier run has failed: name another directory with -dir") {
		t.Errorf("later: exit code %d\n%s", code, stderr)
	}
}

// Ctrl-C ends the program in order, and the same command goes on.
func TestInterrupted(t *testing.T) {
	root, dir := forest(t, 9), filepath.Join(t.TempDir(), "store")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stderr strings.Builder
	if _, err := documents(ctx, settings{src: root, dir: dir}, &stderr); !errors.Is(err, errInterrupted) ||
		!strings.Contains(stderr.String(), "Stopped. To go on, run the same command with -dir "+dir) {
		t.Fatalf("interrupted: %v\n%s", err, stderr.String())
	}
	r, code, errs := runProgram(t, "-src", root, "-dir", dir, "-check")
	wantForest(t, r, code, errs)
}

// A directory that cannot be the store is told of.
func TestDirectoryThatIsNoStore(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "file", "")
	for _, path := range []string{dir, filepath.Join(dir, "file")} {
		if _, code, stderr := runProgram(t, "-src", forest(t, 1), "-dir", path); code != exitError || strings.Count(stderr, "documents: ") != 1 {
			t.Errorf("%s: exit code %d\n%s", path, code, stderr)
		}
	}
}

func TestReportInSentences(t *testing.T) {
	yes := true
	r := report{totals: totals{Packages: 2, sums: sums{Documents: 5, Broken: 1, Words: 9}, Terms: 3, Top: []count{{"oak", 6}, {"elm", 2}}}, Seconds: 1.25, Equal: &yes}
	const want = "2 packages have 5 documents, of which 1 do not parse.\nTheir doc comments have 9 words, and 3 different terms.\nMost frequent: oak 6 elm 2.\nA plain loop counts the same.\nTook 1.2 s.\n"
	var stdout, stderr strings.Builder
	if err := r.print(&stdout, &stderr, false); err != nil || stdout.String() != want || stderr.Len() > 0 {
		t.Errorf("the report is %q, %v", stdout.String(), err)
	}
	for n, more := range map[int]bool{differencesMax: false, differencesMax + 1: true} {
		stderr.Reset()
		r.differences = strings.Split(strings.Repeat("x", n), "")
		if err := r.print(io.Discard, &stderr, true); err != nil || strings.Contains(stderr.String(), "- and 1 more\n") != more {
			t.Errorf("%d differences: %q, %v", n, stderr.String(), err)
		}
	}
}

func TestMeter(t *testing.T) {
	var w strings.Builder
	m := newMeter(&w)
	m.show(look{}) // the packages are not known yet
	for range 2 {
		m.show(look{size: size{Packages: 9, Shards: 64}, read: 4, merged: 1, stuck: "why"})
	}
	m.end()
	if w.String() != "4 of 9 packages are read, 1 of 64 shards are merged; stuck: why\n" {
		t.Errorf("the progress is %q", w.String())
	}
}
