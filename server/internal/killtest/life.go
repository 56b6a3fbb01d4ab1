package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// life is one process of the program.
type life struct {
	cmd   *exec.Cmd
	stdin io.Closer
	said  *bytes.Buffer // its standard error
	at    chan string   // gets its address once it listens, or closes
}

// start starts the program.
func start(dir string) (*life, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+dir)
	l := &life{cmd: cmd, said: &bytes.Buffer{}, at: make(chan string, 1)}
	cmd.Stderr = l.said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	l.stdin = stdin
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(l.at)
		if line, err := bufio.NewReader(out).ReadString('\n'); err == nil {
			l.at <- strings.TrimSpace(line)
		}
	}()
	return l, nil
}

// listening waits until the program listens, and returns its address.
func (l *life) listening(ctx context.Context) (string, error) {
	select {
	case at, ok := <-l.at:
		if !ok {
			return "", errors.New("the program did not listen")
		}
		return at, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// kill ends the process by SIGKILL. It is an error if the process has ended by itself.
func (l *life) kill() error {
	if err := l.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("the program has ended by itself: %w", errors.Join(err, l.cmd.Wait()))
	}
	_ = l.cmd.Wait() // its error says how the process ended
	if l.cmd.ProcessState.Exited() {
		return fmt.Errorf("the program has ended by itself: %v", l.cmd.ProcessState)
	}
	return nil
}

// end ends the process in order.
func (l *life) end() error {
	return errors.Join(l.cmd.Process.Signal(os.Interrupt), l.cmd.Wait())
}

// place is the address of the program in its present life. Clients wait at it for the next life.
type place struct {
	mu     sync.Mutex
	at     string        // empty: there is no life, or it is being killed
	lives  int           // that have listened
	change chan struct{} // closes with the next life
}

func newPlace() *place { return &place{change: make(chan struct{})} }

// up says that a life listens.
func (p *place) up(at string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = at
	p.lives++
	close(p.change)
	p.change = make(chan struct{})
}

// down says that the life is about to be killed, so that its clients may see it end.
func (p *place) down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = ""
}

// is reports whether a life listens and nothing has begun to kill it.
func (p *place) is(life int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at != "" && p.lives == life
}

// wait returns the address and the number of the present life, or of the next one.
func (p *place) wait(ctx context.Context) (at string, life int, err error) {
	for {
		p.mu.Lock()
		at, life, change := p.at, p.lives, p.change
		p.mu.Unlock()
		if at != "" {
			return at, life, nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return "", 0, ctx.Err()
		}
	}
}

// sleep waits for a time, unless the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
