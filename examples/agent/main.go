// Agent decides which Go files a reviewer should read, by default those of the Go toolchain
// itself. It is one durable object with a journal: each event is a file that it has looked at
// and its verdict. A verdict depends on all files before it, so one event that is lost,
// doubled or swapped changes those that follow. The agent can be killed at any instant, any
// number of times: run again with the same -dir it goes on where its journal ends.
//
//   - The agent is driven by its alarm (agent.go). A turn reads the next files, decides,
//     appends the events and sets the alarm for the next turn; all that is one commit. So
//     the journal, the state and the wish to go on are never apart, and the next process
//     needs nothing but the store.
//   - The verdict is a function of the state and the file, and the state is a function of the
//     events (decide.go). Neither has a clock, a random number or memory of its own.
//   - The journal stores a snapshot at every 100th event, so a start reads the snapshot and
//     fewer than 100 events. All events are kept, so the past of the agent can be asked for:
//     -at tells its state as of an earlier file.
//
// The flag -check decides again in a plain loop, and compares each verdict and the state
// (check.go). The files must not change until the agent has ended. A turn that two kills in a
// row have cut off is held back for some seconds, because it might be the cause.
//
// The same agent is crashed at each of its points, over a few files in memory, by
//
//	go test -v -run Crash ./examples/agent
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
	r, err := review(ctx, s, stderr)
	if err == nil {
		err = r.print(stdout, stderr, s.json)
	}
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case err != nil:
		fmt.Fprintf(stderr, "agent: %v\n", err)
		return exitError
	case len(r.differences) > 0:
		return exitError
	}
	return 0
}
