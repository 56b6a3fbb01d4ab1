// Documents counts the terms in the doc comments of Go files, by default those of the Go
// toolchain itself, with durable workflows. It can be killed at any instant, any number of
// times: run again with the same -dir it goes on, and at the end each term of each file is
// counted once.
//
// One run of the workflow "index" counts a tree (index.go):
//
//  1. The step "find" lists the packages: directories with Go files (source.go).
//  2. Each begins a child for each group of 100 packages: the workflow "group".
//  3. A child reads one package after another, each in a step (terms.go). The value of a
//     step is the counts of its package, so a child that is repeated after a crash reads no
//     package twice.
//  4. An Atomic of the child sends the counts of its group to 64 shards. The hash of a term
//     chooses its shard, so that the shards add up different terms at the same time.
//  5. A shard is an object with a row for each of its terms (shard.go). Once it has the
//     counts of all groups, it sends a signal to the run, with its totals and its most
//     frequent terms.
//  6. The run takes the signals of all shards, and returns the totals.
//
// A term is counted exactly once for these reasons:
//
//   - The messages of an Atomic leave if and only if its entry is stored, and an Atomic that
//     is stored does not run again.
//   - A message takes effect exactly once: the commit of the shard that adds the counts also
//     removes the message.
//   - The signal of a shard is a message of the commit that completes it.
//
// So no part of the program looks for repeats. The flag -check counts all again in a plain
// loop, and compares each term (check.go). The tree must not change until the run has ended.
// Work that was cut off by two kills in a row goes on some seconds later, because it might be
// the cause.
//
// It has neither phases nor branches of its own: Each over the groups is its only fan-out, and the
// steps of a child are its progress already.
//
// The same workflows are crashed at each of their points, over a small tree in memory, by
//
//	go test -v -run Crash ./examples/documents
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
	r, err := documents(ctx, s, stderr)
	if err == nil {
		err = r.print(stdout, stderr, s.json)
	}
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case err != nil:
		fmt.Fprintf(stderr, "documents: %v\n", err)
		return exitError
	case len(r.differences) > 0:
		return exitError
	}
	return 0
}
