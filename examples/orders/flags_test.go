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
		{"-n 20 -kills 3 -server-kills 1 -seed 7 -dir a -json -check", nil, "", ""},
		{"-h", flag.ErrHelp, "-server-kills", ""},
		{"-n 1 -kills 0 -server-kills 0", nil, "", ""},
		{"-n 0 -kills 0 -server-kills 0", errUsage, "", "-n is 0: it must be from 1 to 100000"},
		{"-n 100000", nil, "", ""},
		{"-n 100001", errUsage, "", "it must be from 1 to 100000"},
		{"-kills -1", errUsage, "", "-kills is -1"},
		{"-server-kills -1", errUsage, "", "-server-kills is -1"},
		{"-n 13", nil, "", ""},
		{"-n 12", errUsage, "", "-n is 12: it must be more than the kills together, 12"},
		{"-kills 9223372036854775807 -server-kills 9223372036854775807", errUsage, "", "more than the kills together"},
		{"-n x", errUsage, "", "-n"},
		{"-seed -1", errUsage, "", "-seed"},
		{"-wat", errUsage, "", "-h helps"},
		{"dir", errUsage, "", `unexpected argument "dir"`},
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
		_, text, ok := strings.Cut(after, "\n  -"+f.Name+" ")
		if !ok {
			_, text, ok = strings.Cut("\n"+after, "\n  -"+f.Name+" ")
		}
		text, _, _ = strings.Cut(text, "\n  -")
		if !ok || !strings.Contains(text, "(default:") {
			t.Errorf("the help does not tell of -%s with its default: %q", f.Name, text)
		}
		if number := f.DefValue != "" && f.DefValue != "false"; number && !strings.Contains(text, "(default: "+f.DefValue+")") {
			t.Errorf("the default of -%s is %s, not as in %q", f.Name, f.DefValue, text)
		}
	})
	for line := range strings.Lines(usage) {
		if len(line) > 81 {
			t.Errorf("a line of the help is longer than 80 columns: %q", line)
		}
	}
}
