// Ingest indexes the Go files of a directory, by default those of the Go
// toolchain itself: how many files, bytes and lines each top-level package has,
// and which packages are imported most. It does so with durable objects and jobs,
// and can be killed at any instant, any number of times: the next run goes on
// where it was, and at the end each file is counted once.
//
// How a file comes to be counted exactly once:
//
//   - The walk compares each file with its object, which knows the size and the
//     time of change of what was counted last (index.go). For one that differs it
//     enqueues a task, with the number of the coming version as its idempotency
//     key; so a walk that is killed half-way may simply be done again (enqueue.go).
//   - A task reads the file and gives what it read to the file's object, which
//     makes the next version of it: a change that takes back what was counted and
//     adds what is counted now. Who repeats a task after a crash gets the change
//     that was stored first (jobs.go, measure.go).
//   - The change goes as an event to a debounce object of its top-level package.
//     Its id is path and version: added twice, it is there once.
//   - A flush folds the changes of a generation into the totals of the package,
//     once for each (object, generation), which is the idempotency key (totals.go).
//
// A file that is gone is a change without an addition. A file that stays
// unreadable is a dead letter: it is shown at the end, not counted, and tried
// again by a run that finds it readable. A file whose content was changed without
// changing its size or its time is not noticed.
//
// The store is finished when, after a walk to the end, no task is left and no
// change waits for a flush. A continuous job looks each second, notes what it saw
// in a ledger, and ends itself then (ledger.go). A run over a finished store in
// which the walk finds no difference has nothing to do.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitError       = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is main with its surroundings as arguments.
func run(args []string, stdout, stderr io.Writer) int {
	s, err := parseFlags(args, stdout, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	err = ingest(ctx, s, stdout, stderr)
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case err != nil:
		say(stderr, "ingest: %v", err)
		return exitError
	}
	return 0
}
