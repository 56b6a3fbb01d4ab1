package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// screen shows what goes on: a line for each step that ended, and, on a terminal, one
// below it with the running steps; elsewhere that one is printed now and then.
type screen struct {
	out      io.Writer
	terminal bool
	began    time.Time
	progress func() string // of the whole run

	mu      sync.Mutex // guards the fields below, and writing
	running []string   // "step subject"
	last    time.Time  // of the latest line
}

// quiet is how long a log may go without a line.
const quiet = 30 * time.Second

func newScreen(out *os.File, began time.Time, progress func() string) *screen {
	info, err := out.Stat()
	return &screen{
		out: out, terminal: err == nil && info.Mode()&os.ModeCharDevice != 0,
		began: began, last: began, progress: progress,
	}
}

// keep keeps the last line up to date until ctx ends.
func (s *screen) keep(ctx context.Context) {
	for seams.Sleep(ctx, time.Second) == nil {
		s.mu.Lock()
		s.show()
		s.mu.Unlock()
	}
}

// start notes that a job of a step runs.
func (s *screen) start(step, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = append(s.running, step+" "+what)
	s.show()
}

// stop notes that it has ended.
func (s *screen) stop(step, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.running, step+" "+what); i >= 0 {
		s.running = slices.Delete(s.running, i, i+1)
	}
	s.show()
}

// end prints the line of a step, and why it failed.
func (s *screen) end(step, told string, took time.Duration, err error) {
	state, why := "done  ", ""
	if err != nil {
		state, why = "FAILED", "\n"+strings.TrimSpace(err.Error())+"\n"
	}
	s.line("%s  %-9s  %s (%s)%s", state, step, told, took.Round(time.Second/10), why)
}

// line prints a line with the time since the beginning.
func (s *screen) line(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(fmt.Sprintf(format, args...))
	s.show()
}

// show shows the running steps. The caller holds mu.
func (s *screen) show() {
	if len(s.running) == 0 {
		return
	}
	text := fmt.Sprintf("runs    %s (%s)", strings.Join(s.running, ", "), s.progress())
	switch {
	case s.terminal:
		fmt.Fprintf(s.out, "\r\x1b[K%s  %.100s", s.clock(), text)
	case since(s.last) > quiet:
		s.print(text)
	}
}

// print prints a whole line. The caller holds mu.
func (s *screen) print(text string) {
	if s.terminal {
		fmt.Fprint(s.out, "\r\x1b[K")
	}
	s.last = clock.Now()
	if text == "" {
		return
	}
	fmt.Fprintf(s.out, "%s  %s\n", s.clock(), text)
}

// clock is the time since the beginning, in minutes and seconds.
func (s *screen) clock() string {
	d := int(since(s.began).Seconds())
	return fmt.Sprintf("%3d:%02d", d/60, d%60)
}
