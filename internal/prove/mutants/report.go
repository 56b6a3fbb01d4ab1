package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// line is a result for a reader.
func (r result) line(verbose bool) string {
	what := "found    "
	if !r.Found {
		what = "NOT FOUND"
	}
	told := ""
	if r.Told != "" {
		told = ", told as " + r.Told
	}
	text := fmt.Sprintf("%s %.2f s  %s (%s%s) by %s\n          %s", what, r.Seconds, r.Name, r.Promise, told, r.Test, r.Message+r.Why)
	if verbose {
		text += "\n" + r.output
	}
	return text
}

// summary counts the results of all mutants.
type summary struct {
	Total   int     `json:"mutants_total"`
	Found   int     `json:"mutants_found"`
	Slowest float64 `json:"mutants_slowest_seconds"`
}

func summarize(results []result) summary {
	s := summary{Total: len(results)}
	for _, r := range results {
		if r.Found {
			s.Found++
		}
		s.Slowest = max(s.Slowest, r.Seconds)
	}
	return s
}

// line is the summary as a line of JSON.
func (s summary) line() string {
	text, _ := json.Marshal(s) // numbers
	return string(text)
}

// verdict is an error if a mutant was not found.
func (s summary) verdict() error {
	if s.Found < s.Total {
		return fmt.Errorf("%d of %d mutants were not found", s.Total-s.Found, s.Total)
	}
	return nil
}

// The table stands between these lines of the document.
const (
	document   = "docs/RELIABILITY.md"
	tableBegin = "<!-- mutants: written by go run ./internal/prove/mutants -table -->\n"
	tableEnd   = "<!-- end of mutants -->\n"
)

// markdown is the table of the results.
func markdown(results []result) string {
	var b strings.Builder
	b.WriteString("| no. | mutant | breaks | found by | seconds |\n|---|---|---|---|---|\n")
	for _, r := range results {
		number, seconds := "", fmt.Sprintf("%.1f", r.Seconds)
		if r.Number > 0 {
			number = fmt.Sprint(r.Number)
		}
		if !r.Found {
			seconds = "not found"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | `%s` | %s |\n", number, strings.ReplaceAll(r.Name, "-", " "), r.Promise, r.Test, seconds)
	}
	return b.String()
}

// writeTable puts the table in its place, or prints it if there is none.
func writeTable(root string, results []result) error {
	name := filepath.Join(root, document)
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	before, rest, begins := strings.Cut(string(text), tableBegin)
	_, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		fmt.Print(markdown(results))
		return nil
	}
	return os.WriteFile(name, []byte(before+tableBegin+markdown(results)+tableEnd+after), 0o644)
}
