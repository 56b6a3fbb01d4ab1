package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutant is a bug that a test must find. The package comment shows its file.
type mutant struct {
	name      string // the bug in a few words, joined by hyphens
	promise   string // in docs/CONTRACT.md
	dir, test string // the test's package, from the root, and its name
	edits     []edit
}

// edit changes a function, or adds declarations if function is empty.
type edit struct {
	dir, function string
	lines         []string // each begins with +, - or white space
}

// mutantFiles is the mutants' folder.
const mutantFiles = "internal/prove/mutants/testdata"

// readMutants returns all mutants by name.
func readMutants(root string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(root, mutantFiles, "*.mutant"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		m, err := parseMutant(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		m.name = strings.TrimSuffix(filepath.Base(name), ".mutant")
		all = append(all, m)
	}
	return all, nil
}

func parseMutant(text string) (m mutant, err error) {
	var e edit
	finish := func() {
		if len(e.lines) > 0 {
			m.edits = append(m.edits, e)
		}
		e.lines = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\n")
		words := strings.Fields(line)
		switch {
		case line == "":
			finish()
		case strings.ContainsRune("+- \t", rune(line[0])):
			e.lines = append(e.lines, line)
		case words[0] == "breaks" && len(words) == 6:
			m.promise, m.dir, m.test = strings.TrimSuffix(words[1], ","), words[4], words[5]
		case words[0] == "func" && len(words) == 3:
			finish()
			e = edit{dir: words[1], function: words[2]}
		case words[0] == "declare" && len(words) == 2:
			finish()
			e = edit{dir: words[1]}
		default:
			return m, fmt.Errorf("unknown line %q", line)
		}
	}
	finish()
	if m.promise == "" || len(m.edits) == 0 {
		return m, errors.New("want a promise with its test, and a change")
	}
	for _, e := range m.edits {
		if e.dir == "" {
			return m, errors.New("a change has no package: begin it with func or declare")
		}
	}
	return m, nil
}

// old returns the lines that an edit's function must contain, without white space
// around them.
func (e edit) old() (lines []string) {
	for _, l := range e.lines {
		if l[0] != '+' {
			lines = append(lines, strings.TrimSpace(strings.TrimPrefix(l, "-")))
		}
	}
	return lines
}

// added returns the lines that an edit adds.
func (e edit) added() (lines []string) {
	for _, l := range e.lines {
		if l[0] == '+' {
			lines = append(lines, l[1:])
		}
	}
	return lines
}
