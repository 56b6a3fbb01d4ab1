package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The environment of a child tells it to be the program.
const childEnv = "QUICKSTART_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
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

// The kettle boils by its alarm, and a later process knows that it has.
func TestRemembers(t *testing.T) {
	dir := t.TempDir()
	for _, want := range []string{"boiled before: 0.\nIt has boiled. Times in all: 1.\n", "boiled before: 1.\nIt has boiled. Times in all: 2.\n"} {
		if code, text := child(t, "-data", dir); code != 0 || !strings.HasSuffix(text, want) {
			t.Fatalf("exit code %d, %q, want %q", code, text, want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		arg  string
		code int
		want string
	}{
		{"-h", 0, "Usage:"},
		{"-wat", 2, "Usage:"},
		{"tea", 2, `unexpected argument "tea" (-h helps)`},
	} {
		if code, text := child(t, c.arg); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s: exit code %d, %q", c.arg, code, text)
		}
	}
}
