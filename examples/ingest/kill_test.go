//go:build unix

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/seam"
)

// The environment of a child tells it to be the program, and at which point a
// signal reaches it: "<signal> <n>", at the n-th point.
const childEnv = "INGEST_TEST_CHILD"

func TestMain(m *testing.M) {
	shutdownTime = 24 * time.Hour // how fast the machine is decides nothing
	order, isChild := os.LookupEnv(childEnv)
	if !isChild {
		os.Exit(m.Run())
	}
	if name, n, ok := strings.Cut(order, " "); ok {
		at, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			panic(err)
		}
		sig := map[string]syscall.Signal{"kill": syscall.SIGKILL, "interrupt": syscall.SIGINT}[name]
		probe = &fatalProbe{signal: sig, at: at}
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// fatalProbe sends its process a signal at the at-th point that it reaches.
type fatalProbe struct {
	signal syscall.Signal
	at     int64
	seen   atomic.Int64
}

func (p *fatalProbe) At(seam.Point) {
	if p.seen.Add(1) == p.at {
		if err := syscall.Kill(os.Getpid(), p.signal); err != nil {
			panic(err)
		}
		if p.signal == syscall.SIGKILL {
			select {} // nothing after this point may happen
		}
	}
}

// child runs the program in a process of its own.
func child(t *testing.T, order string, args ...string) outcome {
	t.Helper()
	cmd := exec.Command(os.Args[0], append(args, "-json")...)
	cmd.Env = append(os.Environ(), childEnv+"="+order)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return outcomeOf(t, cmd.ProcessState.ExitCode(), stdout.String(), stderr.String())
}

const killed = -1 // exit code of a process that a signal ended

// Killed at many points, one after the other on one store, the program ends with
// each file counted once.
func TestKilledAtManyPoints(t *testing.T) {
	src, data := t.TempDir(), filepath.Join(t.TempDir(), "store")
	want := tree(t, src, 40)
	kills := 0
	for at := 1; ; at += at/3 + 1 {
		o := child(t, "kill "+strconv.Itoa(at), "-src", src, "-data", data, "-workers", "4")
		if o.code != killed {
			wantSums(t, o, want)
			break
		}
		kills++
	}
	last := child(t, "", "-src", src, "-data", data)
	wantSums(t, last, want)
	t.Logf("%d kills, %d executions for %d files, %d cut off", kills, last.Executions, last.Files, last.Recovered)
	if kills < 5 || last.Executions < 40 || last.Dead != 0 {
		t.Errorf("%d kills, the report is %+v", kills, last.report)
	}
}

// Killed once at each of some points, each time on a new store.
func TestKilledOnce(t *testing.T) {
	src := t.TempDir()
	want := tree(t, src, 12)
	for at := 5; at < 400; at += 40 {
		data := filepath.Join(t.TempDir(), "store")
		o := child(t, "kill "+strconv.Itoa(at), "-src", src, "-data", data, "-workers", "3")
		if o.code != killed {
			wantSums(t, o, want)
			return
		}
		wantSums(t, child(t, "", "-src", src, "-data", data), want)
	}
}

// Ctrl-C ends the program in order, and the same command goes on.
func TestInterrupted(t *testing.T) {
	src, data := t.TempDir(), filepath.Join(t.TempDir(), "store")
	want := tree(t, src, 40)
	o := child(t, "interrupt 60", "-src", src, "-data", data, "-workers", "2")
	if o.code != exitInterrupted || o.stdout != "" || !strings.Contains(o.stderr, "To go on from here, run the same command.") {
		t.Fatalf("exit code %d, %s%s", o.code, o.stdout, o.stderr)
	}
	wantSums(t, child(t, "", "-src", src, "-data", data), want)
}
