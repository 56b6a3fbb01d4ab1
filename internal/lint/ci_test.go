package lint

import (
	"regexp"
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

func TestSkippedStepsAreSeen(t *testing.T) {
	const script = "step \"a\" a\nif [ -x b ]; then\n  step \"b\" b\nfi\n[ -x c ] && step \"c\" c\n"
	if got := strings.Join(skippedSteps(script), " "); got != "b c" {
		t.Errorf("steps under a condition: %s", got)
	}
}
