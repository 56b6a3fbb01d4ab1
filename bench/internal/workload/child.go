package workload

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/holdfast-dev/holdfast/jobs/continuous"
	"github.com/holdfast-dev/holdfast/object"
)

// A measurement that needs a crash runs itself again as a child process, which
// opens a store, gets it into some state, and is killed with signal 9.
const (
	childEnv = "HOLDFAST_BENCH_CHILD"

	// Executions is the child that has many executions open when it dies.
	Executions = "executions"
	// ExecutingRuns is the child that has many runs of a workflow in a step when it dies.
	ExecutingRuns = "runs"
	// Commits is the child that has commits in the log when it dies.
	Commits = "commits"

	// StreamClients is the child that follows streams until its parent is gone.
	StreamClients = "streams"

	// clusterNode is the child that is a node of a cluster until its parent is gone.
	clusterNode = "node"

	ready = "ready"
)

// Child does the work of a child process, if this process is one, and then does not
// return. A program that measures calls it first.
func Child() {
	role := os.Getenv(childEnv)
	if role == "" {
		return
	}
	switch role {
	case StreamClients:
		followAsChild()
	case clusterNode:
		nodeAsChild()
	}
	if err := child(role, os.Getenv("HOLDFAST_BENCH_DIR"), os.Getenv("HOLDFAST_BENCH_N")); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
	fmt.Println(ready)
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed, or its parent is gone
	os.Exit(1)
}

// followAsChild is the child of streams. It does not return.
func followAsChild() {
	objects, err := strconv.Atoi(os.Getenv("HOLDFAST_BENCH_N"))
	if err == nil {
		err = follow(os.Getenv("HOLDFAST_BENCH_DIR"), objects, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "streams:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// nodeAsChild is the child of a cluster. It does not return.
func nodeAsChild() {
	if err := beNode(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(role, dir, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	switch role {
	case Executions:
		return openExecutions(dir, n)
	case ExecutingRuns:
		return openWorkflows(dir, n)
	case Commits:
		c, err := OpenCounters(dir, n, object.Options{})
		if err != nil {
			return err
		}
		return c.Fill(context.Background(), time.Time{})
	}
	return fmt.Errorf("no such role: %q", role)
}

// Crashed runs a child of a role on dir and kills it when it is ready.
func Crashed(ctx context.Context, role, dir string, n int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), childEnv+"="+role, "HOLDFAST_BENCH_DIR="+dir, "HOLDFAST_BENCH_N="+strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // its end tells the child that we are gone
	if err != nil {
		return err
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	killed := cmd.Process.Kill()
	_ = cmd.Wait() // "signal: killed" is right
	if err != nil || line != ready+"\n" {
		return fmt.Errorf("child %s ended early: %q: %w", role, line, firstOf(err, context.Cause(ctx), io.ErrUnexpectedEOF))
	}
	return killed
}

// works is a continuous job with runs that never end by themselves. started is called
// at the begin of each.
func works(started func()) *continuous.Job[int] {
	return continuous.New(continuous.Config[int]{
		Name: "works",
		Run: func(ctx context.Context, _ *continuous.Run[int]) error {
			started()
			<-ctx.Done()
			return context.Cause(ctx)
		},
	})
}
