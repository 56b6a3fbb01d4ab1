package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// command is the common part of measuring rows and running scenarios; R is the result
// of one.
type command[R any] struct {
	*flag.FlagSet
	asJSON *bool
	dir    *string
	table  func(io.Writer, []R) error
}

func newCommand[R any](name string, log io.Writer, usage func(), table func(io.Writer, []R) error) *command[R] {
	c := &command[R]{FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), table: table}
	c.SetOutput(log)
	c.Usage = func() {
		usage()
		c.PrintDefaults()
	}
	c.asJSON = c.Bool("json", false, "write one JSON array instead of a table")
	c.dir = c.String("dir", "", "directory for the stores; a folder in it is made and removed (default a temporary one)")
	return c
}

func (c *command[R]) parse(args []string) error {
	if err := c.Parse(args); err != nil {
		return err
	}
	if c.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: see -h", c.Arg(0))
	}
	return nil
}

// report gives measure a directory and writes its results, also beside an error.
func (c *command[R]) report(out io.Writer, measured func(dir string) ([]R, error)) error {
	where, remove, err := scratch(*c.dir)
	if err != nil {
		return err
	}
	defer remove()
	results, err := measured(where)
	if *c.asJSON {
		return errors.Join(err, measure.WriteJSON(out, results))
	}
	fmt.Fprintln(out, about(where))
	return errors.Join(err, c.table(out, results))
}

// each runs the items until ctx ends, and returns the results, which may be a part, and
// the errors.
func each[T, R any](ctx context.Context, log io.Writer, items []T, name func(T) string, run func(T, *progress) (*R, error)) ([]*R, error) {
	p := newProgress(log, len(items))
	defer p.end()
	var results []*R
	var failed []error
	for _, item := range items {
		p.begin(name(item))
		r, err := run(item, p)
		failed = append(failed, err)
		if r != nil {
			results = append(results, r)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return results, errors.Join(failed...)
}

// scratch makes a directory of our own in dir, or in the system's place for temporary
// files, and returns a function that removes it.
func scratch(dir string) (string, func(), error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return "", nil, err
		}
	}
	made, err := os.MkdirTemp(dir, "holdfast-bench-")
	if err != nil {
		return "", nil, err
	}
	return made, func() {
		_ = os.RemoveAll(made) // the figures are out; the leftovers are in a temporary directory
	}, nil
}
