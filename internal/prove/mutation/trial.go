package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// trial is the test binary with the mutations in it.
type trial struct {
	options
	pkg     *pkg
	dir     string
	rapid   bool             // the tests draw their inputs
	reached map[int][]*timed // the tests that reach a mutation, by its number
}

// build compiles the tests of the package with all mutations in.
func (t *trial) build(ctx context.Context, all []mutation) error {
	overlay, err := t.overlay(all)
	if err != nil {
		return err
	}
	// The symbols are for debuggers; without them the linker is done sooner. The
	// checks of go vet have nothing to say about made code.
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-ldflags=-s -w", "-o", t.binary(), ".")
	cmd.Dir = t.pkg.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests with the mutations: %w\n%s", err, bytes.TrimSpace(out))
	}
	flags, _ := exec.CommandContext(ctx, t.binary(), "-help").CombinedOutput() // it ends with an error
	t.rapid = bytes.Contains(flags, []byte("-rapid.nofailfile"))
	return nil
}

func (t *trial) binary() string { return filepath.Join(t.dir, "mutated.test") }

// overlay writes the changed files and returns the path of the file that tells the
// go command of them.
func (t *trial) overlay(all []mutation) (string, error) {
	replace := make(map[string]string)
	put := func(name, text string) error {
		stored := filepath.Join(t.dir, fmt.Sprintf("%d.go", len(replace)))
		replace[name] = stored
		return os.WriteFile(stored, []byte(text), 0o600)
	}
	for _, f := range t.pkg.files {
		if err := put(f.path, t.pkg.render(f, all)); err != nil {
			return "", err
		}
	}
	text := fmt.Sprintf(switchFile, t.pkg.name, onVariable, reachedVariable, len(all))
	if err := put(filepath.Join(t.pkg.dir, "mutation_switch.go"), text); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(t.dir, "overlay.json")
	return name, os.WriteFile(name, list, 0o600)
}

// limited starts a program with at most 8 GB of addresses, because a mutation may
// make a loop that never ends and keeps all that it makes.
const limited = `ulimit -v 8388608 2>/dev/null; exec "$@"`

// test runs tests by their names, for at most the limit, with a variable of the
// environment set.
func (t *trial) test(ctx context.Context, names []string, limit time.Duration, variable string) ([]byte, error) {
	args := []string{"-c", limited, "sh", t.binary(), "-test.short", "-test.failfast", "-test.count=1",
		"-test.timeout", limit.String(), "-test.run", "^(" + strings.Join(names, "|") + ")$"}
	if t.rapid {
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime=1ms")
	}
	ctx, cancel := context.WithTimeout(ctx, limit+5*time.Second) // for tests that do not even time out
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir = t.pkg.dir
	cmd.Env = append(os.Environ(), variable)
	// A group of their own, so that Ctrl-C does not fail them and an end reaches their children.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second // for children that hold the output open
	return cmd.CombinedOutput()
}
