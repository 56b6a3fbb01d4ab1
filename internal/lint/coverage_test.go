package lint

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A test claims a promise of docs/CONTRACT.md with a comment like "Proves O3" or
// "Proves S4, S6 and A1", and a row of docs/CASES.md with "Case 12" or "Cases 3
// and CR4".
var (
	promises = claims{
		list:  regexp.MustCompile(`(?m)^- \*\*([A-Z]+\d+)\*\*`),
		claim: regexp.MustCompile(`\bProves ([A-Z]+\d+(?:(?:,| and|, and) [A-Z]+\d+)*)`),
	}
	cases = claims{
		list:  regexp.MustCompile(`(?m)^\| ((?:[A-Z]+)?\d+) \|`),
		claim: regexp.MustCompile(`\bCases? ((?:[A-Z]{2})?\d+(?:(?:,| and|, and) (?:[A-Z]{2})?\d+)*)\b`),
	}
)

// claims relates the numbers that a document lists to the tests that name them.
type claims struct {
	list  *regexp.Regexp // finds each number in the document
	claim *regexp.Regexp // finds the numbers that a comment names, as one list
}

var (
	number   = regexp.MustCompile(`(?:[A-Z]+)?\d+`)
	wrapping = regexp.MustCompile(`\n\s*//\s*|\s+`)
)

// numbers are those that the document lists, in its order.
func (c claims) numbers(document string) []string {
	var found []string
	for _, m := range c.list.FindAllStringSubmatch(document, -1) {
		found = append(found, m[1])
	}
	return found
}

// named are the numbers that a test file's comments and strings name, if it has
// a function that go test runs.
func (c claims) named(s source) []string {
	if !s.test() || !runs.MatchString(s.text) || within(s.dir(), "internal/lint") {
		return nil
	}
	var found []string
	for _, m := range c.claim.FindAllStringSubmatch(wrapping.ReplaceAllString(s.text, " "), -1) {
		found = append(found, number.FindAllString(m[1], -1)...)
	}
	return found
}

var runs = regexp.MustCompile(`(?m)^func (Test|Fuzz|Example)`)

// compare gives the listed numbers that no test names, and the numbers of tests that
// are not listed, as "number in file".
func (c claims) compare(document string, files []source) (uncovered, unknown []string) {
	listed := c.numbers(document)
	covered := map[string]bool{}
	for _, s := range files {
		for _, n := range c.named(s) {
			covered[n] = true
			if !slices.Contains(listed, n) {
				unknown = append(unknown, n+" in "+s.path)
			}
		}
	}
	for _, n := range listed {
		if !covered[n] {
			uncovered = append(uncovered, n)
		}
	}
	return uncovered, unknown
}

func TestEachPromiseIsProved(t *testing.T) {
	uncovered, unknown := promises.compare(read(t, "docs/CONTRACT.md"), loadAll(t))
	if len(uncovered) > 0 {
		t.Errorf("no test proves %s: write one that fails when the promise is broken, and say \"Proves %s\" in its comment",
			strings.Join(uncovered, " "), uncovered[0])
	}
	for _, u := range unknown {
		t.Errorf("a test proves %s, which docs/CONTRACT.md does not promise: correct the number, or add the promise", u)
	}
}

func TestEachCaseIsTested(t *testing.T) {
	uncovered, unknown := cases.compare(read(t, "docs/CASES.md"), loadAll(t))
	if len(uncovered) > 0 {
		t.Errorf("no test for the cases %s: write one that fails on the mistake, and say \"Case %s\" in its comment",
			strings.Join(uncovered, " "), uncovered[0])
	}
	for _, u := range unknown {
		t.Errorf("a test names case %s, which docs/CASES.md does not have: correct the id, or add the row", u)
	}
}
