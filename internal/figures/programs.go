package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
)

// program runs a command of this module, given by its directory, and returns what
// it printed.
func (s *suite) program(ctx context.Context, dir string, args ...string) ([]byte, error) {
	path, err := s.compile(ctx, dir, "build")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = s.root
	var errs bytes.Buffer
	cmd.Stderr = &errs
	interruptible(cmd)
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("go run ./%s %s: %w\n%s", dir, strings.Join(args, " "), err, failing(append(out, errs.Bytes()...)))
	}
	return out, err
}

// count adds up the figures that a test or a program printed: those of every line
// that has a JSON object, by their names in the table.
func (s *suite) count(out []byte) {
	for l := range strings.Lines(string(out)) {
		i := strings.IndexByte(l, '{')
		if i < 0 {
			continue
		}
		var object map[string]any
		if json.Unmarshal([]byte(l[i:]), &object) != nil {
			continue
		}
		for _, f := range table {
			if n, ok := object[f.name].(float64); ok {
				s.add(f.name, n)
			}
		}
	}
}

// mutants counts the bugs that were found.
func mutants(ctx context.Context, s *suite) error {
	return s.job(ctx, "mutants", "all", 2, func(ctx context.Context) error {
		out, err := s.program(ctx, "internal/mutants", "-json")
		var results []struct{ Found bool }
		if parse := json.Unmarshal(out, &results); parse != nil && err == nil {
			err = fmt.Errorf("what internal/mutants printed: %w", parse)
		}
		for _, r := range results {
			s.add("mutants_total", 1)
			if r.Found {
				s.add("mutants_found", 1)
			}
		}
		return err
	})
}

// files proves the store at the level of operations on files.
func files(ctx context.Context, s *suite) error {
	return s.job(ctx, "files", "storage/storagetest", 1, func(ctx context.Context) error {
		_, out, err := s.test(ctx, testRun{dir: "storage/storagetest", run: ".", logs: true})
		s.count(out)
		return err
	})
}
