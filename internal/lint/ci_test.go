package lint

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// stepLine finds the steps that .ci/run lists, and stepFunction the functions it defines.
var (
	stepLine     = regexp.MustCompile(`(?m)^(?:steps=')?([a-z0-9]+) {2,}\S`)
	stepFunction = regexp.MustCompile(`(?m)^([a-z0-9_]+)\(\) \{$`)
)

// unlistedSteps returns the wanted steps that a script doesn't list or doesn't define.
func unlistedSteps(script string, wanted ...string) (missing []string) {
	find := func(r *regexp.Regexp) (names []string) {
		for _, m := range r.FindAllStringSubmatch(script, -1) {
			names = append(names, m[1])
		}
		return names
	}
	listed, defined := find(stepLine), find(stepFunction)
	for _, name := range wanted {
		if !slices.Contains(listed, name) || !slices.Contains(defined, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// A check that can't run fails; it isn't left out. .ci/run runs all steps that it lists.
func TestEveryStepOfCIRuns(t *testing.T) {
	ci := read(t, ".ci/run")
	for _, name := range unlistedSteps(ci, "machine", "format", "tests", "alone", "outside", "vet", "static", "costs", "race", "kill9", "fuzz") {
		t.Errorf(".ci/run has no step %q: list it and define its function", name)
	}
	for _, command := range []string{"go test work", "go test -run '^TestCosts$' .", "scripts/ingest-kill.sh", "go run ./examples/orders", "fuzz_for 10 object FuzzDeposits"} {
		if !strings.Contains(ci, command) {
			t.Errorf(".ci/run does not run %s", command)
		}
	}
}

// outsideCommand finds the packages that a script tests with external programs, in a module's directory or in the workspace.
var outsideCommand = regexp.MustCompile(`(?m)^ +(?:HOLDFAST_[A-Z]+=required )+(?:alone_in (\S+) )?(?:logged )?go test ([^&\n]+)$`)

// outsideMissing returns the packages that need external programs and that a script doesn't test with them.
func outsideMissing(all []source, script string) (missing []string) {
	var tested []string
	for _, m := range outsideCommand.FindAllStringSubmatch(script, -1) {
		for _, arg := range strings.Fields(m[2]) {
			if strings.HasPrefix(arg, "./") {
				tested = append(tested, path.Join(m[1], arg))
			}
		}
	}
	for _, s := range all {
		if slices.Contains(s.imports(), module+"/internal/testing/outside") && !testedIn(tested, s.dir()) && !slices.Contains(missing, s.dir()) {
			missing = append(missing, s.dir())
		}
	}
	return missing
}

// testedIn reports whether a package is one of those that are tested, or lies below one that ends with "...".
func testedIn(tested []string, dir string) bool {
	return slices.ContainsFunc(tested, func(p string) bool {
		tree, all := strings.CutSuffix(p, "/...")
		return p == dir || all && within(dir, tree)
	})
}

// A test that is skipped without an external program runs in a step that requires the program.
func TestOutsideProgramsAreTestedByCI(t *testing.T) {
	for _, dir := range outsideMissing(loadAll(t), read(t, ".ci/run")) {
		t.Errorf("the tests of %s need an external program: add the package to the step outside of .ci/run", dir)
	}
}

func TestMissingOutsideTestsAreSeen(t *testing.T) {
	need := "package x\nimport _ \"" + module + "/internal/testing/outside\"\n"
	all := []source{sample(t, "a/x_test.go", need), sample(t, "server/b/x_test.go", need), sample(t, "c/x_test.go", need), sample(t, "server/d/x_test.go", need), sample(t, "e/x_test.go", "package e\n"),
		sample(t, "log/x_test.go", need), sample(t, "log/y/x_test.go", need)}
	const script = "lane() {\n  HOLDFAST_A=required HOLDFAST_B=required logged go test -count=1 -p 1 ./a ./server/b -run X\n  HOLDFAST_A=required alone_in log go test ./...\n  go test ./c\n}\n"
	if got := strings.Join(outsideMissing(all, script), " "); got != "c server/d" {
		t.Errorf("the packages %q are missing", got)
	}
}

func TestUnlistedStepsAreSeen(t *testing.T) {
	const script = "steps='a    does a\nb    does b'\na() {\nc() {\n"
	if got := strings.Join(unlistedSteps(script, "a", "b", "c"), " "); got != "b c" {
		t.Errorf("missing steps: %s", got)
	}
}
