package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what a run tells at its end. Its JSON is what -json prints.
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

// print writes the tables, and with asJSON the report as the last line.
func (r *report) print(w io.Writer, asJSON bool) error {
	var out strings.Builder
	r.tables(&out)
	r.story(&out)
	if asJSON {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		out.Write(append(line, '\n'))
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (r *report) tables(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "files\tlines\tbytes\t  largest packages\n")
	for _, p := range r.largest[:min(rowsMax, len(r.largest))] {
		fmt.Fprintf(t, "%d\t%d\t%d\t  %s\n", p.Sums.Files, p.Sums.Lines, p.Sums.Bytes, printable(p.Name))
	}
	fmt.Fprintf(t, "%d\t%d\t%d\t  all %d\n", r.Files, r.Lines, r.Bytes, r.Packages)
	t.Flush()
	fmt.Fprint(t, "\nimported by\t  most imported packages\n")
	for _, i := range r.imports[:min(rowsMax, len(r.imports))] {
		fmt.Fprintf(t, "%d files\t  %s\n", i.files, printable(i.path))
	}
	t.Flush()
}

// story tells what else happened.
func (r *report) story(w io.Writer) {
	fmt.Fprintf(w, "\nTotals: %d files, %d bytes, %d lines in %d packages, which import %d; %d files do not parse and are counted all the same.\n",
		r.Files, r.Bytes, r.Lines, r.Packages, r.Imported, r.Unparsed)
	fmt.Fprintf(w, "Executions: %d; cut off and done again: %d; openings of the store: %d.\n", r.Executions, r.Recovered, r.Openings)
	for _, class := range slices.Sorted(maps.Keys(r.restored)) {
		fmt.Fprintf(w, "  recovered in this run: %d of %s\n", r.restored[class], class)
	}
	if n := len(r.history); n > 0 {
		fmt.Fprintf(w, "History: %d snapshots; files in the totals: %s\n", r.Snapshots, r.growth())
	}
	for _, dir := range r.Unread {
		fmt.Fprintf(w, "Directory that cannot be read: %s\n", printable(dir))
	}
	if r.Dead > 0 {
		fmt.Fprintf(w, "Files that stay unreadable (dead letters): %d\n", r.Dead)
	}
	for _, d := range r.letters[:min(deadMax, len(r.letters))] {
		fmt.Fprintf(w, "  %s: %s\n", printable(d.path), printable(d.why))
	}
	fmt.Fprintf(w, "Took %s.\n", r.took.Round(time.Millisecond))
}

// growth is the last snapshots in short.
func (r *report) growth() string {
	const most = 10
	var parts []string
	for _, s := range r.history[max(0, len(r.history)-most):] {
		parts = append(parts, strconv.FormatInt(s.Sums.Files, 10))
	}
	return strings.Join(parts, ", ")
}

// printable is text as a terminal may be given it.
func printable(s string) string {
	if q := strconv.Quote(s); q != `"`+s+`"` {
		return q
	}
	return s
}
