package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/storage"
)

// tree makes n files in several packages and returns their totals.
func tree(t *testing.T, dir string, n int) sums {
	t.Helper()
	var all sums
	for i := range n {
		text := fmt.Sprintf("package p%d\n\nimport \"fmt\"\n%s", i, strings.Repeat("// more\n", i%7))
		write(t, dir, fmt.Sprintf("p%d/sub%d/f%d.go", i%5, i%3, i), text)
		all.plus(sums{Files: 1, Bytes: int64(len(text)), Lines: int64(strings.Count(text, "\n"))})
	}
	return all
}

// outcome is the end of one run of the program.
type outcome struct {
	report
	code           int
	stdout, stderr string
}

func outcomeOf(t *testing.T, code int, stdout, stderr string) outcome {
	t.Helper()
	o := outcome{code: code, stdout: stdout, stderr: stderr}
	if code == 0 {
		if err := json.Unmarshal([]byte(stdout), &o.report); err != nil || strings.Count(stdout, "\n") != 1 {
			t.Fatalf("with -json, stdout is not one line of JSON: %v\n%s", err, stdout)
		}
	}
	wantNarrow(t, stderr)
	return o
}

// ingestOnce runs the program in this process.
func ingestOnce(t *testing.T, args ...string) outcome {
	t.Helper()
	var stdout, stderr strings.Builder
	code := run(append(args, "-json"), &stdout, &stderr)
	return outcomeOf(t, code, stdout.String(), stderr.String())
}

// wantSums fails unless a run ended well with the given totals.
func wantSums(t *testing.T, o outcome, want sums) {
	t.Helper()
	if o.code != 0 || o.sums != want {
		t.Fatalf("exit code %d, totals %+v, want %+v\n%s%s", o.code, o.sums, want, o.stdout, o.stderr)
	}
}

func TestRunsToTheEndAndFollowsChanges(t *testing.T) {
	src, data := t.TempDir(), filepath.Join(t.TempDir(), "store")
	want := tree(t, src, 60)
	first := ingestOnce(t, "-src", src, "-data", data)
	wantSums(t, first, want)
	if first.Packages != 5 || first.Imported != 1 || first.Executions != 60 || first.Dead+int(first.Recovered) != 0 {
		t.Errorf("the report is %+v", first.report)
	}

	again := ingestOnce(t, "-src", src, "-data", data)
	wantSums(t, again, want)
	if again.Executions != 60 || !strings.Contains(again.stderr, "Nothing has changed") {
		t.Errorf("on a finished store: %d executions, %s", again.Executions, again.stderr)
	}

	// One file shrinks, one comes, and one goes.
	write(t, src, "p0/sub0/f0.go", "package p0\n")
	write(t, src, "p9/new.go", "package p9\n\nimport \"os\"\n")
	if err := os.Remove(filepath.Join(src, "p1/sub1/f1.go")); err != nil {
		t.Fatal(err)
	}
	want.plus(sums{Bytes: 11 - 25, Lines: 1 - 3})
	want.plus(sums{Files: 1, Bytes: 24, Lines: 3})
	want.plus(sums{Files: -1, Bytes: -33, Lines: -4})
	changed := ingestOnce(t, "-src", src, "-data", data)
	wantSums(t, changed, want)
	if changed.Executions != 63 || changed.Packages != 6 || changed.Imported != 2 {
		t.Errorf("after changes the report is %+v", changed.report)
	}

	if !strings.Contains(changed.stderr, "58 of 61 files are indexed already") {
		t.Errorf("after changes it says\n%s", changed.stderr)
	}

	// The file that is gone is counted no more.
	later := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(filepath.Join(src, "p9/new.go"), later, later); err != nil {
		t.Fatal(err)
	}
	touched := ingestOnce(t, "-src", src, "-data", data)
	wantSums(t, touched, want)
	if touched.Executions != 64 || !strings.Contains(touched.stderr, "59 of 60 files are indexed already") ||
		!strings.Contains(touched.stderr, "Indexed 60 of 60 files.") {
		t.Errorf("after a touch %d executions\n%s", touched.Executions, touched.stderr)
	}

	fresh := ingestOnce(t, "-src", src, "-data", data, "-fresh")
	wantSums(t, fresh, want)
	if fresh.Executions != 60 || fresh.Openings != 1 {
		t.Errorf("with -fresh the report is %+v", fresh.report)
	}
}

func TestAnEmptySourceHasNothing(t *testing.T) {
	data := filepath.Join(t.TempDir(), "store")
	src := t.TempDir()
	wantSums(t, ingestOnce(t, "-src", src, "-data", data), sums{})
	wantSums(t, ingestOnce(t, "-src", src, "-data", data), sums{})
}

// A file that stays unreadable is a dead letter, is not counted, and is tried
// again when it can be read.
func TestUnreadableFileIsADeadLetter(t *testing.T) {
	src, data := t.TempDir(), filepath.Join(t.TempDir(), "store")
	want := tree(t, src, 10)
	var mu sync.Mutex
	reads := 0
	broken := func(path string) (*measure, stamp, error) {
		if !strings.HasSuffix(path, "f3.go") {
			return measureFile(path)
		}
		mu.Lock()
		defer mu.Unlock()
		reads++
		return nil, stamp{}, &fs.PathError{Op: "read", Path: path, Err: errors.New("input/output error")}
	}
	r := travel(t, src, data, broken)
	if r.Files != 9 || r.Dead != 1 || reads != readAttempts || r.letters[0].path != "p3/sub0/f3.go" ||
		!strings.Contains(r.letters[0].why, "input/output error") {
		t.Errorf("after %d reads the report is %+v, %+v", reads, r, r.letters)
	}
	if r = travel(t, src, data, measureFile); r.sums != want || r.Dead != 0 {
		t.Errorf("when it can be read the report is %+v", r)
	}
}

// travel is ingest with another way to read files.
func travel(t *testing.T, src, data string, measure func(string) (*measure, stamp, error)) report {
	t.Helper()
	ctx := context.Background()
	from, err := openSource(src)
	if err != nil {
		t.Fatal(err)
	}
	p := newProgram(from, 4, func(err error) { t.Error(err) })
	p.measure = measure
	host, err := object.Open(object.Options{Dir: data, Logger: slog.New(slog.DiscardHandler)}, p.definitions()...)
	if err != nil {
		t.Fatal(err)
	}
	j := &journey{p: p, host: host, meter: newMeter(new(strings.Builder))}
	r, err := j.run(ctx)
	if err := errors.Join(err, host.Shutdown(ctx)); err != nil {
		t.Fatal(err)
	}
	return r
}

// Each bad input gives one line with the remedy, exit code 1, and leaves the store as
// it is.
func TestBadInput(t *testing.T) {
	src, dir := t.TempDir(), t.TempDir()
	want := tree(t, src, 3)
	good := filepath.Join(dir, "good")
	wantSums(t, ingestOnce(t, "-src", src, "-data", good), want)
	write(t, dir, "file", "")
	write(t, dir, "other/letter.txt", "")
	write(t, dir, "newer/HOLDFAST", "holdfast store\nformat 999\n")
	held, err := storage.Open(storage.Options{Dir: filepath.Join(dir, "held")})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	for _, c := range []struct{ src, data, want string }{
		{filepath.Join(src, "absent"), good, "does not exist: name a directory with -src"},
		{filepath.Join(dir, "file"), good, "is a file: name a directory with -src"},
		{src, filepath.Join(dir, "file"), "name another directory with -data"},
		{src, filepath.Join(dir, "other"), "name an empty directory"},
		{src, filepath.Join(dir, "newer"), "has format version 999"},
		{src, filepath.Join(dir, "held"), "stop it, or use another directory"},
		{dir, good, "begin anew with -fresh"},
	} {
		o := ingestOnce(t, "-src", c.src, "-data", c.data)
		line := sentences(o.stderr[strings.Index(o.stderr, "ingest: "):])
		if o.code != exitError || o.stdout != "" || len(line) != 1 || !strings.Contains(line[0], c.want) {
			t.Errorf("-src %s -data %s: exit code %d, %q", c.src, c.data, o.code, o.stderr)
		}
	}
	wantSums(t, ingestOnce(t, "-src", src, "-data", good), want)
}

// scale notes the progress that a run shows, and calls beyond once more than some files
// are indexed.
type scale struct {
	lines
	shown  [][2]uint64
	some   uint64
	beyond func()
}

func (s *scale) show(done, total uint64) {
	s.shown = append(s.shown, [2]uint64{done, total})
	if done > s.some {
		s.beyond()
	}
}

// An interrupted run is continued from its stored part: the progress begins there,
// never goes back, and ends at the end.
func TestProgressBeginsWithWhatIsKept(t *testing.T) {
	src, data := t.TempDir(), filepath.Join(t.TempDir(), "store")
	want := tree(t, src, 60)
	from, err := openSource(src)
	if err != nil {
		t.Fatal(err)
	}
	uncut := make(chan struct{})
	life := func(ctx context.Context, s *scale) (report, string) {
		var said strings.Builder
		s.w = &said
		p := newProgram(from, 1, func(err error) { t.Error(err) })
		reads := 0
		p.measure = func(path string) (*measure, stamp, error) {
			if reads++; reads > 20 { // the first life is cut off here
				select {
				case <-ctx.Done():
					return nil, stamp{}, ctx.Err()
				case <-uncut:
				}
			}
			return measureFile(path)
		}
		host, err := object.Open(object.Options{Dir: data, Logger: slog.New(slog.DiscardHandler)}, p.definitions()...)
		if err != nil {
			t.Fatal(err)
		}
		j := &journey{p: p, host: host, meter: s}
		r, err := j.run(ctx)
		if err = errors.Join(err, host.Shutdown(context.Background())); err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		return r, said.String()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first := &scale{some: 9, beyond: cancel}
	life(ctx, first)
	reached := first.shown[len(first.shown)-1]
	if first.shown[0] != [2]uint64{0, 60} || reached[0] <= 9 || reached[0] == 60 {
		t.Fatalf("the first life shows %v", first.shown)
	}
	close(uncut)
	second := &scale{beyond: func() {}}
	r, said := life(context.Background(), second)
	kept, last := second.shown[0], second.shown[len(second.shown)-1]
	if kept[0] < reached[0] || kept[0] == 60 || kept[1] != 60 || last != [2]uint64{60, 60} || r.sums != want {
		t.Errorf("after %v the second life shows %v", reached, second.shown)
	}
	if !slices.IsSortedFunc(second.shown, func(a, b [2]uint64) int { return int(a[0]) - int(b[0]) }) {
		t.Errorf("the progress goes back: %v", second.shown)
	}
	if wanted := fmt.Sprintf("Going on from an earlier run: %d of 60 files are indexed already.", kept[0]); !strings.Contains(strings.Join(sentences(said), ""), wanted) {
		t.Errorf("it says %q, want %q", said, wanted)
	}
}

// Without -json the tables and totals are on stdout, with separators, and the rest
// on stderr.
func TestTables(t *testing.T) {
	src := t.TempDir()
	write(t, src, "p/a.go", "package p\n"+strings.Repeat("// more\n", 2000))
	write(t, src, strings.Repeat("long", 40)+"/a.go", "package p\n")
	var stdout, stderr strings.Builder
	if code := run([]string{"-src", src, "-data", filepath.Join(t.TempDir(), "store")}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr.String())
	}
	wantNarrow(t, stdout.String()+stderr.String())
	for _, want := range []string{"16,010  p\n", "longlong…\n", "Totals: 2 files, 2,002 lines, 16,020 bytes in 2 packages"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("stdout has no %q:\n%s", want, stdout.String())
		}
	}
	if !strings.Contains(stderr.String(), "Source: ") {
		t.Errorf("stderr is\n%s", stderr.String())
	}
}

// full is a standard output that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// A result that cannot be printed is an error, and the store is finished.
func TestResultThatCannotBePrinted(t *testing.T) {
	src, data := t.TempDir(), filepath.Join(t.TempDir(), "store")
	want := tree(t, src, 3)
	var stderr strings.Builder
	code := run([]string{"-src", src, "-data", data}, full{}, &stderr)
	const told = "cannot print the result: no space left on device: all is indexed, and the same command prints it"
	if all := strings.Join(sentences(stderr.String()), ""); code != exitError || !strings.Contains(all, told) {
		t.Errorf("exit code %d, %s", code, stderr.String())
	}
	wantSums(t, ingestOnce(t, "-src", src, "-data", data), want)
}
