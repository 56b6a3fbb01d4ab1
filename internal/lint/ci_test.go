package lint

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// conditional finds a step of .ci/run that may be passed over.
var conditional = regexp.MustCompile(`(?m)^(?:[ \t]+|.*(?:\|\||&&).*)step "([^"]+)"`)

// skippedSteps are the steps that a script runs under a condition only.
func skippedSteps(script string) (names []string) {
	for _, m := range conditional.FindAllStringSubmatch(script, -1) {
		names = append(names, m[1])
	}
	return names
}

// A check that cannot run fails; it is not left out.
func TestEveryStepOfCIRuns(t *testing.T) {
	ci := read(t, ".ci/run")
	for _, name := range skippedSteps(ci) {
		t.Errorf(".ci/run has step %q under a condition: run it always, and let it fail if it cannot", name)
	}
	for _, command := range []string{
		"(cd bench && go test ./internal/... ./cmd/...)",
		"(cd bench && go test -run '^TestCosts$' .)",
		"scripts/ingest-kill.sh",
		"go run ./internal/prove/reliability",
	} {
		if !strings.Contains(ci, "\n  "+command) {
			t.Errorf(".ci/run does not run %s", command)
		}
	}
}

// outsideCommand finds the packages that a script tests with programs of others, in the library or in another module.
var outsideCommand = regexp.MustCompile(`(?m)^  +(?:\(cd (\S+) && )?logged go test -count=1 -p 1 ([^)&\n]+)`)

// outsideMissing are the packages of the files that need programs of others and that a script does not test with them.
func outsideMissing(all []source, script string) (missing []string) {
	var tested []string
	for _, m := range outsideCommand.FindAllStringSubmatch(script, -1) {
		for _, dir := range strings.Fields(m[2]) {
			tested = append(tested, path.Join(m[1], dir))
		}
	}
	for _, s := range all {
		if slices.Contains(s.imports(), module+"/internal/testing/outside") && !testedIn(tested, s.dir()) && !slices.Contains(missing, s.dir()) {
			missing = append(missing, s.dir())
		}
	}
	return missing
}

// testedIn says whether a package is one of those that are tested, or lies below one that ends with "...".
func testedIn(tested []string, dir string) bool {
	return slices.ContainsFunc(tested, func(p string) bool {
		tree, all := strings.CutSuffix(p, "/...")
		return p == dir || all && within(dir, tree)
	})
}

// A test that is skipped without a program of others runs in the step that installs it.
func TestOutsideProgramsAreTestedByCI(t *testing.T) {
	for _, dir := range outsideMissing(loadAll(t), read(t, ".ci/run")) {
		t.Errorf("the tests of %s need a program of others: add the package to the step outside of .ci/run", dir)
	}
}

func TestMissingOutsideTestsAreSeen(t *testing.T) {
	need := "package x\nimport _ \"" + module + "/internal/testing/outside\"\n"
	all := []source{sample(t, "a/x_test.go", need), sample(t, "server/b/x_test.go", need), sample(t, "c/x_test.go", need), sample(t, "server/d/x_test.go", need), sample(t, "e/x_test.go", "package e\n"),
		sample(t, "log/x_test.go", need), sample(t, "log/y/x_test.go", need)}
	const script = "outside() {\n  logged go test -count=1 -p 1 ./a ./d\n  (cd server && logged go test -count=1 -p 1 ./b ./c) &&\n    (cd log && logged go test -count=1 -p 1 ./...)\n}\n"
	if got := strings.Join(outsideMissing(all, script), " "); got != "c server/d" {
		t.Errorf("the packages %q are missing", got)
	}
}

func TestSkippedStepsAreSeen(t *testing.T) {
	const script = "step \"a\" a\nif [ -x b ]; then\n  step \"b\" b\nfi\n[ -x c ] && step \"c\" c\n"
	if got := strings.Join(skippedSteps(script), " "); got != "b c" {
		t.Errorf("steps under a condition: %s", got)
	}
}
