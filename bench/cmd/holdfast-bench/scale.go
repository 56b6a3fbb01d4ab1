package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/scale"
)

const scaleUsage = `usage: holdfast-bench scale [flags]

Runs the scenarios of a large store, one after the other, and prints what each
measured and which of its bounds held. At full size that takes about half an hour,
10 GB of disk and 4 GB of memory; -percent 1 is a trial of two minutes.

scenarios:
`

func runScale(ctx context.Context, args []string, out, log io.Writer) (err error) {
	f := flag.NewFlagSet("holdfast-bench scale", flag.ContinueOnError)
	f.SetOutput(log)
	f.Usage = func() {
		fmt.Fprint(log, scaleUsage)
		for _, s := range scale.Scenarios {
			fmt.Fprintf(log, "  %-11s %s\n", s.Name, s.What)
		}
		fmt.Fprintln(log, "\nflags:")
		f.PrintDefaults()
	}
	names := f.String("scenarios", "", "scenarios to run, with commas between (default all)")
	asJSON := f.Bool("json", false, "write one JSON array instead of a table")
	percent := f.Float64("percent", 100, "how many percent of the full sizes")
	seconds := f.Float64("seconds", 10, "seconds of one load")
	period := f.Duration("period", time.Minute, "time between two runs of a continuous job")
	dir := f.String("dir", "", "directory for the stores; a folder in it is made and removed (default a temporary one)")
	if err := f.Parse(args); err != nil {
		return err
	}
	chosen, err := scale.Choose(*names)
	switch {
	case err != nil:
		return err
	case f.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: see -h", f.Arg(0))
	case *percent <= 0 || *percent > 1000 || *seconds <= 0 || *period < time.Millisecond:
		return errors.New("-percent, -seconds and -period must be positive, and -percent at most 1000")
	}
	where, remove, err := scratch(*dir)
	if err != nil {
		return err
	}
	defer remove()
	o := scale.Options{Dir: where, Percent: *percent, For: time.Duration(*seconds * float64(time.Second)), Period: *period}
	results, err := runScenarios(ctx, chosen, o, log)
	if *asJSON {
		return errors.Join(err, scale.WriteJSON(out, results))
	}
	fmt.Fprint(out, about(where))
	return errors.Join(err, scale.WriteTable(out, results))
}

// runScenarios runs what it can, until ctx ends, and returns what failed beside
// what it found.
func runScenarios(ctx context.Context, chosen []scale.Scenario, o scale.Options, log io.Writer) ([]*scale.Result, error) {
	p := newProgress(log, len(chosen))
	defer p.end()
	var results []*scale.Result
	var failed []error
	for _, s := range chosen {
		p.begin(s.Name + ": " + s.What)
		r, err := s.Run(ctx, o)
		results, failed = append(results, r), append(failed, err)
		if ctx.Err() != nil {
			break
		}
	}
	return results, errors.Join(failed...)
}
