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

// Flags makes a Load whose fields are set when f is parsed.
func Flags(f *flag.FlagSet) *Load {
	l := &Load{}
	f.DurationVar(&l.For, "for", 5*time.Second, "time of a workload without a fixed number")
	f.IntVar(&l.Jobs, "jobs", 20_000, "number of jobs")
	f.IntVar(&l.Alarms, "alarms", 10_000, "number of alarms")
	f.DurationVar(&l.Lead, "lead", 12500*time.Millisecond, "from the start of the workers until the alarms are due")
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
