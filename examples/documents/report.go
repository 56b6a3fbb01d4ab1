package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// report is the result of a run. The flag -json prints it as JSON.
type report struct {
	totals
	Seconds float64 `json:"seconds"`         // of this process
	Equal   *bool   `json:"equal,omitempty"` // to the totals of the plain loop, with -check

	differences []string
}

// differencesMax is how many differences are told.
const differencesMax = 20

// print writes the result to stdout: in sentences, or as one line of JSON. The differences
// go to stderr.
func (r *report) print(stdout, stderr io.Writer, asJSON bool) error {
	for i, d := range r.differences {
		if i == differencesMax {
			fmt.Fprintf(stderr, "- and %d more\n", len(r.differences)-i)
			break
		}
		fmt.Fprintf(stderr, "- %s\n", d)
	}
	if asJSON {
		return json.NewEncoder(stdout).Encode(r)
	}
	_, err := fmt.Fprint(stdout, r.text())
	return err
}

func (r *report) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d packages have %d documents, of which %d do not parse.\n", r.Packages, r.Documents, r.Broken)
	fmt.Fprintf(&b, "Their doc comments have %d words, and %d different terms.\n", r.Words, r.Terms)
	if len(r.Top) > 0 {
		b.WriteString("Most frequent:")
		for _, c := range r.Top {
			fmt.Fprintf(&b, " %s %d", c.Term, c.Count)
		}
		b.WriteString(".\n")
	}
	switch {
	case r.Equal == nil:
	case *r.Equal:
		b.WriteString("A plain loop counts the same.\n")
	default:
		b.WriteString("A plain loop counts otherwise.\n")
	}
	fmt.Fprintf(&b, "Took %.1f s.\n", r.Seconds)
	return b.String()
}
