// Command holdfast-bench measures the rows P1 to P37, P39 and P42 to P50 of docs/PERFORMANCE.md: each
// workload and its reference in turn, in one process, on a real directory with
// real syncs. With the argument "scale" it runs the scenarios of a large store.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/holdfast-dev/holdfast/bench/internal/workload"
)

func main() {
	workload.Child() // does not return if this is a child
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "holdfast-bench: interrupted")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "holdfast-bench:", err)
		os.Exit(1)
	}
}

// run is the command without its process.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	if len(args) > 0 && args[0] == "scale" {
		return runScale(ctx, args[1:], out, log)
	}
	return runRows(ctx, args, out, log)
}
