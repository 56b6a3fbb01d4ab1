package lint

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxLines bounds a file outside tests. A file that reaches it holds an idea
// that wants a name and a file of its own.
const maxLines = 500

// unfinished are the marks of work put off. Split here, so that this file has none.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|not impl` + `emented)\b`)

// skipping lists the files that may skip a test: because it needs an external
// program, or because only scripts/prove runs it.
var skipping = []string{"internal/testing/outside/outside.go", "internal/testing/prove/prove.go"}

// skips are the methods of testing.T that let a test pass without having run.
var skips = map[string]bool{"Skip": true, "Skipf": true, "SkipNow": true}

// tidyProblems are the unfinished places of one file.
func tidyProblems(s source) []string {
	var problems []string
	if n := strings.Count(s.text, "\n"); n > maxLines && !s.test() {
		problems = append(problems, s.at(s.file.Package, "the file has %d lines, more than %d: look for the idea in it that wants a name, and give it a file", n, maxLines))
	}
	for i, line := range strings.Split(s.text, "\n") {
		if mark := unfinished.FindString(line); mark != "" {
			problems = append(problems, s.at(s.file.FileStart, "line %d says %s: finish it, or open an issue and say in the comment what holds today", i+1, mark))
		}
	}
	return problems
}

// skipProblems are the places of one file that skip a test.
func skipProblems(s source) []string {
	if slices.Contains(skipping, s.path) || !s.test() && !within(s.dir(), "internal/testing") {
		return nil
	}
	var problems []string
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && skips[sel.Sel.Name] {
			if id, ok := sel.X.(*ast.Ident); ok && (id.Name == "t" || id.Name == "b" || id.Name == "f" || id.Name == "tb") {
				problems = append(problems, s.at(n.Pos(), "%s.%s lets a test pass that did not run: make it run everywhere, or remove it", id.Name, sel.Sel.Name))
			}
		}
		return true
	})
	return problems
}

func TestFilesAreFinished(t *testing.T) {
	for _, s := range loadHouse(t) {
		report(t, tidyProblems(s))
	}
}

func TestNoTestIsSkipped(t *testing.T) {
	for _, s := range loadAll(t) {
		report(t, skipProblems(s))
	}
}

func TestUnfinishedIsSeen(t *testing.T) {
	long := "package x\n" + strings.Repeat("//\n", maxLines)
	wantProblems(t, tidyProblems(sample(t, "x/x.go", long)), "more than 500")
	wantProblems(t, tidyProblems(sample(t, "x/x_test.go", long)))
	wantProblems(t, tidyProblems(sample(t, "x/x.go", "package x // TO"+"DO: more\n")), "line 1")
	const skip = "package x\nfunc f(t testing.TB) { t.Skipf(``) }\n"
	wantProblems(t, skipProblems(sample(t, "server/x_test.go", skip)), "did not run")
	wantProblems(t, skipProblems(sample(t, "internal/testing/x/x.go", skip)), "did not run")
	wantProblems(t, skipProblems(sample(t, skipping[0], skip)))
}
