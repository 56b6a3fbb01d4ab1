package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// progress prints each survivor to out, and the count so far to the standard error.
func progress(out io.Writer, total int) func(result) {
	done := 0
	return func(r result) {
		done++
		switch r.outcome {
		case survived:
			fmt.Fprintln(out, "survived:", r.mutation)
		case unreached:
			fmt.Fprintln(out, "not reached:", r.mutation)
		}
		if done%20 == 0 || done == total {
			fmt.Fprintf(os.Stderr, "%d of %d tried\n", done, total)
		}
	}
}

// summary is the result for a package.
type summary struct {
	Package    string  `json:"package"`
	Total      int     `json:"mutations"` // tried, without the equivalent ones
	Found      int     `json:"found"`     // with those that timed out
	TimedOut   int     `json:"timed_out"`
	Elsewhere  int     `json:"found_elsewhere"` // of those found, by tests of further packages
	Survived   int     `json:"survived"`        // with those not reached
	Unreached  int     `json:"not_reached"`
	Equivalent int     `json:"equivalent"`
	Untried    int     `json:"untried"` // because the run was ended
	Share      float64 `json:"share_percent"`
}

func summarize(dir string, results []result, equivalent int) summary {
	s := summary{Package: dir, Total: len(results), Equivalent: equivalent}
	for _, r := range results {
		if r.elsewhere {
			s.Elsewhere++
		}
		switch r.outcome {
		case timedOut:
			s.TimedOut++
			s.Found++
		case found:
			s.Found++
		case unreached:
			s.Unreached++
			s.Survived++
		case survived:
			s.Survived++
		}
	}
	if s.Total > 0 {
		s.Share = float64(s.Found*1000/s.Total) / 10 // rounded down
	}
	return s
}

// text is the summary as a sentence.
func (s summary) text() string {
	return fmt.Sprintf("%s: %d of %d mutations found (%.1f %%), %d of them by a time-out, %d by the tests of other packages; %d survive, %d of them not reached by any test; %d equivalent ones left out, %d not tried",
		s.Package, s.Found, s.Total, s.Share, s.TimedOut, s.Elsewhere, s.Survived, s.Unreached, s.Equivalent, s.Untried)
}

// line is the summary as a line of JSON.
func (s summary) line() string {
	text, _ := json.Marshal(s) // numbers and a name
	return string(text)
}

// verdict is an error if the share found is below the floor.
func (s summary) verdict(floor float64) error {
	if s.Total > 0 && s.Share < floor {
		return fmt.Errorf("%s: %.1f %% of the mutations were found, want at least %g %%: write tests for the survivors, or list the equivalent ones", s.Package, s.Share, floor)
	}
	return nil
}
