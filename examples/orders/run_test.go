package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// programEnv makes the test binary the program.
const programEnv = "ORDERS_TEST_PROGRAM"

// The test binary is the worker and the payment server, too.
func TestMain(m *testing.M) {
	stallTime, endTime = 24*time.Hour, 24*time.Hour // how fast the machine is decides nothing
	isChild := len(os.Args) > 1 && slices.Contains([]role{worker, paymentServer}, role(os.Args[1]))
	switch {
	case isChild:
		os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	case os.Getenv(programEnv) != "":
		ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt)
		os.Exit(runUntil(ctx, os.Args[1:], os.Stdout, &heldUp{os.Stderr, ctx}))
	}
	os.Exit(m.Run())
}

// firstKill is in the line that tells of the first kill of the worker, of one.
const firstKill = "kills: 1 of 1 of the worker"

// heldUp is the standard error of a program that goes no further than its first kill until it is signalled.
// Half of the orders are placed later.
type heldUp struct {
	io.Writer
	signalled context.Context
}

func (h *heldUp) Write(p []byte) (int, error) {
	n, err := h.Writer.Write(p)
	if strings.Contains(string(p), firstKill) {
		<-h.signalled.Done()
	}
	return n, err
}

// program runs the whole program with -json, and returns its report.
func program(t *testing.T, args ...string) (r report, code int, stderr string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var stdout, errors strings.Builder
	code = run(append(args, "-json"), strings.NewReader(""), &stdout, &errors)
	if code == 0 {
		if err := json.Unmarshal([]byte(stdout.String()), &r); err != nil || strings.Count(stdout.String(), "\n") != 1 {
			t.Errorf("standard output is %q, %v", stdout.String(), err)
		}
	} else if stdout.Len() > 0 {
		t.Errorf("exit code %d, and standard output is %q", code, stdout.String())
	}
	return r, code, errors.String()
}

// The worker and the payment server are killed while they work, and each order is charged
// once, or charged and refunded once. Nothing is left of a run that ended well.
func TestKilled(t *testing.T) {
	r, code, stderr := program(t, "-n", "20", "-kills", "2", "-server-kills", "1", "-check")
	if code != 0 || r.Orders != 20 || r.Wrong != 0 || r.Lost != 0 || r.Kills != 2 || r.ServerKills != 1 ||
		r.Shipped != 18 || r.Refunded != 2 || r.Charges != 20 || r.Refunds != 2 {
		t.Fatalf("exit code %d, the report is %+v\n%s", code, r, stderr)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	t.Logf("%d repeats, %d faults, %.1f s", r.Repeats, r.Faults, r.Seconds)
}

// untilKilled cancels a context when the progress tells of the first kill. The orders are
// packed at that time.
type untilKilled struct {
	strings.Builder
	cancel context.CancelFunc
}

func (u *untilKilled) Write(p []byte) (int, error) {
	if strings.Contains(string(p), firstKill) {
		u.cancel()
	}
	return u.Builder.Write(p)
}

// Ctrl-C ends both processes in order, and a later run goes on in the same directory. The
// orders that have ended stay as they are.
func TestInterruptedAndContinued(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stderr := &untilKilled{cancel: cancel}
	s := settings{orders: 20, kills: 1, seed: 1, dir: dir}
	_, err := orders(ctx, s, stderr)
	if !errors.Is(err, errInterrupted) || err.Error() != errInterrupted.Error() || !strings.Contains(stderr.String(), "To go on, run the same command with -dir "+dir) {
		t.Fatalf("interrupted: %v\n%s", err, stderr)
	}
	before, _, err := readBook(filepath.Join(dir, "book.jsonl"))
	if err != nil || len(before) == 0 {
		t.Fatalf("the book has %d lines, %v", len(before), err)
	}
	r, err := orders(context.Background(), settings{orders: 20, seed: 1, dir: dir}, stderr)
	if err != nil || !r.sound() || r.Charges != 20 || r.Refunds != 2 || r.Kills != 0 {
		t.Errorf("continued: %+v, %v\n%s", r, err, strings.Join(r.problems, "\n"))
	}
	after, _, err := readBook(filepath.Join(dir, "book.jsonl"))
	if err != nil || !slices.Equal(after[:len(before)], before) {
		t.Errorf("the book has lost its first %d lines, %v", len(before), err)
	}
	if _, err := orders(context.Background(), settings{orders: 21, dir: dir}, stderr); err == nil || !strings.Contains(err.Error(), "go on with -n 20") {
		t.Errorf("with another -n: %v", err)
	}
}

// The program itself may be killed, too: its children notice and end, and the next run goes
// on. After Ctrl-C it ends them before itself.
func TestSignalled(t *testing.T) {
	for _, c := range []struct {
		signal os.Signal
		code   int
		says   string
	}{
		{os.Kill, -1, ""},
		{os.Interrupt, exitInterrupted, "To go on, run the same command with -dir "},
	} {
		t.Run(c.signal.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			code, said := signalled(t, c.signal, "-n", "20", "-kills", "1", "-server-kills", "0", "-dir", dir)
			if code != c.code || !strings.Contains(said, c.says) {
				t.Errorf("exit code %d\n%s", code, said)
			}
			r, err := orders(context.Background(), settings{orders: 20, seed: 1, dir: dir}, t.Output())
			if err != nil || !r.sound() || r.Charges != 20 || r.Refunds != 2 {
				t.Errorf("the next run: %+v, %v\n%s", r, err, strings.Join(r.problems, "\n"))
			}
		})
	}
}

// signalled runs the program in a process of its own, and sends it a signal after its first
// kill. It returns the exit code and the text of standard error.
func signalled(t *testing.T, signal os.Signal, args ...string) (code int, said string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), programEnv+"=1")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once // a second Ctrl-C would end it at once
	readLines(stderr, func(line []byte) {
		said += string(line)
		if strings.Contains(string(line), firstKill) {
			once.Do(func() {
				if err := cmd.Process.Signal(signal); err != nil {
					t.Error(err)
				}
			})
		}
	})
	_ = cmd.Wait() // the exit code tells the same
	return cmd.ProcessState.ExitCode(), said
}

// A book with a charge that no order explains is found, and told on standard error. The
// flag -check makes it the exit code.
func TestPlantedChargeIsFound(t *testing.T) {
	dir := t.TempDir()
	shut(t, written(t, filepath.Join(dir, "book.jsonl"), entry{Kind: charge, Key: "forged", Order: 2, Cents: orderOf(2).Cents}))
	args := []string{"-n", "3", "-kills", "0", "-server-kills", "0", "-dir", dir}
	r, code, stderr := program(t, args...)
	if code != 0 || r.Wrong != 1 || r.Lost != 0 || !strings.Contains(stderr, "- order 2 was charged 2 times\n") {
		t.Errorf("exit code %d, the report is %+v\n%s", code, r, stderr)
	}
	var stdout, errors strings.Builder
	if code := run(append(args, "-check"), strings.NewReader(""), &stdout, &errors); code != exitError || !strings.Contains(stdout.String(), "Wrong: 1. Lost: 0.") {
		t.Errorf("with -check the exit code is %d: %s%s", code, stdout.String(), errors.String())
	}
}

// A process that ends by itself ends the program, with its reason.
func TestChildThatFails(t *testing.T) {
	for _, c := range []struct{ file, text, says string }{
		{"store", "no directory", "the worker has ended: exit status 1: "},
		{"book.jsonl", "no JSON\n", "the payment-server has ended: exit status 1: line 1 of the book "},
		{"run.json", "no JSON\n", "run.json is damaged: name another directory"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, code, stderr := program(t, "-n", "3", "-kills", "0", "-server-kills", "0", "-dir", dir)
		if code != exitError || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit code %d\n%s", c.file, code, stderr)
		}
	}
}

// A directory belongs to one run at a time.
func TestDirectoryIsLocked(t *testing.T) {
	dir := t.TempDir()
	first, err := openDirectory(dir, 5, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openDirectory(dir, 5, 0); err == nil || !strings.Contains(err.Error(), "in use by another run") {
		t.Errorf("the second: %v", err)
	}
	if err := first.close(true); err != nil {
		t.Fatal(err)
	}
	again, err := openDirectory(dir, 5, 0)
	if err != nil {
		t.Fatalf("after the first: %v", err)
	}
	if err := again.close(true); err != nil {
		t.Fatal(err)
	}
}

// The roles of the children are none for users.
func TestRoleWithoutConfiguration(t *testing.T) {
	for _, args := range [][]string{{"worker"}, {"payment-server"}, {"worker", "{}", "x"}} {
		var stdout, stderr strings.Builder
		if code := run(args, strings.NewReader(""), &stdout, &stderr); code != exitError || !strings.Contains(stderr.String(), "is a role for the children") {
			t.Errorf("%q: exit code %d, %q", args, code, stderr.String())
		}
	}
}
