package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// settings are the values of the flags.
type settings struct {
	orders      int
	kills       int
	serverKills int
	seed        uint64
	dir         string
	json        bool
	check       bool
}

// errUsage is an error of the command line, told already.
var errUsage = errors.New("usage")

// ordersMax bounds -n.
const ordersMax = 100_000

const usage = `Orders runs the orders of a shop as durable workflows. Each order is held in the
warehouse, paid at a payment server, packed, and shipped; an order that cannot
be shipped is refunded. The payment server is another process. It is slow, fails
now and then, and answers some requests only when their client has gone.

The program kills the worker and the payment server with SIGKILL again and again
while they work, and starts them again. At the end it compares the payment
server's own book with the orders: each order must be charged exactly once, or
charged and refunded exactly once.

Usage:

  go run ./examples/orders [flags]

Example:

  go run ./examples/orders -n 2000 -kills 30 -check

Flags:

  -n N             place N orders, at most 100,000 (default: 500)
  -kills N         kill the worker N times (default: 10)
  -server-kills N  kill the payment server N times (default: 2)
  -seed N          draw the kills and the faults from N (default: 1)
  -dir DIR         keep the store and the book in DIR; a run that was stopped
                   goes on there (default: a new directory, which is deleted if
                   all is right)
  -json            print the result as one line of JSON on standard output
                   (default: print sentences)
  -check           exit with 1 if an order is wrong or lost (default: only tell)
  -h               print this help

Exit codes: 0 the run has ended, 1 an error or a failed -check, 2 wrong flags,
130 after Ctrl-C.
`

// flags is the command line, which is read into s.
func flags(s *settings) *flag.FlagSet {
	set := flag.NewFlagSet("orders", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.IntVar(&s.orders, "n", 500, "")
	set.IntVar(&s.kills, "kills", 10, "")
	set.IntVar(&s.serverKills, "server-kills", 2, "")
	set.Uint64Var(&s.seed, "seed", 1, "")
	set.StringVar(&s.dir, "dir", "", "")
	set.BoolVar(&s.json, "json", false, "")
	set.BoolVar(&s.check, "check", false, "")
	return set
}

// parseFlags reads the command line. It returns flag.ErrHelp after -h, and errUsage after
// it has told the mistake on stderr.
func parseFlags(args []string, stdout, stderr io.Writer) (settings, error) {
	s := settings{}
	set := flags(&s)
	err := set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return s, flag.ErrHelp
	case err == nil && set.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", set.Arg(0))
	case err == nil:
		err = s.validate()
	}
	if err != nil {
		fmt.Fprintf(stderr, "orders: %v (-h helps)\n", err)
		return s, errUsage
	}
	return s, nil
}

// validate returns the first mistake. Each kill needs an order that is placed before it,
// and one more is placed after the last.
func (s settings) validate() error {
	switch {
	case s.orders < 1 || s.orders > ordersMax:
		return fmt.Errorf("-n is %d: it must be from 1 to %d", s.orders, ordersMax)
	case s.kills < 0:
		return fmt.Errorf("-kills is %d: it must not be negative", s.kills)
	case s.serverKills < 0:
		return fmt.Errorf("-server-kills is %d: it must not be negative", s.serverKills)
	case s.kills > ordersMax || s.serverKills > ordersMax || s.kills+s.serverKills >= s.orders:
		return fmt.Errorf("-n is %d: it must be more than the kills together, %d", s.orders, s.kills+s.serverKills)
	}
	return nil
}
