package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// lab is a directory with the overlay and the test binaries built with it.
type lab struct {
	root  string // of the repository
	dir   string
	rapid map[string]bool // packages with tests that use rapid, which must leave no files of failures
	pace  time.Duration   // of the machine
}

// variable is the environment variable that names the mutant to switch on.
const variable = "HOLDFAST_MUTANT"

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/holdfast-dev/holdfast").Output()
	if err != nil {
		return "", fmt.Errorf("find the module (run this inside the repository): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// build compiles the test binaries that find the mutants, with all mutants in.
func (l *lab) build(ctx context.Context, ms []mutant) error {
	overlay, err := l.overlay(ms)
	if err != nil {
		return err
	}
	var packages []string
	for _, m := range ms {
		packages = append(packages, m.dir)
	}
	slices.Sort(packages)
	packages = slices.Compact(packages)
	if err := l.compile(ctx, overlay, packages); err != nil {
		return err
	}
	l.rapid = make(map[string]bool)
	for _, p := range packages {
		flags, _ := exec.CommandContext(ctx, l.binary(p), "-help").CombinedOutput() // it ends with an error
		l.rapid[p] = bytes.Contains(flags, []byte("-rapid.nofailfile"))
	}
	return nil
}

// compile builds the packages' test binaries, in the workspace, so that each
// package is compiled once for all modules.
func (l *lab) compile(ctx context.Context, overlay string, packages []string) error {
	// Without symbols the linker is faster.
	args := []string{"test", "-c", "-vet=off", "-overlay", overlay, "-ldflags=-s -w", "-o", l.dir + string(filepath.Separator)}
	for _, p := range packages {
		args = append(args, "./"+p)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = l.root, append(os.Environ(), "GOWORK=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests with the mutants: %w\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}

// binary is the path of a package's test binary.
func (l *lab) binary(pkg string) string { return filepath.Join(l.dir, path.Base(pkg)+".test") }

// overlay writes the changed files and returns the path of the overlay's JSON.
func (l *lab) overlay(ms []mutant) (string, error) {
	files, err := mutate(l.root, ms)
	if err != nil {
		return "", err
	}
	replace := make(map[string]string)
	for name, text := range files {
		stored := filepath.Join(l.dir, fmt.Sprintf("%d.go", len(replace)))
		replace[filepath.Join(l.root, name)] = stored
		if err := os.WriteFile(stored, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(l.dir, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}
