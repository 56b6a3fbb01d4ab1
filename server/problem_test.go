package server

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// docs/OPERATIONS.md names each type of problem that a rule makes, in the row of its status.
func TestProblemsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(string(page), "\n")
	for _, r := range rules {
		if !slices.ContainsFunc(rows, func(row string) bool {
			return strings.HasPrefix(row, "| "+strconv.Itoa(r.problem.Status)) && strings.Contains(row, "`"+r.problem.Type+"`")
		}) {
			t.Errorf("docs/OPERATIONS.md has no row for %s %s", strconv.Itoa(r.problem.Status), r.problem.Type)
		}
		if r.problem.Retryable && r.problem.Status < 429 || r.problem.Status < 500 && r.problem.Outcome == unknown {
			t.Errorf("the rule of %v contradicts itself: %+v", r.is, r.problem)
		}
	}
}
