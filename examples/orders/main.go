// Orders runs the orders of a shop as durable workflows. It kills their worker and the
// payment server with SIGKILL again and again, and then shows in the payment server's own
// book that each order was charged exactly once, or charged and refunded exactly once.
//
// Three processes take part. The program starts the two others, which are this program
// with a hidden first argument, kills them by plan (plan.go, campaign.go), and judges the
// end (judge.go):
//
//   - The worker has a host with the workflows of all orders (worker.go, shop.go). A run
//     holds a piece in the warehouse, waits for an approval if the order is expensive, has
//     the order charged, sleeps while it is packed, and ships it. The warehouse refuses
//     each 7th order when it is shipped. Then the undos run: the refund, and the release.
//   - The payment server stands for a service that knows nothing of Holdfast (payments.go).
//     It appends each charge and refund to its book and syncs the file before it answers
//     (book.go). It is slow, fails now and then, and answers some requests only when their
//     client has gone (payments_fault.go).
//
// Money moves exactly once for these reasons:
//
//   - A step that was recorded does not run again.
//   - A step that was cut off before its record runs again with the same key, and the
//     payment server answers a key that it knows from its book.
//   - A charge is tried until it has an answer, because nobody could tell otherwise
//     whether there is anything to refund.
//   - An undo is a step too, so a refund that was cut off goes on with its key.
//
// The payment server does not help beyond its keys: two charges under two keys are two
// lines in the book, and the judge finds them.
//
// The same workflow is crashed at each of its points, with a bank in memory, by
//
//	go test -v -run Crash ./examples/orders
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
	"time"
)

// Exit codes.
const (
	exitError       = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is main with its surroundings as arguments.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && (role(args[0]) == worker || role(args[0]) == paymentServer) {
		return play(role(args[0]), args[1:], stdin, stdout, stderr)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once, and its children end in order
	return runUntil(ctx, args, stdout, stderr)
}

// runUntil is run for the program itself, which ends in order when ctx does.
func runUntil(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parseFlags(args, stdout, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage
	}
	r, err := orders(ctx, s, stderr)
	switch {
	case errors.Is(err, errInterrupted):
		fmt.Fprintf(stderr, "orders: %v\n", err)
		return exitInterrupted
	case err == nil:
		err = r.print(stdout, stderr, s.json)
	}
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "orders: %v\n", err)
		return exitError
	case s.check && !r.sound():
		return exitError
	}
	return 0
}

// orders is the whole program, up to the printing of its result.
func orders(ctx context.Context, s settings, stderr io.Writer) (report, error) {
	dir, err := openDirectory(s.dir, s.orders, endTime)
	if err != nil {
		return report{}, err
	}
	fmt.Fprintf(stderr, "Directory: %s\n", dir.path)
	m := newMeter(stderr)
	c, err := newCampaign(s, dir, m)
	if err != nil {
		return report{}, errors.Join(err, dir.close(true))
	}
	began := time.Now()
	err = c.run(ctx)
	m.end(c)
	if err != nil && !errors.Is(err, errStalled) {
		fmt.Fprintf(stderr, "To go on, run the same command with -dir %s\n", dir.path)
		return report{}, errors.Join(err, dir.close(false))
	}
	r, failed := c.report(time.Since(began))
	if err != nil {
		r.problems = append(r.problems, err.Error())
	}
	return r, errors.Join(failed, dir.close(failed == nil && r.sound()))
}
