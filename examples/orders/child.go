package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// child is a process that the program has started: this program once more, in another
// role. It is ended by its id alone. When the program dies, the standard input of the
// child ends, and it ends in order.
type child struct {
	role  role
	cmd   *exec.Cmd
	stdin io.WriteCloser
	tail  tail // of standard error

	over chan struct{} // closed when the process has ended
	err  error         // how it ended; set before over is closed
}

// startChild starts a process in a role. The files are open in it from descriptor 3 on.
func startChild(r role, config any, files []*os.File, tell func(event)) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	c := &child{role: r, cmd: exec.Command(self, string(r), string(text)), over: make(chan struct{})}
	c.cmd.Stderr, c.cmd.ExtraFiles = &c.tail, files
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the %s: %w", r, err)
	}
	go func() {
		defer close(c.over)
		read := readEvents(out, tell)
		if read != nil {
			_ = c.cmd.Process.Kill() // an error means that it has ended
		}
		c.err = errors.Join(read, c.cmd.Wait()) // after its output has ended
	}()
	return c, nil
}

// kill ends the process with SIGKILL. It reports whether the process was alive until then.
func (c *child) kill() bool {
	err := c.cmd.Process.Kill()
	<-c.over
	_ = c.stdin.Close()
	return err == nil && c.cmd.ProcessState.ExitCode() == -1
}

// send writes a line to the process. One that has ended takes none.
func (c *child) send(line any) {
	if text, err := json.Marshal(line); err == nil {
		_, _ = c.stdin.Write(append(text, '\n')) // an error means that it has ended, which over tells
	}
}

// end ends the process in order, or kills it if it does not end in time.
func (c *child) end() error {
	_ = c.stdin.Close() // an error means that it has ended
	t := time.NewTimer(endTime + time.Second)
	defer t.Stop()
	select {
	case <-c.over:
		return c.failure()
	case <-t.C:
		c.kill()
		return fmt.Errorf("the %s did not end within %s, and was killed%s", c.role, endTime+time.Second, c.tail.said())
	}
}

// failure says how a process has ended that was not killed, or returns nil if it has ended
// in order.
func (c *child) failure() error {
	if c.err == nil {
		return nil
	}
	return fmt.Errorf("the %s has ended: %w%s", c.role, c.err, c.tail.said())
}

// tail keeps the last bytes that are written to it.
type tail struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const tailBytes = 16 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text.Len() > tailBytes {
		t.text.Next(t.text.Len() - tailBytes/2)
	}
	return t.text.Write(p)
}

// said is the text after a colon, if there is any.
func (t *tail) said() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := strings.TrimSpace(t.text.String()); text != "" {
		return ": " + text
	}
	return ""
}

// untilEnd returns a context that ends when the standard input of a child does, and calls
// line with each of its lines before.
func untilEnd(ctx context.Context, stdin io.Reader, line func([]byte)) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		readLines(stdin, line)
	}()
	return ctx, cancel
}
