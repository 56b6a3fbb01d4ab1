package seeds

import (
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawn is set in the process that draws for the test.
const drawn = "HOLDFAST_SEEDS_DRAWN"

// Case HN1: two runs of go test draw the same inputs, unless they are told another
// seed.
func TestRunsDrawTheSame(t *testing.T) {
	if os.Getenv(drawn) != "" {
		return
	}
	first := draws(t, "")
	if again := draws(t, ""); again != first {
		t.Errorf("one run drew\n%s\nand the next\n%s", first, again)
	}
	if other := draws(t, "", "-rapid.seed=7"); other == first {
		t.Error("a seed on the command line has no effect")
	}
	if other := draws(t, "7"); other != draws(t, "", "-rapid.seed=7") {
		t.Error("a seed in the environment has no effect")
	}
	if other := draws(t, "", "-rapid.seed=0"); other == draws(t, "", "-rapid.seed=0") {
		t.Error("seed 0 is not random")
	}
	few, all := strings.Count(draws(t, ""), "\n"), strings.Count(draws(t, "", "-rapid.checks=100"), "\n")
	if few != 25 || all != 100 {
		t.Errorf("a run drew %d inputs, and with -rapid.checks=100 %d", few, all)
	}
}

// draws are the draws of a process of this test.
func draws(t *testing.T, seed string, args ...string) string {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"-test.run=^TestDraws$", "-test.v"}, args...)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "RAPID_") || strings.HasPrefix(v, "HOLDFAST_PROVE=")
	}), drawn+"=1")
	if seed != "" {
		cmd.Env = append(cmd.Env, "RAPID_SEED="+seed)
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var lines []string
	for l := range strings.Lines(string(out)) {
		if strings.Contains(l, "drew ") {
			lines = append(lines, l)
		}
	}
	if len(lines) == 0 {
		t.Fatalf("nothing was drawn:\n%s", out)
	}
	return strings.Join(lines, "")
}

// TestDraws tells its draws to TestRunsDrawTheSame.
func TestDraws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Uint64().Draw(rt, "n")
		if os.Getenv(drawn) != "" {
			t.Log("drew ", n)
		}
	})
}

func TestFixNeedsTheFlag(t *testing.T) {
	if err := fix(flag.NewFlagSet("none", flag.ContinueOnError)); err == nil || !strings.Contains(err.Error(), "-rapid.seed") {
		t.Errorf("without the flag: %v", err)
	}
}
