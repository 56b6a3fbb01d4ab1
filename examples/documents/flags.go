package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

// settings are the values of the flags.
type settings struct {
	src   string
	dir   string
	limit int
	json  bool
	check bool
}

// errUsage is an error of the command line, told already.
var errUsage = errors.New("usage")

const usage = `Documents counts the terms in the doc comments of Go files with durable
workflows: children read groups of packages, and send their counts to 64
objects. With no flags it reads the source of your Go toolchain.

Kill it at any time, also with -9: run again with the same -dir it goes on, and
at the end each term is counted once.

Usage:

  go run ./examples/documents [flags]

Example:

  go run ./examples/documents -dir /tmp/documents -check

Flags:

  -src DIR   read the Go files below DIR, without tests; they must not change
             until the run has ended
             (default: the src directory of "go env GOROOT")
  -dir DIR   keep the store in DIR; a run that was stopped goes on there
             (default: a new directory, which is deleted at the end)
  -n N       read at most N packages; 0 reads all (default: 0)
  -json      print the result as one line of JSON on standard output
             (default: print sentences)
  -check     count again in a plain loop, and exit with 1 if the totals differ
             (default: trust them)
  -h         print this help

Exit codes: 0 all is counted, 1 an error or a difference, 2 wrong flags,
130 after Ctrl-C.
`

// flags is the command line, which is read into s.
func flags(s *settings) *flag.FlagSet {
	set := flag.NewFlagSet("documents", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&s.src, "src", "", "")
	set.StringVar(&s.dir, "dir", "", "")
	set.IntVar(&s.limit, "n", 0, "")
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
		err = fmt.Errorf("unexpected argument %q: name the directory with -src", set.Arg(0))
	case err == nil && s.limit < 0:
		err = fmt.Errorf("-n is %d: it must not be negative", s.limit)
	}
	if err != nil {
		fmt.Fprintf(stderr, "documents: %v (-h helps)\n", err)
		return s, errUsage
	}
	return s, nil
}
