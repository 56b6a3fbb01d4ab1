package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// module is the path of this module.
const module = "github.com/holdfast-dev/holdfast"

// binary is the tests of a package, compiled once.
type binary struct {
	once sync.Once
	path string
	err  error
}

// compile compiles the tests of a package, given by its directory, or the command in
// it, once. Other callers wait meanwhile.
func (s *suite) compile(ctx context.Context, step, dir string, flags ...string) (string, error) {
	key := strings.Join(append([]string{dir}, flags...), " ")
	s.mu.Lock()
	b := s.binaries[key]
	if b == nil {
		b = &binary{path: filepath.Join(s.dir, strings.NewReplacer("/", "-", " ", "").Replace(key))}
		s.binaries[key] = b
	}
	s.mu.Unlock()
	b.once.Do(func() {
		cmd := exec.CommandContext(ctx, "go", append(append(flags, "-o", b.path), "./"+dir)...)
		cmd.Dir = s.root
		if out, err := s.output(ctx, step, cmd); err != nil {
			b.err = fmt.Errorf("go %s ./%s: %w\n%s", strings.Join(flags, " "), dir, err, out)
		}
	})
	return b.path, b.err
}

// head is the commit of the working tree, with "+" after it if that has changes.
func head(ctx context.Context, root string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", "rev-parse", "HEAD")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find the commit: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// moduleRoot is the directory of this module.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find module %s (run this inside it): %w", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}
