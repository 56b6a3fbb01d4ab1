package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is the result of a run. The flag -json prints it as JSON.
type report struct {
	Source string `json:"source"`
	Store  string `json:"store"`
	sums
	Packages   int      `json:"packages"`   // top-level packages that have files
	Imported   int      `json:"imported"`   // packages that are imported
	Dead       int      `json:"dead"`       // files that stay unreadable
	Recovered  uint64   `json:"recovered"`  // executions that were cut off and done again, since the store was made
	Executions uint64   `json:"executions"` // tasks begun, repeats included, since the store was made
	Snapshots  uint64   `json:"snapshots"`  // taken since the store was made
	Openings   uint64   `json:"openings"`   // of the store
	Unread     []string `json:"unread,omitempty"`

	took     time.Duration
	largest  []packageTotals
	imports  []importCount
	letters  []deadFile
	restored map[string]int // recoveries of this run, by class
	history  []snapshot
}

// importCount is how many files import a package.
type importCount struct {
	path  string
	files int64
}

// deadFile is a file that stays unreadable, and why.
type deadFile struct{ path, why string }

// rowsMax is how many rows a table has, and deadMax how many dead letters are
// printed.
const (
	rowsMax = 12
	deadMax = 20
)

// report reads the result from the store.
func (j *journey) report(ctx context.Context) (report, error) {
	r := report{Source: j.p.source.root, Store: j.settings.data, Openings: j.host.Epoch()}
	b, err := bookOf.Call(ctx, j.host, theLedger, struct{}{})
	if err != nil {
		return r, err
	}
	stats, err := j.p.readers.Stats(ctx, j.host)
	if err != nil {
		return r, err
	}
	r.Executions, r.Recovered, r.Snapshots = stats.Executions, stats.Lost+uint64(b.Flushes), b.Count
	if r.history, err = historyOf.Call(ctx, j.host, theLedger, historyMax); err != nil {
		return r, err
	}
	var all []packageTotals
	for _, name := range b.Packages {
		t, err := read.Call(ctx, j.host, name, struct{}{})
		if err != nil {
			return r, err
		}
		all = append(all, t)
	}
	r.add(all)
	dead, err := j.p.dead(ctx, j.host)
	for _, d := range dead {
		why := string(d.Reason)
		if n := len(d.Failures); n > 0 {
			why = d.Failures[n-1].Error
		}
		r.letters = append(r.letters, deadFile{d.In.Path, why})
	}
	r.Dead = len(r.letters)
	r.restored = make(map[string]int)
	recoveries, _ := j.host.Recoveries()
	for _, line := range recoveries {
		r.restored[line.ID.Class]++
	}
	return r, err
}

// add sums the packages and ranks them.
func (r *report) add(all []packageTotals) {
	counts := make(map[string]int64)
	for _, t := range all {
		if t.Sums.Files == 0 {
			continue
		}
		r.sums.plus(t.Sums)
		r.largest = append(r.largest, t)
		for path, n := range t.Imports {
			counts[path] += n
		}
	}
	for path, n := range counts {
		r.imports = append(r.imports, importCount{path, n})
	}
	r.Packages, r.Imported = len(r.largest), len(r.imports)
	slices.SortFunc(r.largest, func(a, b packageTotals) int {
		return cmp.Or(cmp.Compare(b.Sums.Lines, a.Sums.Lines), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(r.imports, func(a, b importCount) int {
		return cmp.Or(cmp.Compare(b.files, a.files), cmp.Compare(a.path, b.path))
	})
}

// print writes the tables to stdout; with asJSON they go to stderr, and stdout has
// the report as one line.
func (r *report) print(stdout, stderr io.Writer, asJSON bool) error {
	to := stdout
	if asJSON {
		to = stderr
	}
	var out strings.Builder
	r.tables(&out, widthOf(to))
	for _, sentence := range r.story() {
		out.WriteString(wrap(sentence, widthOf(to)) + "\n")
	}
	if _, err := io.WriteString(to, out.String()); err != nil || !asJSON {
		return err
	}
	return json.NewEncoder(stdout).Encode(r)
}

// tables writes the tables, with lines of at most width columns.
func (r *report) tables(w io.Writer, width int) {
	var out strings.Builder
	t := tabwriter.NewWriter(&out, 0, 0, 3, ' ', tabwriter.AlignRight)
	row := func(s sums, name string) {
		fmt.Fprintf(t, "%s\t%s\t%s\t  %s\n", grouped(s.Files), grouped(s.Lines), grouped(s.Bytes), name)
	}
	fmt.Fprint(t, "files\tlines\tbytes\t  largest packages\n")
	for _, p := range r.largest[:min(rowsMax, len(r.largest))] {
		row(p.Sums, printable(p.Name))
	}
	row(r.sums, "all "+grouped(r.Packages))
	t.Flush()
	if len(r.imports) > 0 {
		fmt.Fprint(t, "\nimported by\t  most imported packages\n")
	}
	for _, i := range r.imports[:min(rowsMax, len(r.imports))] {
		fmt.Fprintf(t, "%s\t  %s\n", plural(i.files, "file"), printable(i.path))
	}
	t.Flush()
	for line := range strings.Lines(out.String()) {
		fmt.Fprintln(w, cut(strings.TrimRight(line, "\n"), width))
	}
	fmt.Fprintln(w)
}

// story is the totals and the rest that happened, in sentences.
func (r *report) story() (lines []string) {
	tell := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	tell("Totals: %s, %s, %s in %s, which import %s.", plural(r.Files, "file"), plural(r.Lines, "line"),
		plural(r.Bytes, "byte"), plural(r.Packages, "package"), grouped(r.Imported))
	if r.Unparsed > 0 {
		tell("Not parsed as Go, and counted all the same: %s.", plural(r.Unparsed, "file"))
	}
	tell("Store: opened %s; %s executed; cut off and done again: %s.",
		plural(r.Openings, "time"), plural(r.Executions, "task"), grouped(r.Recovered))
	var restored []string
	for _, class := range slices.Sorted(maps.Keys(r.restored)) {
		restored = append(restored, fmt.Sprintf("%s of %s", grouped(r.restored[class]), class))
	}
	if len(restored) > 0 {
		tell("Recovered in this run, by job: %s.", strings.Join(restored, ", "))
	}
	if len(r.history) > 0 {
		tell("Snapshots: %s. Files in the totals at the last ones: %s.", grouped(r.Snapshots), r.growth())
	}
	for _, dir := range r.Unread {
		tell("Directory that cannot be read: %s", printable(dir))
	}
	if r.Dead > 0 {
		tell("Files that stay unreadable (dead letters): %s.", grouped(r.Dead))
	}
	for _, d := range r.letters[:min(deadMax, len(r.letters))] {
		tell("- %s: %s", printable(d.path), printable(d.why))
	}
	if r.Dead > deadMax {
		tell("- and %s more", grouped(r.Dead-deadMax))
	}
	tell("Took %s.", r.took.Round(time.Millisecond))
	return lines
}

// growth is the last snapshots in short.
func (r *report) growth() string {
	const most = 10
	var parts []string
	for _, s := range r.history[max(0, len(r.history)-most):] {
		parts = append(parts, grouped(s.Sums.Files))
	}
	return strings.Join(parts, "; ")
}
