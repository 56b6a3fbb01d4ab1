package recovery

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/holdfast-dev/holdfast/object"
)

// Report lists the recoveries of a host since it was opened (R6).
type Report struct {
	Lines []object.Recovery `json:"lines"` // in order, the last ones if they were very many
	Total int               `json:"total"`
}

// Recovered returns the report of a host as it is now.
func Recovered(h *object.Host) Report {
	lines, total := h.Recoveries()
	return Report{lines, total}
}

// Causes counts the lines by their cause.
func (r Report) Causes() map[string]int {
	causes := make(map[string]int)
	for _, l := range r.Lines {
		causes[l.Cause]++
	}
	return causes
}

// Write writes the report as a table with at most limit lines, the last ones,
// and a summary under it. Zero means all of them.
func (r Report) Write(w io.Writer, limit int) error {
	lines := r.Lines
	if limit > 0 && len(lines) > limit {
		lines = lines[len(lines)-limit:]
	}
	t := tabwriter.NewWriter(w, 1, 8, 2, ' ', 0)
	if len(lines) > 0 {
		fmt.Fprintln(t, "AT\tOBJECT\tCAUSE\tAGE\tATTEMPT\tACTION")
	}
	for _, l := range lines {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%s\n",
			l.At.UTC().Format(time.RFC3339), l.ID, l.Cause, l.Age.Round(time.Millisecond), l.Attempt, l.Action)
	}
	fmt.Fprintf(t, "recovered %d", r.Total)
	causes := r.Causes()
	for _, c := range slices.Sorted(maps.Keys(causes)) {
		fmt.Fprintf(t, ", %s %d", c, causes[c])
	}
	fmt.Fprintln(t)
	return t.Flush()
}
