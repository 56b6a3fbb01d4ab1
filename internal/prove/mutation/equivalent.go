package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
)

// equivalence names a mutation that changes no behaviour. It holds the text of the
// code and no line number, so that the code may move.
type equivalence struct{ file, function, change, code string }

func (e equivalence) String() string {
	return strings.Join([]string{e.file, e.function, e.change, e.code}, ", ")
}

// equivalents are those of the list, each with its reason.
type equivalents map[equivalence]string

// readEquivalents reads the list. It has a paragraph of five lines for each
// mutation: file, function, change, line of code, and the reason. Lines that begin
// with # are comments. A list that does not exist is empty.
func readEquivalents(name string) (equivalents, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list := make(equivalents)
	var lines []string
	for line := range strings.Lines(string(text) + "\n\n") {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
		case line != "":
			lines = append(lines, line)
		case len(lines) == 5:
			list[equivalence{lines[0], lines[1], lines[2], lines[3]}] = lines[4]
			lines = nil
		case len(lines) > 0:
			return nil, fmt.Errorf("%s: a paragraph has %d lines, want five (file, function, change, code, reason):\n%s", name, len(lines), strings.Join(lines, "\n"))
		}
	}
	return list, nil
}

func equivalenceOf(m mutation) equivalence {
	return equivalence{m.File, m.Function, m.Change, m.Code}
}

// leaveOut returns the mutations that are not in the list, and the count of the others.
func (list equivalents) leaveOut(ms []mutation) ([]mutation, int) {
	var kept []mutation
	for _, m := range ms {
		if _, ok := list[equivalenceOf(m)]; !ok {
			kept = append(kept, m)
		}
	}
	return kept, len(ms) - len(kept)
}

// stale returns the rows for a package's directory that name none of its mutations.
func (list equivalents) stale(dir string, all []mutation) []equivalence {
	known := make(map[equivalence]bool)
	for _, m := range all {
		known[equivalenceOf(m)] = true
	}
	var rows []equivalence
	for e := range list {
		if path.Dir(e.file) == dir && !known[e] {
			rows = append(rows, e)
		}
	}
	return rows
}
