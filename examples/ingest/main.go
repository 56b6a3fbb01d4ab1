// Ingest indexes the Go files of a directory, by default those of the Go
// toolchain itself: how many files, bytes and lines each top-level package has,
// and which packages are imported most. It does so with durable objects and jobs.
// It can be killed at any instant, any number of times: the next run begins where
// the last one stood, and at the end each file is counted once.
//
// A file is counted exactly once for these reasons:
//
//   - The walk compares each file with its object, which knows the size and the
//     time of change of the version that was counted last (index.go). For a file
//     that differs the walk enqueues a task, with the number of the coming version
//     as its idempotency key. So a walk that is killed half-way may be done again
//     (enqueue.go).
//   - A task reads the file and gives the reading to the file's object. The object
//     makes the next version: a change that subtracts the old numbers and adds the
//     new ones. A task that is repeated after a crash gets the change that was
//     stored first (jobs.go, measure.go).
//   - The change goes as an event to a debounce object of its top-level package.
//     Its id is path and version: added twice, it is there once.
//   - A flush adds the changes of a generation to the totals of the package, once
//     for each (object, generation), which is the idempotency key (totals.go).
//
// A file that is gone is a change that only subtracts. A file that stays unreadable
// is a dead letter: it is shown at the end, not counted, and tried again by a run
// that finds it readable. A change that keeps size and time of a file goes
// unnoticed.
//
// The store is finished when, after a walk to the end, no task is left and no
// change waits for a flush. A continuous job looks each second, notes the progress
// in a ledger, and ends itself then (ledger.go). A run over a finished store has
// nothing to do if the walk finds no difference.
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
