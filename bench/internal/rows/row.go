// Package rows holds the rows P1 to P37, P39 and P42 to P50 of docs/PERFORMANCE.md: for each the operation,
// its reference, the sizes, and the limit.
package rows

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-dev/holdfast/bench/internal/fail"
	"github.com/holdfast-dev/holdfast/bench/internal/measure"
)

// Size says how much a row is given to do.
type Size int

// The sizes. Small is the one that the targets name, but for 10M objects.
const (
	Tiny  Size = iota // shows that a row works; its figures mean nothing
	Small             // all rows in about half an hour
	Full              // with more sizes for plots, and 10M objects
)

// ParseSize is the size of that name.
func ParseSize(s string) (Size, error) {
	for i, name := range []string{"tiny", "small", "full"} {
		if s == name {
			return Size(i), nil
		}
	}
	return 0, fmt.Errorf("size %q: take tiny, small or full", s)
}

// pick is the first of three values that belongs to the size.
func pick[T any](s Size, tiny, small, full T) T { return [...]T{tiny, small, full}[s] }

// Case is one line of the table: a row at one size.
type Case struct {
	ID      string // such as P3
	What    string
	Size    string  // such as "callers=64"; empty if the row has none
	N       float64 // the number in Size, for plots
	Unit    string
	Against string // the reference; empty: there is none
	// Set is the reference if that is a setting, in Unit, and nothing that is measured. Zero: it is measured.
	Set     float64
	Rounds  int // at most so many; zero: as many as asked for
	Targets []Target
	// Needs returns an error that says what to install, if the machine lacks something; nil: nothing is needed.
	Needs func() error
	// Prepare sets up both sides.
	Prepare func(ctx context.Context, e *Env) (*Pair, error)
}

// Pair is the two sides of a case, ready to be measured in turn.
type Pair struct {
	Ours, Reference Side // Reference is nil if there is none
	Close           func() error
}

// Side measures once.
type Side func(ctx context.Context) (Sample, error)

// Sample is the result of one round of one side, Value in the unit of the case.
type Sample struct {
	Value  float64
	Lat    *measure.Quantiles // nil: no latencies
	Costs  measure.Costs
	Counts Counts
}

// Counts are what happened in a round and is no cost of one operation, by name.
type Counts map[string]float64

// Env is the environment of a case.
type Env struct {
	Dir   string        // for all that is stored; the caller removes it
	For   time.Duration // of one round of one side, where the row has no fixed amount of work
	Size  Size
	dirs  int
	cache map[string]string
}

// NewDir makes an empty directory.
func (e *Env) NewDir() (string, error) {
	e.dirs++
	dir := fmt.Sprintf("%s/%d", e.Dir, e.dirs)
	return dir, os.MkdirAll(dir, 0o755)
}

// Made returns a directory that make has filled, now or for an earlier case with
// the same key. It is not to be changed.
func (e *Env) Made(key string, make func(dir string) error) (string, error) {
	if dir, ok := e.cache[key]; ok {
		return dir, nil
	}
	dir, err := e.NewDir()
	if err != nil {
		return "", err
	}
	if err := make(dir); err != nil {
		return "", err
	}
	if e.cache == nil {
		e.cache = map[string]string{}
	}
	e.cache[key] = dir
	return dir, nil
}

// setup opens what a case needs, and closes it in reverse order. If it fails, it
// ends the function that prepared or fresh runs, so its callers check no errors.
type setup struct {
	*Env
	fs   []func() error
	dirs []string
}

// keep returns v and has it closed at the end.
func keep[T interface{ Close() error }](c *setup, v T) T {
	c.fs = append(c.fs, v.Close)
	return v
}

func (c *setup) close() error {
	var errs []error
	for i := len(c.fs) - 1; i >= 0; i-- {
		errs = append(errs, c.fs[i]())
	}
	for _, dir := range c.dirs {
		errs = append(errs, os.RemoveAll(dir))
	}
	c.fs, c.dirs = nil, nil
	return errors.Join(errs...)
}

// dir makes a directory that close removes.
func (c *setup) dir() string {
	dir := fail.Must(c.NewDir())
	c.dirs = append(c.dirs, dir)
	return dir
}

// prepared makes a Prepare of a function that opens both sides.
func prepared(f func(ctx context.Context, c *setup) (ours, reference Side)) func(context.Context, *Env) (*Pair, error) {
	return func(ctx context.Context, e *Env) (p *Pair, err error) {
		c := &setup{Env: e}
		defer func() {
			if err != nil {
				err = errors.Join(err, c.close())
			}
		}()
		defer fail.Caught(&err)
		ours, reference := f(ctx, c)
		return &Pair{ours, reference, c.close}, nil
	}
}

// fresh is a side that is set up anew for each round.
func fresh(e *Env, f func(ctx context.Context, c *setup) (Sample, error)) Side {
	return func(ctx context.Context) (_ Sample, err error) {
		c := &setup{Env: e}
		defer func() { err = errors.Join(err, c.close()) }()
		defer fail.Caught(&err)
		return f(ctx, c)
	}
}
