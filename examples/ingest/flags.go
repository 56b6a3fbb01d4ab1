package main

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// settings are the values of the flags.
type settings struct {
	src     string
	data    string
	workers int
	fresh   bool
	json    bool
}

// again says which command goes on with the store.
func (s settings) again() string {
	if s.fresh {
		return "the same command without -fresh" // with it the store would be deleted
	}
	return "the same command"
}

// errUsage is an error of the command line, told already.
var errUsage = errors.New("usage")

// workersMax bounds -workers.
const workersMax = 1024

const usage = `Ingest indexes the Go files of a directory with durable objects and jobs.
Kill it at any time: the next run goes on from there, and each file is counted
once. With no flags it indexes the source of your Go toolchain.

Usage:

  go run ./examples/ingest [flags]

Example:

  go run ./examples/ingest -src ~/project -data /tmp/index -workers 16

Flags:

  -src DIR      index the Go files below DIR
                (default: the src directory of "go env GOROOT")
  -data DIR     keep the store in DIR, which is made if it is missing (default:
                a directory for each -src, below the user's cache directory)
  -workers N    index N files at a time, 1 to 1,024 (default: 64)
  -fresh        delete the store and begin with a new one (default: go on)
  -json         print the result as one line of JSON on standard output, and
                all else on standard error (default: print tables)
  -h            print this help

Exit codes: 0 all is indexed, 1 an error, 2 wrong flags, 130 after Ctrl-C.
`

// flags is the command line, which is read into s.
func flags(s *settings) *flag.FlagSet {
	set := flag.NewFlagSet("ingest", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&s.src, "src", "", "")
	set.StringVar(&s.data, "data", "", "")
	set.IntVar(&s.workers, "workers", 64, "")
	set.BoolVar(&s.fresh, "fresh", false, "")
	set.BoolVar(&s.json, "json", false, "")
	return set
}

// parseFlags reads the command line. It returns flag.ErrHelp after -h, and
// errUsage after it has told the mistake on stderr.
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
	case err == nil && (s.workers < 1 || s.workers > workersMax):
		err = fmt.Errorf("-workers is %d: it must be from 1 to %d", s.workers, workersMax)
	}
	if err != nil {
		say(stderr, "ingest: %v (-h helps)", err)
		return s, errUsage
	}
	return s, nil
}

// toolchainSource is the Go toolchain's own source tree.
func toolchainSource() (string, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if root := strings.TrimSpace(string(out)); err == nil && root != "" {
		return filepath.Join(root, "src"), nil
	}
	return "", errors.New("the Go toolchain was not found: name a directory with -src")
}

// defaultData is the store of a source below the user's cache directory.
func defaultData(root string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("there is no cache directory (%w): name one for the store with -data", err)
	}
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(cache, "holdfast", fmt.Sprintf("ingest-%x", sum[:4])), nil
}
