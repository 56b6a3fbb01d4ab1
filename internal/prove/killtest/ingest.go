package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ingest builds the example, counts the source, and plays rounds until there were
// enough kills. A round begins with a new store and ends with a run that ends by
// itself.
func ingest(ctx context.Context, o options, tell io.Writer) (f figures, err error) {
	if o.each == 0 {
		o.each = 8
	}
	dir, err := os.MkdirTemp("", "killtest-")
	if err != nil {
		return f, err
	}
	t := &test{o: o, tell: tell, dir: dir, program: filepath.Join(dir, "ingest"), rand: rand.New(rand.NewPCG(o.seed, 0))}
	if t.o.src, err = source(ctx, o.src); err != nil {
		return f, err
	}
	if err := build(ctx, t.program); err != nil {
		return f, err
	}
	if t.want, err = count(ctx, t.o.src); err != nil {
		return f, err
	}
	fmt.Fprintf(tell, "find and wc: %v in %s\n", t.want, t.o.src)
	err = t.play(ctx)
	f.Kill9, f.Stores, f.Recovered = t.kills, t.rounds, t.recovered
	if err != nil {
		return f, fmt.Errorf("%w\nthe store is kept in %s", err, dir)
	}
	return f, os.RemoveAll(dir)
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

// test is the rounds and their result.
type test struct {
	o       options
	tell    io.Writer
	dir     string // for the program and the stores
	program string
	rand    *rand.Rand
	want    totals

	full      time.Duration // how long a run takes that is not killed
	kills     int
	rounds    int
	recovered int64 // executions, in all rounds
}

// play measures a run without a kill and then plays the rounds.
func (t *test) play(ctx context.Context) error {
	began := seams.Clock.Now()
	if _, err := t.finish(ctx, t.store()); err != nil {
		return err
	}
	t.full = seams.Clock.Now().Sub(began)
	if err := os.RemoveAll(t.store()); err != nil {
		return err
	}
	fmt.Fprintf(t.tell, "without a kill: the same, in %s\n", t.full.Round(time.Millisecond))
	for t.kills < t.o.cycles {
		if err := t.round(ctx); err != nil {
			return fmt.Errorf("round %d, kill %d: %w", t.rounds, t.kills, err)
		}
	}
	fmt.Fprintf(t.tell, "%d kills in %d rounds: all totals the same; %d executions were cut off and done again\n", t.kills, t.rounds, t.recovered)
	return nil
}

func (t *test) store() string { return filepath.Join(t.dir, fmt.Sprintf("store-%d", t.rounds)) }

// round kills runs over a new store until one ends by itself or there were enough
// kills, and then checks the totals of the store, twice.
func (t *test) round(ctx context.Context) error {
	t.rounds++
	store, kills := t.store(), 0
	for kills < t.o.each && t.kills < t.o.cycles {
		killed, err := t.kill(ctx, store, t.instant())
		if err != nil {
			return err
		}
		if !killed {
			break
		}
		kills++
		t.kills++
	}
	r, err := t.finish(ctx, store)
	if err != nil {
		return err
	}
	again, err := t.finish(ctx, store)
	if err != nil {
		return fmt.Errorf("second run on a finished store: %w", err)
	}
	if again.Executions != r.Executions {
		return fmt.Errorf("second run on a finished store: %d executions more", again.Executions-r.Executions)
	}
	t.recovered += r.Recovered
	fmt.Fprintf(t.tell, "round %d: %d kills, then %v; %d executions, %d cut off\n", t.rounds, kills, r.totals, r.Executions, r.Recovered)
	return os.RemoveAll(store)
}

// instant is how long the next run lives. One in four is killed while it starts,
// where recovery is.
func (t *test) instant() time.Duration {
	within := t.full * 2 / 3
	if t.rand.IntN(4) == 0 {
		within = 200 * time.Millisecond
	}
	return time.Duration(t.rand.Int64N(int64(within)))
}

func (t *test) command(ctx context.Context, store string) (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.CommandContext(ctx, t.program, "-src", t.o.src, "-data", store, "-json")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	return cmd, &errs
}

// kill runs the program and kills it with -9 after a time. It reports false if
// the program had ended by then.
func (t *test) kill(ctx context.Context, store string, after time.Duration) (killed bool, err error) {
	limited, cancel := context.WithTimeout(ctx, after) // its end is a SIGKILL
	defer cancel()
	cmd, errs := t.command(limited, store)
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case limited.Err() != nil && (cmd.ProcessState == nil || !cmd.ProcessState.Exited()):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("ingest: %w\n%s", err, errs)
	}
	return false, nil
}

// finishTime limits a run that is not killed: far more than a slow machine needs.
const finishTime = 30 * time.Minute

// finish runs the program to its end and compares.
func (t *test) finish(ctx context.Context, store string) (result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, finishTime, errors.New("ingest did not end"))
	defer cancel()
	cmd, errs := t.command(ctx, store)
	out, err := cmd.Output()
	if err != nil {
		return result{}, fmt.Errorf("ingest: %w: %w\n%s", err, context.Cause(ctx), errs)
	}
	r, err := parseResult(out)
	switch {
	case err != nil:
		return r, err
	case r.totals != t.want:
		return r, fmt.Errorf("totals differ: ingest has %v, find and wc have %v\n%s", r.totals, t.want, out)
	case r.Dead != 0:
		return r, fmt.Errorf("%d dead letters\n%s", r.Dead, out)
	}
	return r, nil
}
