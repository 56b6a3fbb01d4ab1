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
	at    int
	json  bool
	check bool
}

// errUsage is an error of the command line, told already.
var errUsage = errors.New("usage")

const usage = `Agent decides which Go files a reviewer should read: an object with a journal
that looks at one file after another. With no flags it looks at the source of
your Go toolchain.

Kill it at any time, also with -9: run again with the same -dir it goes on
where its journal ends.

Usage:

  go run ./examples/agent [flags]

Example:

  go run ./examples/agent -dir /tmp/agent -check

Flags:

  -src DIR   look at the Go files below DIR; they must not change until the
             agent has ended
             (default: the src directory of "go env GOROOT")
  -dir DIR   keep the store in DIR; an agent that was stopped goes on there
             (default: a new directory, which is deleted at the end)
  -n N       look at N files at most; 0 looks at all (default: 0)
  -at N      tell also the state as of file N; 0 tells none (default: 0)
  -json      print the result as one line of JSON on standard output
             (default: print sentences)
  -check     decide again in a plain loop, and exit with 1 if a verdict differs
             (default: trust them)
  -h         print this help

Exit codes: 0 the agent has looked at all files, 1 an error or a difference,
2 wrong flags, 130 after Ctrl-C.
`

// flags is the command line, which is read into s.
func flags(s *settings) *flag.FlagSet {
	set := flag.NewFlagSet("agent", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&s.src, "src", "", "")
	set.StringVar(&s.dir, "dir", "", "")
	set.IntVar(&s.limit, "n", 0, "")
	set.IntVar(&s.at, "at", 0, "")
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
	case err == nil && s.at < 0:
		err = fmt.Errorf("-at is %d: it must not be negative", s.at)
	}
	if err != nil {
		fmt.Fprintf(stderr, "agent: %v (-h helps)\n", err)
		return s, errUsage
	}
	return s, nil
}
