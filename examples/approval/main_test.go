package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The environment of a child tells it to be the program.
const childEnv = "APPROVAL_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		limit = 24 * time.Hour // how fast the machine is decides nothing
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child runs the program in a process of its own.
func child(t *testing.T, args ...string) (code int, text string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// Each command is a process of its own, and the request waits on disk between them.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		command string
		code    int
		want    string
	}{
		{"ask anna 250", 0, "Mail: May anna have 250 euro?\nrunning: the request waits for the boss.\n"},
		{"ask anna 250", 0, "There is such a request already.\nrunning: the request waits for the boss.\n"},
		{"show anna", 0, "running: the request waits for the boss.\n"},
		{"yes anna", 0, "Mail: Pay 250 euro to anna.\nThe request is paid.\n"},
		{"show anna", 0, "completed: the request is paid.\n"},
		{"ask bob 10", 0, "Mail: May bob have 10 euro?\nrunning: the request waits for the boss.\n"},
		{"cancel bob", 0, "Mail: Never mind: bob needs no money.\nThe request is cancelled.\n"},
		{"ask carl 10", 0, "Mail: May carl have 10 euro?\nrunning: the request waits for the boss.\n"},
		{"no carl", 0, "The request is refused.\n"},
		{"no carl", 1, "approval: workflow: the run has ended: request/carl is completed\n"},
		{"yes dora", 1, "approval: jobs: no such job: request/dora\n"},
		{"ask dora much", 1, "approval: EURO must be a number: \"much\"\n"},
		{"wat dora", 1, "approval: unknown command \"wat\" (-h helps)\n"},
	} {
		code, text := child(t, append([]string{"-data", dir}, strings.Fields(c.command)...)...)
		if code != c.code || text != c.want {
			t.Fatalf("%s: exit code %d, %q, want %d, %q", c.command, code, text, c.code, c.want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args string
		code int
	}{{"-h", 0}, {"-wat", 2}, {"", 2}, {"show", 2}} {
		if code, text := child(t, strings.Fields(c.args)...); code != c.code || !strings.Contains(text, "Usage:") {
			t.Errorf("%q: exit code %d, %q", c.args, code, text)
		}
	}
}
