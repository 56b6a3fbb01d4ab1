package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/holdfast-dev/holdfast/internal/prove/killtest/judge"
)

// endTime is how long a process may take to end when it is told to.
const endTime = 60 * time.Second

// process is this binary as a child. It is in a process group of its own, so that Ctrl-C reaches the parent alone. A node ends with
// the pipe to its standard input.
type process struct {
	name   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	config *json.Encoder // onto stdin; one goroutine at a time
	ended  chan struct{} // when all its lines are read and it is gone
	err    error         // of the lines; read it after ended
}

// start starts a child as a kind, with its first configuration. Its standard error goes to a file, and read gets its lines.
func start(kind, name, logs string, config any, read func(raw []byte, l judge.Line)) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: exec.Command(self), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), childVariable+"="+kind)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	said, err := os.OpenFile(filepath.Join(logs, name+".stderr"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer said.Close() // the child has its own
	p.cmd.Stderr = said
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.config = json.NewEncoder(p.stdin)
	go func() {
		defer close(p.ended)
		p.err = readLines(out, read)
		_ = p.cmd.Wait() // its status is in ProcessState
	}()
	return p, p.config.Encode(config)
}

// readLines reads lines to their end. One that the kill has cut off is none.
func readLines(out io.Reader, read func(raw []byte, l judge.Line)) (err error) {
	r := bufio.NewReaderSize(out, 1<<16)
	for {
		raw, readErr := r.ReadBytes('\n')
		if readErr != nil {
			return err
		}
		var l judge.Line
		if bad := json.Unmarshal(raw, &l); bad != nil {
			if err == nil {
				err = fmt.Errorf("line %q: %w", raw, bad)
			}
			continue
		}
		read(raw, l)
	}
}

// kill ends the process with -9, and waits until its last line is read.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error means that it has ended
	<-p.ended
}

// pause stops the process, until resume.
func (p *process) pause() { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }

func (p *process) resume() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

// terminate asks the process to end in order.
func (p *process) terminate() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

// wait waits until the process has ended by itself. One that does not is made to print its goroutines.
func (p *process) wait(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	select {
	case <-p.ended:
	case <-limit.Done():
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		late, done := context.WithTimeout(context.Background(), time.Second)
		defer done()
		select {
		case <-p.ended:
		case <-late.Done():
			p.kill()
		}
		return fmt.Errorf("%s did not end within %s of being told to", p.name, endTime)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return errors.Join(fmt.Errorf("%s ended with %s: see %s.stderr", p.name, p.cmd.ProcessState, p.name), p.err)
	}
	return p.err
}
