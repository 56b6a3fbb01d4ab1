package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// testRun is one run of the tests of a package.
type testRun struct {
	step      string
	dir       string // of the package
	run, skip string // patterns of -run and -skip
	crashtest string // the value of HOLDFAST_CRASHTEST, without the report
	args      []string
	race      bool
	width     int // how many cores it uses; 0: one
}

// line is the harness's report of a test: the fields of harness.Report that are counted
// here.
type line struct {
	Test             string  `json:"test"`
	Kind             string  `json:"kind"`
	Store            string  `json:"store"`
	Points           int     `json:"points"`
	Pairs            int     `json:"pairs"`
	Covered          float64 `json:"covered"`
	Random           int     `json:"random"`
	Crashes          int     `json:"crashes"`
	SometimesReached int     `json:"sometimes_reached"`
	SometimesTotal   int     `json:"sometimes_total"`
	VirtualSeconds   float64 `json:"virtual_seconds"`
}

// command repeats the run by hand.
func (r testRun) command() string {
	var b strings.Builder
	if r.crashtest != "" {
		fmt.Fprintf(&b, "HOLDFAST_CRASHTEST=%s ", r.crashtest)
	}
	b.WriteString("go test -count=1 ")
	if r.race {
		b.WriteString("-race ")
	}
	fmt.Fprintf(&b, "-run '%s' ", r.run)
	if r.skip != "" {
		fmt.Fprintf(&b, "-skip '%s' ", r.skip)
	}
	b.WriteString("./" + r.dir)
	if len(r.args) > 0 {
		b.WriteString(" -args " + strings.Join(r.args, " "))
	}
	return b.String()
}

// patience bounds one run of a test binary, which hangs if it takes longer and then prints
// where its goroutines stand. The longest takes four minutes, and hours in a soak, so only a hang reaches it.
func (s *suite) patience() time.Duration {
	return of(s.extent, 4*time.Hour, 12*time.Hour)
}

// test runs tests and returns the reports of the harness, and the output.
func (s *suite) test(ctx context.Context, r testRun) (lines []line, out []byte, err error) {
	r.width = max(r.width, 1)
	err = s.job(ctx, r.step, r.dir, r.width, func() (err error) {
		lines, out, err = s.testNow(ctx, r)
		return err
	})
	s.note(lines)
	return lines, out, err
}

func (s *suite) testNow(ctx context.Context, r testRun) (lines []line, out []byte, err error) {
	flags := []string{"test", "-c", "-ldflags=-s -w"}
	if r.race {
		flags = append(flags, "-race")
	}
	path, err := s.compile(ctx, r.step, r.dir, flags...)
	if err != nil {
		return nil, nil, err
	}
	report, err := os.CreateTemp(s.dir, "report-")
	if err != nil {
		return nil, nil, err
	}
	defer report.Close()
	args := []string{"-test.parallel=1", "-test.timeout=" + s.patience().String(), "-test.run=" + r.run}
	if r.skip != "" {
		args = append(args, "-test.skip="+r.skip)
	}
	cmd := exec.CommandContext(ctx, path, append(args, r.args...)...)
	cmd.Dir = filepath.Join(s.root, r.dir)
	crashtest := strings.TrimPrefix(r.crashtest+",report="+report.Name(), ",")
	cmd.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", r.width), "HOLDFAST_CRASHTEST="+crashtest)
	out, err = s.output(ctx, r.step, cmd)
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", r.command(), err, failing(out))
	}
	lines, parseErr := parseLines(report)
	return lines, out, errors.Join(err, parseErr)
}

func parseLines(report *os.File) (lines []line, err error) {
	d := json.NewDecoder(report)
	for d.More() {
		var l line
		if err := d.Decode(&l); err != nil {
			return lines, fmt.Errorf("report of the harness: %w", err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// note counts the figures to which every run adds.
func (s *suite) note(lines []line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range lines {
		s.values["simulated_years"] += l.VirtualSeconds / (365.25 * 24 * 3600)
		was := s.sometimes[l.Test]
		s.sometimes[l.Test] = reached{max(was.reached, l.SometimesReached), max(was.total, l.SometimesTotal)}
	}
}

// shown is how many lines of a failed run are shown, at each end.
const shown = 60

// failing is the output of a run; if it fills screens, the middle is left out.
func failing(out []byte) string {
	lines := strings.SplitAfter(strings.TrimSpace(string(out)), "\n")
	if n := len(lines) - 2*shown; n > 0 {
		lines = slices.Concat(lines[:shown], []string{fmt.Sprintf("... %d lines more ...\n", n)}, lines[shown+n:])
	}
	return strings.Join(lines, "")
}
