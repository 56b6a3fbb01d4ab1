package patterns

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/harness"
	_ "github.com/holdfast-dev/holdfast/internal/testing/seeds" // the tests draw the same inputs in each run
)

// found is the problem that the harness finds in a scenario with a bug.
func found(t *testing.T, scenario harness.Scenario, opts ...harness.Option) *harness.Failure {
	t.Helper()
	_, err := harness.Explore(scenario, opts...)
	var f *harness.Failure
	if !errors.As(err, &f) {
		t.Fatalf("the bug was not found: %v", err)
	}
	return f
}

// excerpt is the problem of a failure and the rows of its timeline that lead to the crash.
func excerpt(f *harness.Failure, rows int) string {
	lines := strings.Split(f.Timeline, "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, " CRASH 1: ") })
	return f.Problem + "\n\n" + strings.Join(lines[max(at-rows, 0):at+1], "\n")
}

const page = "../../docs/PATTERNS.md"

// isShown checks that the page shows a text, letter by letter.
func isShown(t *testing.T, text string) {
	t.Helper()
	document, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(document), "\n```\n"+text+"\n```\n") {
		t.Errorf("docs/PATTERNS.md does not show this as it is now; paste it there as a block of its own:\n%s", text)
	}
}
