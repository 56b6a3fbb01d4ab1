package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/rows"
)

const rowsUsage = `usage: holdfast-bench [flags]
       holdfast-bench scale [flags]

Measures the rows P1 to P37, P39 and P42 to P50 of docs/PERFORMANCE.md. Each row runs our workload and
its reference in turn, some rounds, and prints the median of each, their ratio, the
target and whether it was reached. All commits are synced to a real directory.

  holdfast-bench                         all rows, about half an hour
  holdfast-bench -rows P1,P3 -json       two rows, as one JSON array
  holdfast-bench -size full -rows P9,P10 with 10 million objects
  holdfast-bench scale -h                the scenarios of a large store

flags:
`

func runRows(ctx context.Context, args []string, out, log io.Writer) error {
	c := newCommand("holdfast-bench", log, func() { fmt.Fprint(log, rowsUsage) }, rows.WriteTable)
	ids := c.String("rows", "", "rows to measure, with commas between, such as P1,P3 (default all)")
	rounds := c.Int("rounds", 3, "rounds of each side of a row")
	seconds := c.Float64("seconds", 1, "seconds of one round of one side, for rows without a fixed amount of work")
	sizeName := c.String("size", "small", "how much: tiny (a trial), small, or full (more sizes for plots, and 10M objects)")
	if err := c.parse(args); err != nil {
		return err
	}
	if *rounds < 1 || *seconds <= 0 {
		return errors.New("-rounds and -seconds must be positive")
	}
	size, err := rows.ParseSize(*sizeName)
	if err != nil {
		return err
	}
	cases, err := rows.Cases(*ids, size)
	if err != nil {
		return err
	}
	cases = possible(cases, log)
	return c.report(out, func(dir string) ([]*rows.Result, error) {
		e := &rows.Env{Dir: dir, For: time.Duration(*seconds * float64(time.Second)), Size: size}
		return measureRows(ctx, cases, e, *rounds, log)
	})
}

// possible leaves out the cases for which the machine lacks something, and says so.
func possible(cases []*rows.Case, log io.Writer) []*rows.Case {
	return slices.DeleteFunc(cases, func(c *rows.Case) bool {
		if c.Needs == nil {
			return false
		}
		err := c.Needs()
		if err != nil {
			fmt.Fprintf(log, "NOT MEASURED: %s %s: %v\n", c.ID, c.What, err)
		}
		return err != nil
	})
}

func measureRows(ctx context.Context, cases []*rows.Case, e *rows.Env, rounds int, log io.Writer) ([]*rows.Result, error) {
	return each(ctx, log, cases,
		func(c *rows.Case) string { return c.ID + " " + c.What + " " + c.Size },
		func(c *rows.Case, p *progress) (*rows.Result, error) { return c.Run(ctx, e, rounds, p.round) })
}
