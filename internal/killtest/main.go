// Killtest kills the ingest example with -9 at random instants, lets it run to its
// end, and compares its totals with those of find and wc.
//
//	go run ./internal/killtest -n 30
//	go run ./internal/killtest -n 6 -src "$(go env GOROOT)/src/net" -seed 42
//
// A round begins with a new store and ends with a run that nobody kills. Rounds go
// on until there were n kills. The instants follow from the seed, which is printed;
// where the program is at such an instant depends on the machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	var o options
	flag.IntVar(&o.kills, "n", 30, "how many kills")
	flag.IntVar(&o.each, "each", 8, "the most kills in one round")
	flag.StringVar(&o.src, "src", "", "`directory` to index (default: the src of \"go env GOROOT\")")
	flag.Uint64Var(&o.seed, "seed", 0, "seed of the instants (default: from the clock)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "killtest:", err)
		os.Exit(1)
	}
}

type options struct {
	kills, each int
	src         string
	seed        uint64
}

// run builds the example, counts the source, and plays rounds until there were
// enough kills.
func run(ctx context.Context, o options) error {
	if o.kills < 1 || o.each < 1 {
		return errors.New("-n and -each must be at least 1")
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano())
	}
	fmt.Printf("seed %d\n", o.seed)
	dir, err := os.MkdirTemp("", "killtest-")
	if err != nil {
		return err
	}
	t := &test{o: o, dir: dir, program: filepath.Join(dir, "ingest"), rand: rand.New(rand.NewPCG(o.seed, 0))}
	if t.o.src, err = source(ctx, o.src); err != nil {
		return err
	}
	if err := build(ctx, t.program); err != nil {
		return err
	}
	if t.want, err = count(ctx, t.o.src); err != nil {
		return err
	}
	fmt.Printf("find and wc: %v in %s\n", t.want, t.o.src)
	if err := t.play(ctx); err != nil {
		return fmt.Errorf("%w\nthe store is kept in %s", err, dir)
	}
	return os.RemoveAll(dir)
}

func source(ctx context.Context, dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	return filepath.Join(strings.TrimSpace(string(root)), "src"), err
}

// build builds the example of the module that this program belongs to.
func build(ctx context.Context, program string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/holdfast-dev/holdfast/examples/ingest")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build ingest (run this inside the repository): %w", err)
	}
	return nil
}
