package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/prove/killtest/judge"
	"github.com/holdfast-dev/holdfast/internal/prove/killtest/program"
)

// childVariable makes this binary the program that is killed.
const childVariable = "HOLDFAST_KILLTEST_CHILD"

func beChild() int {
	c, err := program.ReadConfig(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "killtest: child:", err)
		return program.ExitShutdown
	}
	return program.Main(c, os.Stdout)
}

// life is how one life of the program is to be.
type life struct {
	kind   kind
	config program.Config
	from   moment
	after  time.Duration // from then on, until it is told to end
	within time.Duration // the most that it may take to come to from, and to end when told
}

// moment is one in a life, as its log tells.
type moment int

const (
	began  moment = iota // it takes a SIGTERM
	opened               // the host is open
	full                 // a call was refused for want of space
	moments
)

func (m moment) String() string {
	return [...]string{"its begin", "the open", "the first refusal for want of space"}[m]
}

// clock tells when the log has come to the moments of a life.
type clock struct {
	reached [moments]chan struct{}
	passed  [moments]bool
}

func newClock() *clock {
	c := &clock{}
	for m := range c.reached {
		c.reached[m] = make(chan struct{})
	}
	return c
}

// read looks at the next line of the log.
func (c *clock) read(l judge.Line) {
	switch {
	case l.Kind == judge.Began:
		c.pass(began)
	case l.Kind == judge.Opened:
		c.pass(opened)
	case l.Text == program.NoSpace:
		c.pass(full)
	}
}

func (c *clock) pass(m moment) {
	if !c.passed[m] {
		c.passed[m] = true
		close(c.reached[m])
	}
}

// came says whether the log has come to a moment.
func (c *clock) came(m moment) bool {
	select {
	case <-c.reached[m]:
		return true
	default:
		return false
	}
}

// kind is how a life ends.
type kind int

const (
	killed     kind = iota // by -9
	terminated             // by SIGTERM
	noSpace                // by SIGTERM while the disk is full, or by -9 after it was
	writeError             // by itself, at a write that fails, or else by -9
	finished               // by itself, with nothing left to do
)

func (k kind) String() string {
	return [...]string{"kill -9", "SIGTERM", "full disk", "write error", "finish"}[k]
}

// end is how it did end.
type end struct {
	signalled bool // by our -9
	code      int
	lines     int           // in the log
	full      bool          // a call was refused for want of space
	opened    time.Duration // from the begin to the open; 0: it did not come to that
	stderr    string
}

// endTime is how long a life may take to come to its moment, and to end by itself: far more than a slow
// machine needs, to end a campaign that nobody watches.
const endTime = 10 * time.Minute

// live runs a life and gives each line of its log to read.
func live(ctx context.Context, l life, read func(raw []byte, line judge.Line)) (end, error) {
	if l.within == 0 {
		l.within = endTime
	}
	cmd, err := command(l.config)
	if err != nil {
		return end{}, err
	}
	stderr := &tail{}
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return end{}, err
	}
	if err := cmd.Start(); err != nil {
		return end{}, err
	}
	over := make(chan struct{})
	ended := make(chan string)
	clock := newClock()
	go func() { ended <- stop(ctx, cmd.Process, l, clock, over) }()
	var e end
	var start time.Time
	e.lines, err = readLog(out, func(raw []byte, line judge.Line) {
		switch clock.read(line); line.Kind {
		case judge.Began:
			start = seams.Clock.Now()
		case judge.Opened:
			e.opened = seams.Clock.Now().Sub(start)
		}
		read(raw, line)
	})
	e.full = clock.passed[full]
	waited := cmd.Wait() // after the log has ended
	close(over)
	how := <-ended
	e.stderr = stderr.String()
	e.code = cmd.ProcessState.ExitCode()
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	e.signalled = how == shot && status.Signaled() && status.Signal() == syscall.SIGKILL
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return e, context.Cause(ctx)
	case err != nil:
		return e, err
	case how == stuck:
		return e, fmt.Errorf("the program did not come to %s within %s\n%s", l.from, l.within, e.stderr)
	case how == hung:
		return e, fmt.Errorf("the program did not end within %s of being told to\n%s", l.within, e.stderr)
	case waited != nil && !errors.As(waited, &exit):
		return e, waited
	case status.Signaled() && !e.signalled:
		return e, fmt.Errorf("the program ended by %s\n%s", status.Signal(), e.stderr)
	}
	return e, nil
}

// command is this binary as a child. It is in a process group of its own, so that
// Ctrl-C reaches the parent alone; it ends with the pipe if the parent dies.
func command(c program.Config) (*exec.Cmd, error) {
	config, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVariable+"=1")
	cmd.Stdin = bytes.NewReader(config)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, nil
}

// How stop ended a process: by -9; because it did not come to the moment of its
// life; because it did not end when told to.
const (
	shot  = "killed"
	stuck = "stuck"
	hung  = "hung"
)

// stop ends the process as its life is to end, or when ctx does, and says how; it
// says nothing of one that ended by itself. A process that is stuck or hangs is
// made to print its goroutines.
func stop(ctx context.Context, p *os.Process, l life, c *clock, over <-chan struct{}) string {
	wait := func(event <-chan struct{}, d time.Duration) (done bool) {
		rung := make(chan struct{})
		t := seams.Clock.AfterFunc(d, func() { close(rung) })
		defer t.Stop()
		select {
		case <-over:
			return true
		case <-event:
		case <-ctx.Done():
		case <-rung:
		}
		return false
	}
	kill := func() string {
		_ = p.Kill() // an error means that it has ended
		<-over
		return shot
	}
	dump := func(how string) string {
		_ = p.Signal(syscall.SIGQUIT)
		if !wait(nil, time.Second) {
			kill()
		}
		return how
	}
	if l.kind != finished {
		if wait(c.reached[l.from], l.within) {
			return ""
		}
		if !c.came(l.from) && ctx.Err() == nil {
			return dump(stuck)
		}
		if wait(nil, l.after) {
			return ""
		}
		switch {
		case ctx.Err() != nil:
			return kill()
		case l.kind == terminated, l.kind == noSpace && l.config.FullFor == 0:
			_ = p.Signal(syscall.SIGTERM)
		default:
			return kill()
		}
	}
	switch {
	case wait(nil, l.within):
		return ""
	case ctx.Err() != nil:
		kill()
		return hung
	}
	return dump(hung)
}

// readLog reads the log to its end, and returns how many lines it has. A line that
// the kill has cut off is none.
func readLog(out io.Reader, read func(raw []byte, line judge.Line)) (lines int, err error) {
	r := bufio.NewReaderSize(out, 1<<16)
	for {
		raw, readErr := r.ReadBytes('\n')
		if readErr != nil {
			return lines, err
		}
		var line judge.Line
		if bad := json.Unmarshal(raw, &line); bad != nil && err == nil {
			err = fmt.Errorf("line %q of the log: %w", raw, bad)
		}
		lines++
		read(raw, line)
	}
}

// tail keeps the last bytes that are written to it.
type tail struct{ bytes.Buffer }

const tailBytes = 256 << 10

func (t *tail) Write(p []byte) (int, error) {
	if t.Len() > tailBytes {
		t.Next(t.Len() - tailBytes/2)
	}
	return t.Buffer.Write(p)
}

func (t *tail) String() string { return strings.TrimSpace(t.Buffer.String()) }
