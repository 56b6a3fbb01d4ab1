// Reliability runs the whole reliability suite and says how much it has tried.
//
//	go run ./internal/prove/reliability -budget 8m
//	go run ./internal/prove/reliability -only scenarios,pairs
//	go run ./internal/prove/reliability -soak
//
// The tests stand beside the code that they prove. This command compiles each of their
// binaries once and runs them with wider options, together with the commands that kill
// real processes and put bugs into the library. Each figure has a floor; below one of
// them the command ends with 1 and says which, how far, and the command that runs it
// alone. docs/RELIABILITY.md explains the figures. They are also written to
// out/reliability.txt as a table, and to out/reliability.json.
//
// When the floors are reached, the rest of the budget goes to more random schedules.
// The seed of these follows from the commit, is printed, and can be set. Ctrl-C ends
// the run with what it has.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type options struct {
	budget time.Duration
	seed   uint64
	only   []string
	extent extent
}

func main() {
	o, list, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "reliability:", err)
		os.Exit(2)
	case list:
		for _, st := range steps {
			fmt.Printf("%-10s %s\n", st.name, st.about)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "\nreliability: %v\n", err)
		os.Exit(1)
	}
}

// parse reads the command line.
func parse(args []string) (o options, list bool, err error) {
	f := flag.NewFlagSet("reliability", flag.ContinueOnError)
	f.DurationVar(&o.budget, "budget", 8*time.Minute, "how long to add random schedules after the floors are reached")
	f.Uint64Var(&o.seed, "seed", 0, "seed of the random schedules (default: from the commit)")
	only := f.String("only", "", "comma-separated `steps` to run (default: all; see -list)")
	many := f.Bool("soak", false, "the long form: 100 times the schedules, 1,000 kills; takes hours")
	f.BoolVar(&list, "list", false, "list the steps")
	if err := f.Parse(args); err != nil {
		return o, false, err
	}
	if f.NArg() > 0 {
		return o, false, fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, name := range o.only {
		if _, ok := stepNamed(name); !ok {
			return o, false, fmt.Errorf("there is no step %q: see -list", name)
		}
	}
	if *many {
		o.extent = soak
	}
	return o, list, nil
}

// stepNamed finds a step.
func stepNamed(name string) (step, bool) {
	for _, st := range steps {
		if st.name == name {
			return st, true
		}
	}
	return step{}, false
}

// run runs the suite, prints the figures, and returns an error if a step failed or a
// floor was missed.
func run(ctx context.Context, o options) error {
	s, err := newSuite(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	fmt.Printf("commit %.12s, seed %d, budget %s, %s\n", s.commit, s.seed, s.budget, machine())
	keeping, done := context.WithCancel(ctx)
	go s.screen.keep(keeping)
	s.play(ctx)
	done()
	r := s.report()
	text := r.text(s.ran)
	fmt.Print("\n", text)
	if err := r.write(s.root, text); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errors.New("stopped; the figures are those until then")
	}
	problems := r.missed(s.ran)
	for _, f := range s.failed {
		problems = append(problems, fmt.Sprintf("step %s failed: %s; alone: go run ./internal/prove/reliability %s-only %s -seed %d", f.step, brief(f.err), s.extent, f.step, s.seed))
	}
	if len(problems) > 0 {
		return errors.New(strings.Join(problems, "\n"))
	}
	return nil
}

// maxBrief bounds what the end of the output repeats of an error.
const maxBrief = 300

// brief is the beginning of an error in one line. The whole stands where the step ended.
func brief(err error) string {
	line := strings.Join(strings.Fields(err.Error()), " ")
	if len(line) > maxBrief {
		line = strings.ToValidUTF8(line[:maxBrief], "") + " ..."
	}
	return line
}

func newSuite(ctx context.Context, o options) (*suite, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return nil, err
	}
	commit, err := head(ctx, root)
	if err != nil {
		return nil, err
	}
	if o.seed == 0 {
		if o.seed, err = strconv.ParseUint(commit[:8], 16, 32); err != nil {
			return nil, fmt.Errorf("seed from commit %q: %w", commit, err)
		}
	}
	dir, err := os.MkdirTemp("", "reliability-")
	began := clock.Now()
	s := &suite{
		options: o, root: root, dir: dir, commit: commit, began: began, steps: choose(o.only),
		lanes:  &lanes{free: cores},
		values: values{}, seconds: map[string]float64{}, sometimes: map[string]reached{}, binaries: map[string]*binary{},
	}
	s.steps = choose(o.only)
	s.lanes = &lanes{free: cores, ranks: len(s.steps)}
	s.screen = &screen{out: os.Stdout, began: began, progress: s.progress}
	return s, err
}

// choose finds the steps of these names, or all.
func choose(names []string) []step {
	if len(names) == 0 {
		return steps
	}
	var out []step
	for _, st := range steps {
		if slices.Contains(names, st.name) {
			out = append(out, st)
		}
	}
	return out
}

// cores is how many jobs run at a time: the suite is made for a machine of two.
const cores = 2

// write writes the figures to out/reliability.json, and their table to
// out/reliability.txt.
func (r report) write(root, table string) error {
	figures, err := json.Marshal(r)
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "out")
	return errors.Join(os.MkdirAll(dir, 0o755),
		os.WriteFile(filepath.Join(dir, "reliability.json"), append(figures, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "reliability.txt"), []byte(table), 0o644))
}
