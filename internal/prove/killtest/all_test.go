package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/internal/prove/killtest/judge"
	"github.com/holdfast-dev/holdfast/internal/prove/killtest/program"
)

// The test binary is the program that is killed, too.
func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(beChild())
	}
	os.Exit(m.Run())
}

// A few lives, killed for real: nothing that was acknowledged is lost. Proves O7
// and S9.
func TestKillAll(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f, err := all(context.Background(), options{cycles: 8, each: 6, parallel: 2, seed: 1}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if f.Kill9 < 8 || f.Acked == 0 || f.AckedLost != 0 {
		t.Errorf("figures are %+v", f)
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// An interrupted campaign removes its directory.
func TestInterrupted(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := all(ctx, options{cycles: 8, parallel: 1, seed: 1}, t.Output()); err == nil {
		t.Error("no error")
	}
	if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// A life is judged by how it ended too.
func TestLifeCheck(t *testing.T) {
	for name, c := range map[string]struct {
		kind kind
		end  end
		ok   bool
	}{
		"killed":                         {killed, end{signalled: true}, true},
		"ended before it was killed":     {killed, end{}, false},
		"SIGTERM":                        {terminated, end{}, true},
		"SIGTERM, not in order":          {terminated, end{code: program.ExitShutdown}, false},
		"write error":                    {writeError, end{code: program.ExitFailed}, true},
		"write error that nobody saw":    {writeError, end{}, false},
		"write error that panicked":      {writeError, end{code: 2}, false},
		"full disk":                      {noSpace, end{full: true}, true},
		"full disk that nobody saw":      {noSpace, end{signalled: true}, false},
		"full disk that failed the host": {noSpace, end{full: true, code: program.ExitFailed}, false},
		"finished":                       {finished, end{}, true},
		"not finished":                   {finished, end{code: program.ExitFailed}, false},
	} {
		if err := (life{kind: c.kind}).check(c.end); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A last line that the kill has cut off is ignored. Any other line that cannot be read is
// an error.
func TestReadLog(t *testing.T) {
	var got []judge.Verb
	read := func(_ []byte, l judge.Line) { got = append(got, l.Verb) }
	n, err := readLog(strings.NewReader("{\"w\":\"call\",\"v\":\"add\"}\n{\"w\":\"call\",\"v\":\"set\"}\n{\"w\":\"ca"), read)
	if n != 2 || err != nil || !slices.Equal(got, []judge.Verb{judge.Add, judge.Set}) {
		t.Errorf("read %d lines, %v, %v", n, got, err)
	}
	if _, err := readLog(strings.NewReader("fatal error\n"), read); err == nil {
		t.Error("a line that is not JSON was taken")
	}
}
