package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// suite is one run of the steps.
type suite struct {
	options
	root   string // of the module
	dir    string // for binaries and reports; removed at the end
	commit string
	began  time.Time
	steps  []step // that were chosen
	lanes  *lanes
	screen *screen

	mu        sync.Mutex // guards the fields below
	values    values
	seconds   map[string]float64 // of processor time, by step
	sometimes map[string]reached // by test
	binaries  map[string]*binary
	failed    []failure
}

// failure is a step that failed.
type failure struct {
	step string
	err  error
}

// reached is how many Sometimes of a test held at least once.
type reached struct{ reached, total int }

// step is a part of the suite that can be run alone.
type step struct {
	name  string
	about string
	run   func(ctx context.Context, s *suite) error
}

// job runs f on lanes of its own, which the steps get in their order.
func (s *suite) job(ctx context.Context, name, what string, width int, f func() error) error {
	rank := slices.IndexFunc(s.steps, func(st step) bool { return st.name == name })
	if err := s.lanes.take(ctx, rank, width); err != nil {
		return err
	}
	defer s.lanes.give(width)
	defer s.screen.start(name, what)()
	return f()
}

// output runs a command of a step, which ends in order when ctx does, and counts the
// processor time that it took. It returns the output of the command.
func (s *suite) output(ctx context.Context, name string, cmd *exec.Cmd) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if p := cmd.ProcessState; p != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.seconds[name] += (p.UserTime() + p.SystemTime()).Seconds()
	}
	return out, err
}

// each runs a job for every item, as many at a time as there are lanes, and returns
// their errors.
func each[T any](items []T, f func(T) error) error {
	errs := make([]error, len(items))
	var wait sync.WaitGroup
	for i, item := range items {
		wait.Go(func() { errs[i] = f(item) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// add adds to a figure.
func (s *suite) add(name string, n float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[name] += n
}

// value is a figure so far.
func (s *suite) value(name string) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[name]
}

// floor is the least value of a figure in this run.
func (s *suite) floor(name string) float64 {
	for _, f := range table {
		if f.name == name {
			return f.floor(s.extent)
		}
	}
	panic("no figure is called " + name)
}

// play runs the chosen steps, and then more random schedules until the budget is
// used up.
func (s *suite) play(ctx context.Context) {
	_ = each(s.steps, func(st step) error {
		began := clock.Now()
		err := st.run(ctx, s)
		if err != nil && ctx.Err() == nil {
			s.mu.Lock()
			s.failed = append(s.failed, failure{st.name, err})
			s.mu.Unlock()
		}
		if ctx.Err() == nil {
			s.screen.end(st.name, s.told(st.name), since(began), err)
		}
		return nil
	})
	if ctx.Err() != nil || len(s.failed) > 0 || !s.ran("random") {
		return
	}
	if err := fill(ctx, s); err != nil && ctx.Err() == nil {
		s.failed = append(s.failed, failure{"random", err})
		s.screen.end("random", "after the floors", since(s.began), err)
	}
}

// ran tells whether a step was chosen.
func (s *suite) ran(name string) bool {
	return slices.ContainsFunc(s.steps, func(st step) bool { return st.name == name })
}

// told is the gain of a step, in a few words.
func (s *suite) told(name string) string {
	r := s.report()
	var parts []string
	for _, f := range table {
		if f.step == name {
			parts = append(parts, f.name+" "+number(r.values[f.name]))
		}
	}
	return strings.Join(parts, ", ")
}

// progress is how much of the floors is reached.
func (s *suite) progress() string {
	r := s.report()
	var sum, n float64
	for _, f := range table {
		if f.bound == least && s.ran(f.step) {
			sum += min(r.values[f.name]/f.floor(s.extent), 1)
			n++
		}
	}
	return fmt.Sprintf("%.0f %% of the floors", 100*sum/n)
}

// report is the result of the run so far.
func (s *suite) report() report {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := report{commit: s.commit, date: s.began, seed: s.seed, seconds: since(s.began).Seconds(), extent: s.extent, values: values{}}
	for name, n := range s.values {
		r.values[name] = n
	}
	for _, c := range s.sometimes {
		r.values["sometimes_total"] += float64(c.total)
		r.values["sometimes_reached"] += float64(c.reached)
	}
	for _, st := range s.steps {
		r.steps = append(r.steps, stepTime{st.name, s.seconds[st.name]})
	}
	return r
}

// close removes the binaries that the run has built.
func (s *suite) close() { _ = os.RemoveAll(s.dir) }
