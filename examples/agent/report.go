package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// report is the result of a run. The flag -json prints it as JSON.
type report struct {
	state
	From  int    `json:"from"`            // the files that the journal had when this process began
	At    *state `json:"at,omitempty"`    // with -at
	Equal *bool  `json:"equal,omitempty"` // to the plain loop, with -check

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
	fmt.Fprintf(stdout, "Of %d files the agent would read %d, skim %d and skip %d; this process decided about %d.\n", r.Seen, r.Read, r.Skim, r.Skip, r.Seen-r.From)
	if r.At != nil {
		fmt.Fprintf(stdout, "As of file %d it would have read %d and skimmed %d, with time for %d lines more.\n", r.At.Seen, r.At.Read, r.At.Skim, r.At.Budget)
	}
	if r.Equal != nil {
		fmt.Fprintln(stdout, map[bool]string{true: "A plain loop decides the same.", false: "A plain loop decides otherwise."}[*r.Equal])
	}
	return nil
}
