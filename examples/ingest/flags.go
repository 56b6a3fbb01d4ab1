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

// settings are what the flags say.
type settings struct {
	src     string
	data    string
	workers int
	fresh   bool
	json    bool
}

// errUsage is an error of the command line, told already.
var errUsage = errors.New("usage")

const usage = `Ingest indexes the Go files of a directory with durable objects and jobs.
Kill it at any time: the next run goes on where it was, and counts each file once.

Usage: go run ./examples/ingest [flags]

`

// parseFlags reads the command line. It returns flag.ErrHelp after -h, and
// errUsage after it has told on stderr what is wrong.
func parseFlags(args []string, stdout, stderr io.Writer) (settings, error) {
	s := settings{}
	set := flag.NewFlagSet("ingest", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&s.src, "src", "", "`directory` to index (default: the src of \"go env GOROOT\")")
	set.StringVar(&s.data, "data", "", "`directory` of the store (default: one for each -src, below the user's cache directory)")
	set.IntVar(&s.workers, "workers", 64, "how many files are under way at a time, 1 to 1024")
	set.BoolVar(&s.fresh, "fresh", false, "begin with a new store; the old one is deleted")
	set.BoolVar(&s.json, "json", false, "print the result as one line of JSON, last on stdout")
	err := set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		set.SetOutput(stdout)
		set.PrintDefaults()
		return s, flag.ErrHelp
	case err == nil && set.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q: name the directory with -src", set.Arg(0))
	case err == nil && (s.workers < 1 || s.workers > 1024):
		err = fmt.Errorf("-workers is %d: it must be from 1 to 1024", s.workers)
	}
	if err != nil {
		fmt.Fprintf(stderr, "ingest: %v (-h lists the flags)\n", err)
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
