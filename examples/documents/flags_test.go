package main

import (
	"flag"
	"strings"
	"testing"
)

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		args   string
		err    error
		stdout string
		stderr string
	}{
		{"", nil, "", ""},
		{"-src a -dir b -n 3 -json -check", nil, "", ""},
		{"-h", flag.ErrHelp, "-check", ""},
		{"-n 0", nil, "", ""},
		{"-n -1", errUsage, "", "-n is -1: it must not be negative"},
		{"-n x", errUsage, "", "-n"},
		{"-wat", errUsage, "", "-h helps"},
		{"dir", errUsage, "", `unexpected argument "dir": name the directory with -src`},
	} {
		var stdout, stderr strings.Builder
		_, err := parseFlags(strings.Fields(c.args), &stdout, &stderr)
		if err != c.err || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%q: %v, stdout %q, stderr %q", c.args, err, stdout.String(), stderr.String())
		}
		if c.stderr != "" && strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%q: stderr is not one line: %q", c.args, stderr.String())
		}
	}
}

// The help has a line for each flag, tells its default, and fits on a terminal.
func TestHelpTellsOfEachFlag(t *testing.T) {
	_, after, ok := strings.Cut(usage, "Flags:\n")
	if !ok || !strings.Contains(usage, "Example:") {
		t.Fatalf("the help has no flags or no example:\n%s", usage)
	}
	flags(new(settings)).VisitAll(func(f *flag.Flag) {
		_, text, ok := strings.Cut("\n"+after, "\n  -"+f.Name+" ")
		text, _, _ = strings.Cut(text, "\n  -")
		if !ok || !strings.Contains(text, "(default:") {
			t.Errorf("the help does not tell of -%s with its default: %q", f.Name, text)
		}
		if f.Name == "n" && !strings.Contains(text, "(default: "+f.DefValue+")") {
			t.Errorf("the default of -n is %s, not as in %q", f.DefValue, text)
		}
	})
	for line := range strings.Lines(usage) {
		if len(line) > 81 {
			t.Errorf("a line of the help is longer than 80 columns: %q", line)
		}
	}
}
