package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// trial is the tests with the mutations in them.
type trial struct {
	options
	pkg    *pkg
	dir    string
	suites []*suite // of the package itself, then of the further ones in the order given
}

// build compiles the tests with all mutations in.
func (t *trial) build(ctx context.Context, all []mutation) error {
	overlay, err := t.overlay(all)
	if err != nil {
		return err
	}
	for _, s := range t.suites {
		if err := s.build(ctx, overlay); err != nil {
			return err
		}
	}
	return nil
}

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
