package workload

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
	"strings"
	"syscall"
	"time"
)

// nodeMost is how long a node may take for anything: to answer after a fault, to follow, to end.
const nodeMost = time.Minute

// nodeProcess is a node as a process of its own. It ends with the pipe to its standard input. It is in a process group of its own, so that
// Ctrl-C reaches its parent alone, and so that the system ends it with its parent while it is paused.
type nodeProcess struct {
	nodeConfig
	cmd   *exec.Cmd
	in    io.WriteCloser
	ended chan struct{} // when all its lines are read and it is gone

	// As far as its lines were taken:
	at      time.Time // its last answer
	follows string    // the owner that it waits behind; empty: it has answered since
	gone    bool      // it has ended

	struck bool // its end is no mistake
}

// nodeLine is a line of a node, and when it came; empty: the node has ended.
type nodeLine struct {
	from *nodeProcess
	text string
	at   time.Time
}

// Nodes are two nodes of a cluster over a log in PostgreSQL. Its methods are for one goroutine.
type Nodes struct {
	log       *Log
	dir       string
	all       [2]*nodeProcess
	lines     chan nodeLine
	closed    chan struct{}
	processor time.Duration // of the processes that have ended
	shift     func(time.Duration) time.Duration

	began     uint64 // the term when both nodes were there
	failovers int
}

// OpenNodes starts two nodes in dir and returns when one serves and the other one follows it. shift draws a pause that is shorter than its argument.
func OpenNodes(ctx context.Context, dir string, shift func(time.Duration) time.Duration) (*Nodes, error) {
	l, err := OpenLog(ctx)
	if err != nil {
		return nil, err
	}
	n := &Nodes{log: l, dir: dir, lines: make(chan nodeLine, 1<<10), closed: make(chan struct{}), shift: shift}
	for i, id := range []string{"a", "b"} {
		if err := n.start(i, id); err != nil {
			return nil, join(err, n.Close)
		}
	}
	if _, n.began, err = n.settled(ctx); err != nil {
		return nil, join(err, n.Close)
	}
	return n, nil
}

// start starts a node, or starts it again.
func (n *Nodes) start(i int, id string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p := &nodeProcess{
		nodeConfig: nodeConfig{ID: id, Dir: filepath.Join(n.dir, id), DSN: n.log.dsn, Schema: n.log.schema},
		cmd:        exec.Command(self), ended: make(chan struct{}),
	}
	p.cmd.Env = append(os.Environ(), childEnv+"="+clusterNode)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	n.all[i] = p
	go n.read(p, out)
	return json.NewEncoder(p.in).Encode(p.nodeConfig)
}

// read passes the lines of a node on. One that a kill has cut off is none.
func (n *Nodes) read(p *nodeProcess, out io.Reader) {
	defer close(p.ended)
	for r := bufio.NewReader(out); ; {
		text, err := r.ReadString('\n')
		at := time.Now()
		if err != nil {
			_ = p.cmd.Wait() // its status is in ProcessState
			text = ""
		}
		select {
		case n.lines <- nodeLine{p, strings.TrimSpace(text), at}:
		case <-n.closed:
		}
		if err != nil {
			return
		}
	}
}

// take takes a line of a node.
func (l nodeLine) take() {
	what, owner, _ := strings.Cut(l.text, " ")
	switch what {
	case answered:
		l.from.at, l.from.follows = l.at, ""
	case follows:
		l.from.follows = owner
	case "":
		l.from.gone = true
	}
}

// await takes lines until something is the case. what says it in words.
func (n *Nodes) await(ctx context.Context, what string, is func() bool) error {
	limit := time.NewTimer(nodeMost)
	defer limit.Stop()
	for !is() {
		for _, p := range n.all {
			if p != nil && p.gone && !p.struck {
				return fmt.Errorf("wait for %s: node %s has ended: %v", what, p.ID, p.cmd.ProcessState)
			}
		}
		select {
		case l := <-n.lines:
			l.take()
		case <-limit.C:
			return fmt.Errorf("wait for %s: it has not come in %v", what, nodeMost)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// pass takes lines for a while.
func (n *Nodes) pass(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d, errPassed)
	defer cancel()
	err := n.await(ctx, "the end of a pause", func() bool { return false })
	if errors.Is(err, errPassed) {
		return nil
	}
	return err
}

var errPassed = errors.New("the pause is over")

// end kills a node and waits until its last line is read.
func (n *Nodes) end(i int) *os.ProcessState {
	p := n.all[i]
	n.all[i] = nil
	_ = p.cmd.Process.Kill() // an error means that it has ended
	for open := true; open; {
		select {
		case l := <-n.lines:
			l.take()
		case <-p.ended:
			open = false
		}
	}
	n.processor += p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	return p.cmd.ProcessState
}

// Processor is the processor time of the nodes that have ended.
func (n *Nodes) Processor() time.Duration { return n.processor }

// Close has both nodes end in order, and kills one that does not.
func (n *Nodes) Close() error {
	defer n.log.Close()
	close(n.closed)
	var errs []error
	for i, p := range n.all {
		if p == nil {
			continue
		}
		errs = append(errs, p.in.Close(), p.cmd.Process.Signal(syscall.SIGCONT))
		select {
		case <-p.ended:
		case <-time.After(nodeMost):
		}
		if state := n.end(i); !state.Success() {
			errs = append(errs, fmt.Errorf("node %s ended with %v", p.ID, state))
		}
	}
	return errors.Join(errs...)
}
