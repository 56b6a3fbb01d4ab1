package server

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/jobs"
	"github.com/holdfast-dev/holdfast/jobs/verbs"
	"github.com/holdfast-dev/holdfast/object"
	"github.com/holdfast-dev/holdfast/server/auth"
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

// Proves V4: an error that may come after a committed part of a verb says unknown, and the verb may be
// repeated as it is only with a key; a refusal that comes before the turn says none.
func TestOutcomesOfVerbs(t *testing.T) {
	one, whole := verbs.Description{Name: "add", Role: verbs.Call}, verbs.Description{Name: "replayAll", Role: verbs.Operator, Whole: true}
	for _, c := range []struct {
		verb      verbs.Description
		safe      bool
		err       error
		want      outcome
		retryable bool
	}{
		{one, false, object.ErrReset, unknown, false},
		{one, true, object.ErrReset, unknown, true},
		{one, false, object.ErrConstructor, unknown, false},
		{one, true, object.ErrConstructor, unknown, true},
		{one, false, object.ErrOverloaded, none, true},
		{one, false, object.ErrNoSpace, none, true},
		{one, true, jobs.ErrInvalid, none, false},
		{whole, false, object.ErrOverloaded, unknown, false},
		{whole, false, jobs.ErrInvalid, none, false},
	} {
		p := problemOf((&exchange{}).verbProblem(t.Context(), c.verb, c.safe, fmt.Errorf("verb: %w", c.err)))
		if p.Outcome != c.want || p.Retryable != c.retryable {
			t.Errorf("V4: %s, safe %v, after %v: %+v", c.verb.Name, c.safe, c.err, p)
		}
	}
}

// Proves V4: the deletion of an object with its messages has several commits. So an error does not say that none
// was made, although that of a deletion without messages does. The request may be sent again as it is.
func TestOutcomeOfADeletionInParts(t *testing.T) {
	class := cartClass(newGates())
	f := start(t, func(c *Config) {
		exposeCarts(class)(c)
		c.Auth = people{"admin": {Role: auth.Admin}}
	}, class)
	if a := f.ask("admin", "DELETE", "/v1/objects/cart/a?messages=1", ""); a.status != 204 {
		t.Fatalf("a deletion: %d %s", a.status, a.body)
	}
	if err := f.host.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]outcome{"": none, "?messages=0": none, "?messages=1": unknown} {
		p := f.ask("admin", "DELETE", "/v1/objects/cart/a"+query, "").problem(t)
		if p.Type != "shutting-down" || p.Outcome != want || !p.Retryable {
			t.Errorf("V4: DELETE%s: %+v", query, p)
		}
	}
	p := problemOf(inParts(fmt.Errorf("cart/a: %w", object.ErrNoSpace)))
	if p.Type != "no-space" || p.Outcome != unknown || !p.Retryable {
		t.Errorf("V4: a full disk between two commits: %+v", p)
	}
}

// Proves V4: a wake of an object whose constructor fails does not say that nothing was committed.
func TestOutcomeOfAFailedWake(t *testing.T) {
	class := cartClass(newGates())
	f := start(t, func(c *Config) {
		exposeCarts(class)(c)
		c.Auth = people{"operator": {Role: auth.Operator}}
	}, class)
	p := f.ask("operator", "POST", "/v1/objects/cart/broken/wake", "").problem(t)
	if p.Type != "constructor-failed" || p.Outcome != unknown || !p.Retryable {
		t.Errorf("V4: %+v", p)
	}
}
