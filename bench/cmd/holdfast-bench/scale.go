package main

import (
	"context"
	"errors"
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

func scaleHelp(log io.Writer) {
	fmt.Fprint(log, scaleUsage)
	for _, s := range scale.Scenarios {
		fmt.Fprintf(log, "  %-11s %s\n", s.Name, s.What)
	}
	fmt.Fprintln(log, "\nflags:")
}

func runScale(ctx context.Context, args []string, out, log io.Writer) error {
	c := newCommand("holdfast-bench scale", log, func() { scaleHelp(log) }, scale.WriteTable)
	names := c.String("scenarios", "", "scenarios to run, with commas between (default all)")
	percent := c.Float64("percent", 100, "how many percent of the full sizes")
	tasks := c.Int("tasks", 0, "tasks of the scenario looks (default a tenth of its objects)")
	seconds := c.Float64("seconds", 10, "seconds of one load")
	period := c.Duration("period", time.Minute, "time between two runs of a continuous job")
	if err := c.parse(args); err != nil {
		return err
	}
	if *percent <= 0 || *percent > 1000 || *seconds <= 0 || *period < time.Millisecond || *tasks < 0 {
		return errors.New("-percent, -seconds and -period must be positive, -percent at most 1000, and -tasks not negative")
	}
	chosen, err := scale.Choose(*names)
	if err != nil {
		return err
	}
	return c.report(out, func(dir string) ([]*scale.Result, error) {
		o := scale.Options{Dir: dir, Percent: *percent, Tasks: *tasks, For: time.Duration(*seconds * float64(time.Second)), Period: *period}
		return each(ctx, log, chosen,
			func(s scale.Scenario) string { return s.Name + ": " + s.What },
			func(s scale.Scenario, _ *progress) (*scale.Result, error) { return s.Run(ctx, o) })
	})
}
