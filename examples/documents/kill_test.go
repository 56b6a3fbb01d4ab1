//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// The environment of a child tells it to be the program, and at which point it is killed; at
// point 0 it is not.
const childEnv = "DOCUMENTS_TEST_CHILD"

func TestMain(m *testing.M) {
	shutdownTime = 24 * time.Hour // how fast the machine is decides nothing
	order, isChild := os.LookupEnv(childEnv)
	if !isChild {
		os.Exit(m.Run())
	}
	at, err := strconv.ParseInt(order, 10, 64)
	if err != nil {
		panic(err)
	}
	if at > 0 {
		probe = &fatalProbe{at: at}
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// fatalProbe kills its process at the at-th point that it reaches.
type fatalProbe struct {
	at   int64
	seen atomic.Int64
}

func (p *fatalProbe) At(seam.Point) {
	if p.seen.Add(1) == p.at {
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			panic(err)
		}
		select {} // nothing after this point may happen
	}
}

const killed = -1 // exit code of a process that a signal ended

// child runs the program in a process of its own.
func child(t *testing.T, at int, args ...string) (r report, code int, stderr string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], append(args, "-json")...)
	cmd.Env = append(os.Environ(), childEnv+"="+strconv.Itoa(at))
	var stdout, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &errs
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return reportOf(t, stdout.String()), cmd.ProcessState.ExitCode(), errs.String()
}

// Killed at some points, each time on a new store, the program goes on to the totals of a
// plain loop. One kill for each store, because work that two kills in a row have cut off is
// held back for 3 s.
func TestKilledAndContinued(t *testing.T) {
	root, kills := forest(t, 9), 0
	for at := 6; at < 1000; at *= 3 {
		args := []string{"-src", root, "-dir", filepath.Join(t.TempDir(), "store"), "-check"}
		if r, code, stderr := child(t, at, args...); code != killed {
			wantForest(t, r, code, stderr)
			break
		}
		kills++
		r, code, stderr := child(t, 0, args...)
		wantForest(t, r, code, stderr)
	}
	if t.Logf("%d kills", kills); kills < 3 {
		t.Errorf("only %d kills", kills)
	}
}
