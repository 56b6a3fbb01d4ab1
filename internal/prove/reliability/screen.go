package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// screen prints a line for each step that ended, and the running steps now and then.
type screen struct {
	out      io.Writer
	began    time.Time
	progress func() string // of the whole run

	mu      sync.Mutex // guards running, and writing
	running []string   // "step subject"
}

// quiet is the time between two lines of the running steps.
const quiet = 30 * time.Second

// keep prints the running steps until ctx ends.
func (s *screen) keep(ctx context.Context) {
	for seams.Sleep(ctx, quiet) == nil {
		s.mu.Lock()
		running := strings.Join(s.running, ", ")
		s.mu.Unlock()
		s.line("runs    %s (%s)", running, s.progress())
	}
}

// start notes that a job of a step runs, until the function it returns is called.
func (s *screen) start(step, what string) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = append(s.running, step+" "+what)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		i := slices.Index(s.running, step+" "+what)
		s.running = slices.Delete(s.running, i, i+1)
	}
}

// end prints the line of a step, and why it failed.
func (s *screen) end(step, told string, took time.Duration, err error) {
	state, why := "done  ", ""
	if err != nil {
		state, why = "FAILED", "\n"+strings.TrimSpace(err.Error())+"\n"
	}
	s.line("%s  %-9s  %s (%s)%s", state, step, told, took.Round(time.Second/10), why)
}

// line prints a line with the time since the beginning, in minutes and seconds.
func (s *screen) line(format string, args ...any) {
	d := int(since(s.began).Seconds())
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, "%3d:%02d  %s\n", d/60, d%60, fmt.Sprintf(format, args...))
}
