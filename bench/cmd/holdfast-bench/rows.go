package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/rows"
)

const rowsUsage = `usage: holdfast-bench [flags]
       holdfast-bench scale [flags]

Measures the rows P1 to P19 of docs/PERFORMANCE.md. Each row runs our workload and
its reference in turn, some rounds, and prints the median of each, their ratio, the
target and whether it was reached. All commits are synced to a real directory.

  holdfast-bench                         all rows, about ten minutes
  holdfast-bench -rows P1,P3 -json       two rows, as one JSON array
  holdfast-bench -size full -rows P9,P10 with 10 million objects
  holdfast-bench scale -h                the scenarios of a large store

flags:
`

func runRows(ctx context.Context, args []string, out, log io.Writer) (err error) {
	f := flag.NewFlagSet("holdfast-bench", flag.ContinueOnError)
	f.SetOutput(log)
	f.Usage = func() {
		fmt.Fprint(log, rowsUsage)
		f.PrintDefaults()
	}
	ids := f.String("rows", "", "rows to measure, with commas between, such as P1,P3 (default all)")
	asJSON := f.Bool("json", false, "write one JSON array instead of a table")
	rounds := f.Int("rounds", 3, "rounds of each side of a row")
	seconds := f.Float64("seconds", 1, "seconds of one round of one side, for rows without a fixed amount of work")
	sizeName := f.String("size", "small", "how much: tiny (a trial), small, or full (more sizes for plots, and 10M objects)")
	dir := f.String("dir", "", "directory for the stores; a folder in it is made and removed (default a temporary one)")
	if err := f.Parse(args); err != nil {
		return err
	}
	size, err := rows.ParseSize(*sizeName)
	switch {
	case err != nil:
		return err
	case f.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: see -h", f.Arg(0))
	case *rounds < 1 || *seconds <= 0:
		return errors.New("-rounds and -seconds must be positive")
	}
	cases, err := rows.Cases(*ids, size)
	if err != nil {
		return err
	}
	where, remove, err := scratch(*dir)
	if err != nil {
		return err
	}
	defer remove()
	results, err := measureRows(ctx, cases, &rows.Env{Dir: where, For: time.Duration(*seconds * float64(time.Second)), Size: size}, *rounds, log)
	if *asJSON {
		return errors.Join(err, rows.WriteJSON(out, results))
	}
	fmt.Fprintln(out, about(where))
	return errors.Join(err, rows.WriteTable(out, results))
}

// measureRows measures what it can, until ctx ends, and returns what failed
// beside what it measured.
func measureRows(ctx context.Context, cases []*rows.Case, e *rows.Env, rounds int, log io.Writer) ([]*rows.Result, error) {
	p := newProgress(log, len(cases))
	defer p.end()
	var results []*rows.Result
	var failed []error
	for _, c := range cases {
		p.begin(c.ID + " " + c.What + " " + c.Size)
		r, err := c.Run(ctx, e, rounds, p.round)
		if err != nil {
			failed = append(failed, err)
		} else {
			results = append(results, r)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return results, errors.Join(failed...)
}
