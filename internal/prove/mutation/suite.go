package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// suite is the tests of a package, as a binary with the mutations in it.
type suite struct {
	name    string // the import path of the package
	dir     string
	binary  string
	rapid   bool             // the tests draw their inputs
	reached map[int][]*timed // the tests that reach a mutation, by its number
}

// addSuites finds the packages with tests to run.
func (t *trial) addSuites(ctx context.Context) error {
	t.addSuite(t.pkg.path, t.pkg.dir)
	if t.tests == "" {
		return nil
	}
	for pattern := range strings.SplitSeq(t.tests, ",") {
		found, _, err := list(ctx, pattern)
		if err != nil {
			return err
		}
		for _, s := range t.suites {
			if s.name == found.ImportPath {
				return fmt.Errorf("-tests: the tests of %s would be run twice", pattern)
			}
		}
		t.addSuite(found.ImportPath, found.Dir)
	}
	return nil
}

func (t *trial) addSuite(name, dir string) {
	binary := filepath.Join(t.dir, strconv.Itoa(len(t.suites))+".test")
	t.suites = append(t.suites, &suite{name: name, dir: dir, binary: binary, reached: make(map[int][]*timed)})
}

// build compiles the tests with the mutations of an overlay.
func (s *suite) build(ctx context.Context, overlay string) error {
	// The symbols are for debuggers; without them the linker is done sooner. The
	// checks of go vet have nothing to say about made code.
	cmd := goCommand(ctx, "test", "-c", "-vet=off", "-overlay", overlay, "-ldflags=-s -w", "-o", s.binary, ".")
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of %s with the mutations: %w\n%s", s.name, err, bytes.TrimSpace(out))
	}
	if _, err := os.Stat(s.binary); err != nil {
		return fmt.Errorf("%s has no tests: name another package", s.name)
	}
	flags, _ := exec.CommandContext(ctx, s.binary, "-help").CombinedOutput() // it ends with an error
	s.rapid = bytes.Contains(flags, []byte("-rapid.nofailfile"))
	return nil
}

// list returns the tests with names that match a pattern.
func (s *suite) list(ctx context.Context, pattern string) ([]*timed, error) {
	if pattern == "" {
		pattern = "."
	}
	out, err := exec.CommandContext(ctx, s.binary, "-test.list", pattern).Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", s.name, err)
	}
	var tests []*timed
	for name := range strings.FieldsSeq(string(out)) {
		if !strings.HasPrefix(name, "Benchmark") {
			tests = append(tests, &timed{name: name})
		}
	}
	return tests, nil
}

// limited starts a program with at most 8 GB of addresses, because a mutation may
// make a loop that never ends and keeps all that it makes, and with a limit of
// processor time, in seconds, which ends it.
const limited = `ulimit -v 8388608 2>/dev/null; ulimit -t "$1"; shift; exec "$@"`

// test runs tests by their names, with a variable of the environment set, and returns
// the processor time they used, at most so much.
func (s *suite) test(ctx context.Context, names []string, processor time.Duration, variable string) (out []byte, used time.Duration, err error) {
	args := []string{"-c", limited, "sh", strconv.Itoa(int(processor/time.Second) + 1), s.binary, "-test.short", "-test.failfast", "-test.count=1",
		"-test.timeout", longest.String(), "-test.run", "^(" + strings.Join(names, "|") + ")$"}
	if s.rapid {
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime=1ms")
	}
	ctx, cancel := context.WithTimeout(ctx, longest+time.Minute) // for tests that do not even time out
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), variable)
	// A group of their own, so that Ctrl-C does not fail them and an end reaches their children.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second // for children that hold the output open
	out, err = cmd.CombinedOutput()
	if p := cmd.ProcessState; p != nil {
		used = p.UserTime() + p.SystemTime()
	}
	return out, used, err
}
