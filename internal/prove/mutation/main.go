// Mutation changes the code of a package in small ways, one at a time, and sees
// whether the package's tests notice.
//
//	go run ./internal/prove/mutation -pkg ./alarm
//	go run ./internal/prove/mutation -pkg ./object -file turn.go -max 50
//	go run ./internal/prove/mutation -pkg ./jobs -tests ./recovery,./jobs/continuous
//
// The bugs of internal/prove/mutants are chosen by hand, each for a promise. Those here
// come from the syntax: a condition negated, a comparison off by one, == and !=
// swapped, && and || swapped, + and - swapped, an integer constant one larger,
// true and false swapped, a call or an assignment to a field left out, an error
// returned as nil. All of them are compiled at once, into one test binary of an
// overlay (see go help build), where a variable of the environment switches one
// of them on.
//
// The tests are those of the package itself. -tests adds the tests of further packages,
// which prove a package that is a library for them. They get a binary each, with the
// same changes. The packages are run in the order given, so name the quickest first:
// the first package with a failing test ends the trial. In each package only the tests
// run that reach the changed code.
//
// A mutation is found if the tests fail, by an assertion or a panic, or hang: they
// use many times their usual processor time, or never end. These time-outs are also
// counted apart. One that no test reaches survives untried. Those
// that cannot change the behaviour stand in equivalent.txt with the reason, and
// do not count. Constants that are returned beside an error, and capacities of slices,
// are not changed at all. The last line is a summary as JSON. The program ends with 1
// if the share found is below the floor. Ctrl-C ends it with the results so far, which
// are a fair sample, since the order is random.
//
// Calls of sync.Mutex are not left out: a missing Lock shows under the race
// detector only, and a missing Unlock always hangs.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

type options struct {
	pkg, file, run string
	tests          string
	max, together  int
	seed           uint64
	patience       int
	least, most    time.Duration
	floor          float64
	list           bool
	equivalent     string // the path of the list of equivalent mutations
}

func main() {
	var o options
	flag.StringVar(&o.pkg, "pkg", "", "the `package` to change, such as ./alarm")
	flag.StringVar(&o.file, "file", "", "comma-separated `files` to change, or lines of them such as pump.go:118 (default: all files)")
	flag.StringVar(&o.tests, "tests", "", "comma-separated further `packages` whose tests are run as well, in this order, such as ./recovery,./jobs/continuous")
	flag.StringVar(&o.run, "run", "", "run only the tests that match this `pattern` (default: all tests)")
	flag.IntVar(&o.max, "max", 0, "try at most `n` mutations (default: all)")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the order in which mutations are tried, and so of the choice that -max makes")
	flag.IntVar(&o.together, "together", 2, "run the tests of `n` mutations at a time")
	flag.IntVar(&o.patience, "patience", 10, "stop the tests after `n` times the processor time that they use unchanged")
	flag.DurationVar(&o.least, "least", 5*time.Second, "but not before they used this `time`")
	flag.DurationVar(&o.most, "most", 0, "of each package run only the quickest tests that reach a mutation and together take no longer than this `time` (default: all)")
	flag.Float64Var(&o.floor, "floor", 90, "end with 1 if less than this `percentage` is found")
	flag.BoolVar(&o.list, "list", false, "print the mutations and try none")
	flag.StringVar(&o.equivalent, "equivalent", "internal/prove/mutation/equivalent.txt", "`path` of the list of equivalent mutations, from the root of the module")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutation:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	if o.pkg == "" || o.together < 1 || o.patience < 1 {
		return fmt.Errorf("name a package with -pkg, such as -pkg ./alarm; -together and -patience are at least 1")
	}
	p, err := load(ctx, o.pkg)
	if err != nil {
		return err
	}
	equivalents, err := readEquivalents(filepath.Join(p.root, o.equivalent))
	if err != nil {
		return err
	}
	all := p.mutations()
	if o.list {
		for _, m := range all {
			fmt.Fprintln(out, m)
		}
		return nil
	}
	dir, err := os.MkdirTemp("", "mutation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	trial := &trial{pkg: p, dir: dir, options: o}
	if err := trial.addSuites(ctx); err != nil {
		return err
	}
	if err := trial.build(ctx, all); err != nil {
		return err
	}
	if err := trial.unchanged(ctx); err != nil {
		return err
	}
	chosen, left := equivalents.leaveOut(choose(all, o))
	results := trial.tryAll(ctx, chosen, progress(out, len(chosen)))
	for _, e := range equivalents.stale(p.rel, all) {
		fmt.Fprintf(out, "equivalent.txt: no such mutation any more, remove it: %s\n", e)
	}
	s := summarize(p.rel, results, left)
	s.Untried = len(chosen) - len(results)
	fmt.Fprintf(out, "%s\n%s\n", s.text(), s.line())
	return s.verdict(o.floor)
}

// choose returns the mutations that the options ask for, in a random order, so that
// a run that is ended early has tried a fair sample.
func choose(all []mutation, o options) []mutation {
	places := strings.Split(o.file, ",")
	var chosen []mutation
	for _, m := range all {
		name := filepath.Base(m.File)
		if o.file == "" || slices.Contains(places, name) || slices.Contains(places, fmt.Sprintf("%s:%d", name, m.Line)) {
			chosen = append(chosen, m)
		}
	}
	r := rand.New(rand.NewPCG(o.seed, 0))
	r.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	if o.max > 0 && o.max < len(chosen) {
		chosen = chosen[:o.max]
	}
	return chosen
}
