package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// grove writes so many Go files and returns their directory.
func grove(t *testing.T, files int) string {
	t.Helper()
	root := t.TempDir()
	for n := range files {
		text := "package p\n" + strings.Repeat("// "+note+"\n", n%4) + strings.Repeat("\n", n*13%90)
		if err := os.WriteFile(filepath.Join(root, fmt.Sprintf("p%03d.go", n)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
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

// wantGrove checks a report of a grove.
func wantGrove(t *testing.T, files int, r report, code int, stderr string) {
	t.Helper()
	if code != 0 || r.Seen != files || r.Equal == nil || !*r.Equal {
		t.Fatalf("exit code %d, the report is %+v\n%s", code, r, stderr)
	}
}

// runProgram runs the whole program with -json, and returns its report.
func runProgram(t *testing.T, args ...string) (r report, code int, stderr string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var stdout, errs strings.Builder
	code = run(append(args, "-json"), &stdout, &errs)
	return reportOf(t, stdout.String()), code, errs.String()
}

// A run decides as a plain loop does. Nothing is left of it.
func TestProgram(t *testing.T) {
	r, code, stderr := runProgram(t, "-src", grove(t, 120), "-check", "-at", "50")
	wantGrove(t, 120, r, code, stderr)
	if r.At == nil || r.At.Seen != 50 {
		t.Errorf("as of file 50: %+v", r.At)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A store holds an agent for each tree and limit. One that has ended decides nothing anew, and
// files that have changed since are differences.
func TestStoreWithSeveralAgents(t *testing.T) {
	root, dir := grove(t, 20), filepath.Join(t.TempDir(), "store")
	for _, c := range []struct {
		limit       string
		files, from int
	}{{"9", 9, 0}, {"0", 20, 0}, {"9", 9, 9}} {
		r, code, stderr := runProgram(t, "-src", root, "-dir", dir, "-n", c.limit, "-check")
		if wantGrove(t, c.files, r, code, stderr); r.From != c.from {
			t.Errorf("-n %s: the report is %+v", c.limit, r)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "p003.go"), []byte("package other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	if code := run([]string{"-src", root, "-dir", dir, "-check"}, &stdout, &stderr); code != exitError || !strings.Contains(stderr.String(), "- event 4: ") || !strings.Contains(stdout.String(), "A plain loop decides otherwise.") {
		t.Errorf("exit code %d\n%s%s", code, stdout.String(), stderr.String())
	}
}

// A file that cannot be read is skipped.
func TestBrokenFile(t *testing.T) {
	root := grove(t, 3)
	queue, err := newSource(os.DirFS(root), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(root, "p001.go")); err != nil {
		t.Fatal(err)
	}
	if o := queue.observe(1); !o.Broken || o.Path != "p001.go" {
		t.Errorf("the observation is %+v", o)
	}
}

// Ctrl-C ends the program in order, and the same command goes on.
func TestInterrupted(t *testing.T) {
	root, dir := grove(t, 30), filepath.Join(t.TempDir(), "store")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stderr strings.Builder
	if _, err := review(ctx, settings{src: root, dir: dir}, &stderr); !errors.Is(err, errInterrupted) ||
		!strings.Contains(stderr.String(), "Stopped. To go on, run the same command with -dir "+dir) {
		t.Fatalf("interrupted: %v\n%s", err, stderr.String())
	}
	r, code, errs := runProgram(t, "-src", root, "-dir", dir, "-check")
	wantGrove(t, 30, r, code, errs)
}

// Mistakes are told in one line.
func TestMistakes(t *testing.T) {
	root := grove(t, 1)
	for want, args := range map[string][]string{
		"is no directory: name one with -src": {"-src", filepath.Join(root, "p000.go")},
		"the tree has no Go files":            {"-src", t.TempDir()},
		"there is no event 2 yet":             {"-src", root, "-at", "2"},
		"agent: ":                             {"-src", root, "-dir", filepath.Join(root, "p000.go")},
	} {
		if _, code, stderr := runProgram(t, args...); code != exitError || !strings.Contains(stderr, want) || strings.Count(stderr, "agent: ") != 1 {
			t.Errorf("%v: exit code %d\n%s", args, code, stderr)
		}
	}
}

func TestReportInSentences(t *testing.T) {
	yes := true
	r := report{state: state{Seen: 9, Read: 2, Skim: 3, Skip: 4}, From: 5, At: &state{Seen: 4, Read: 1, Budget: 70}, Equal: &yes}
	const want = "Of 9 files the agent would read 2, skim 3 and skip 4; this process decided about 4.\n" +
		"As of file 4 it would have read 1 and skimmed 0, with time for 70 lines more.\nA plain loop decides the same.\n"
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
