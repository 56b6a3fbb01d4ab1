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
)

// lab is where the mutants live: a directory with the overlay and the test
// binaries made with it.
type lab struct {
	root  string // of the repository
	dir   string
	rapid map[string]bool // packages with tests that use rapid, which must leave no files of failures
}

// variable of the environment names the mutant that is switched on.
const variable = "HOLDFAST_MUTANT"

// switchFile is added to each package that has a mutant.
const switchFile = `package %s

import "os"

var mutantName = os.Getenv(%q)

func mutant(name string) bool { return mutantName == name }
`

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
		packages = append(packages, m.Package)
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

// compile compiles the test binaries of the packages. It takes the workspace, so that each package is compiled once for all modules.
func (l *lab) compile(ctx context.Context, overlay string, packages []string) error {
	// The symbols are for debuggers; without them the linker is done sooner.
	args := []string{"test", "-c", "-overlay", overlay, "-ldflags=-s -w", "-o", l.dir + string(filepath.Separator)}
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

// overlay writes the changed files and returns the path of the file that tells the
// go command of them.
func (l *lab) overlay(ms []mutant) (string, error) {
	files, dirs := make(map[string][]mutant), make(map[string]bool)
	for _, m := range ms {
		files[m.File] = append(files[m.File], m)
		dirs[m.dir()] = true
	}
	replace := make(map[string]string)
	put := func(name, text string) error {
		stored := filepath.Join(l.dir, fmt.Sprintf("%d.go", len(replace)))
		replace[filepath.Join(l.root, name)] = stored
		return os.WriteFile(stored, []byte(text), 0o600)
	}
	for name, ms := range files {
		text, err := os.ReadFile(filepath.Join(l.root, name))
		if err != nil {
			return "", err
		}
		changed, err := apply(string(text), ms)
		if err != nil {
			return "", err
		}
		if err := put(name, changed); err != nil {
			return "", err
		}
	}
	for dir := range dirs {
		if err := put(path.Join(dir, "mutant_switch.go"), fmt.Sprintf(switchFile, path.Base(dir), variable)); err != nil {
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
