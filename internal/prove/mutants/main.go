// Mutants puts bugs into the library, one at a time, and checks that the tests
// find them.
//
//	go run ./internal/prove/mutants
//	go run ./internal/prove/mutants -only commit-without-sync -v
//
// Each file testdata/NAME.mutant is a bug: the promise it breaks, the package and
// name of the test that must find it, and the lines it changes in a function.
//
//	breaks O7, found by object TestCrashDeposits/map
//
//	func object (*activation).serve
//	+	before := a.last.Load()
//	 	r.err = a.perform(t, r)
//	-	r.ticket = a.upTo(r)
//	+	r.ticket = storage.Ticket(before)
//
// A line with - is removed, one with + is added, and any other must be there. The
// lines without + occur exactly once in the function. Indentation, blank lines and
// comments don't matter, and the function may be in any file of the package.
// Functions are named as in T.Method, (*T).Method or open, without type
// parameters. After a blank line follows another change in the same function, or a
// line "func". A line "declare PACKAGE" begins a file of imports and declarations
// to add, each line with +.
//
// All mutants are compiled at once, with an overlay (see go help build), into one
// test binary for each package. A mutated function begins with a copy of itself for
// each of its mutants, and an environment variable switches a copy on. Each test
// also runs without a mutant, and must pass.
//
// A mutant is found if its test fails by an assertion. A panic doesn't count, and a
// test still running after ten minutes hangs. A mutant is slow if its test would
// need more than 2 s on the reference machine, by a sort that is timed first; this
// is reported and fails nothing.
//
// The table of all results goes to out/mutants.md, and the last line printed is a
// summary as JSON. The exit code is 1 if a mutant is not found.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
)

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "comma-separated `names` of mutants to try (default: all)")
	flag.BoolVar(&o.json, "json", false, "print one JSON array of results and nothing else")
	flag.BoolVar(&o.verbose, "v", false, "print each test's output")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

type options struct {
	only          string
	json, verbose bool
}

func run(ctx context.Context, o options) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	chosen, err := choose(root, o.only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	lab := &lab{root: root, dir: dir}
	if err := lab.build(ctx, chosen); err != nil {
		return err
	}
	results, err := lab.tryAll(ctx, chosen, func(r result) {
		if !o.json {
			fmt.Println(r.line(o.verbose))
		}
	})
	if err != nil {
		return err
	}
	sum := summarize(results, lab.pace)
	if !o.json {
		fmt.Println(sum.line())
	} else if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		return err
	}
	if err := writeTable(root, sum, results); err != nil {
		return err
	}
	return sum.verdict()
}

// choose returns the mutants with the given names, or all.
func choose(root, names string) ([]mutant, error) {
	all, err := readMutants(root)
	if err != nil || names == "" {
		return all, err
	}
	var chosen []mutant
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(m mutant) bool { return m.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no mutant is named %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
