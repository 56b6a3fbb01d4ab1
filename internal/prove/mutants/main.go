// Mutants puts bugs into the library, one at a time, and sees whether the tests
// find them.
//
//	go run ./internal/prove/mutants
//	go run ./internal/prove/mutants -only commit-without-sync -v
//
// The code of the library carries no mutant. Each is a replacement of text that
// stands in this package's tables, with the promise that it breaks and the test
// that must find it. All of them are compiled at once, into test binaries of an
// overlay (see go help build), where a variable of the environment switches one
// of them on. The same binaries run each of those tests without a mutant too, and
// must pass.
//
// A mutant counts as found if its test fails by an assertion within 2 seconds, of the clock
// or of processor time, whichever is less, or on a
// slower or busy machine within as much more as that sorts numbers more slowly; not by
// a panic, a time-out or a build that fails. The last line is a summary as JSON.
// The program ends with 1 if a mutant is not found.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "comma-separated `names` of the mutants to try (default: all)")
	flag.BoolVar(&o.json, "json", false, "print one JSON array of the results and nothing else")
	flag.BoolVar(&o.verbose, "v", false, "print the whole failure of each test")
	flag.BoolVar(&o.table, "table", false, "write the table into docs/RELIABILITY.md, or print it if that has no place for it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

type options struct {
	only                 string
	json, verbose, table bool
}

func run(ctx context.Context, o options) error {
	chosen, err := choose(o.only)
	if err != nil {
		return err
	}
	root, err := moduleRoot(ctx)
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
	progress := func(r result) {
		if !o.json {
			fmt.Println(r.line(o.verbose))
		}
	}
	results, err := lab.tryAll(ctx, chosen, progress)
	if err != nil {
		return err
	}
	sum := summarize(results)
	if !o.json {
		fmt.Println(sum.line())
	} else if err := json.NewEncoder(os.Stdout).Encode(results); err != nil {
		return err
	}
	if o.table {
		if err := writeTable(root, results); err != nil {
			return err
		}
	}
	return sum.verdict()
}

// choose returns the mutants with the given names, or all.
func choose(names string) ([]mutant, error) {
	all := mutants()
	if names == "" {
		return all, nil
	}
	var chosen []mutant
	for name := range strings.SplitSeq(names, ",") {
		i := indexOf(all, name)
		if i < 0 {
			return nil, fmt.Errorf("there is no mutant %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func indexOf(all []mutant, name string) int {
	for i := range all {
		if all[i].Name == name {
			return i
		}
	}
	return -1
}
