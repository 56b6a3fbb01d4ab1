package queue

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/bench/peers/internal/figure"
)

// Flags makes a Load with fields that are set when f is parsed.
func Flags(f *flag.FlagSet) *Load {
	l := &Load{}
	f.DurationVar(&l.For, "for", 5*time.Second, "time of a workload without a fixed number")
	f.IntVar(&l.Jobs, "jobs", 20_000, "number of jobs")
	f.IntVar(&l.Alarms, "alarms", 10_000, "number of alarms")
	f.DurationVar(&l.Lead, "lead", 12500*time.Millisecond, "from the start of the workers until the alarms are due")
	f.IntVar(&l.Alone, "alone", 1000, "number of steps of a workflow that runs alone")
	f.IntVar(&l.Steps, "steps", 500, "number of steps of each of 64 workflows at a time")
	f.IntVar(&l.Runs, "runs", 1024, "number of workflows of three steps at a time")
	return l
}

// Main parses the flags and runs measure, until SIGINT or SIGTERM.
func Main(measure func(ctx context.Context, l Load, r *figure.Reporter) error) {
	l, r := Flags(flag.CommandLine), figure.Flags(flag.CommandLine)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := measure(ctx, *l, r)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
