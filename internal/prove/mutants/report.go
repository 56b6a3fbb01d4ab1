package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// line is a result for a reader.
func (r result) line(verbose bool) string {
	what := "found    "
	switch {
	case !r.Found:
		what = "NOT FOUND"
	case r.Slow:
		what = "slow     "
	}
	text := fmt.Sprintf("%s %.2f s  %s (%s) by %s\n          %s", what, r.Seconds, r.Name, r.Promise, r.Test, r.Message+r.Why)
	if verbose {
		text += "\n" + r.output
	}
	return text
}

// summary counts the results of all mutants.
type summary struct {
	Total   int     `json:"mutants_total"`
	Found   int     `json:"mutants_found"`
	Slow    int     `json:"mutants_slow"` // found, but slowly
	Slowest float64 `json:"mutants_slowest_seconds"`
	Pace    int64   `json:"pace_milliseconds"` // of the machine
}

func summarize(results []result, pace time.Duration) summary {
	s := summary{Total: len(results), Pace: pace.Milliseconds()}
	for _, r := range results {
		if r.Found {
			s.Found++
		}
		if r.Found && r.Slow {
			s.Slow++
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

// writeTable writes the results to out/mutants.md.
func writeTable(root string, s summary, results []result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# Mutants\n\n%d of %d found, %d slowly. The machine's pace is %d ms, the reference's %d ms.\n\n", s.Found, s.Total, s.Slow, s.Pace, referencePace.Milliseconds())
	b.WriteString("| mutant | breaks | found by | seconds |\n|---|---|---|---|\n")
	for _, r := range results {
		seconds := fmt.Sprintf("%.2f", r.Seconds)
		switch {
		case !r.Found:
			seconds = "not found: " + r.Why
		case r.Slow:
			seconds += ", slow"
		}
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s |\n", strings.ReplaceAll(r.Name, "-", " "), r.Promise, r.Test, seconds)
	}
	name := filepath.Join(root, "out", "mutants.md")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(b.String()), 0o644)
}
