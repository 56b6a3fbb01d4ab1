package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each mutant still fits its file. A refactoring that moves the code of a mutant fails
// here, and must mend the mutant.
func TestMutantsFitTheirFiles(t *testing.T) {
	files := make(map[string][]mutant)
	for _, m := range mutants() {
		files[m.File] = append(files[m.File], m)
	}
	for name, ms := range files {
		changed, err := apply(read(t, name), ms)
		if err != nil {
			t.Error(err)
		} else if _, err := parser.ParseFile(token.NewFileSet(), name, changed, parser.SkipObjectResolution); err != nil {
			t.Errorf("with its mutants the file is no Go: %v", err)
		}
	}
}

var switches = regexp.MustCompile(`mutant\("([^"]*)"\)`)

func TestMutantsSwitchThemselves(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range mutants() {
		if seen[m.Name] {
			t.Errorf("there are two mutants %s", m.Name)
		}
		seen[m.Name] = true
		for _, e := range m.Edits {
			found := switches.FindAllStringSubmatch(e.New, -1)
			if len(found) == 0 && len(m.Edits) == 1 {
				t.Errorf("mutant %s is always on: its new text does not ask mutant(%q)", m.Name, m.Name)
			}
			for _, f := range found {
				if f[1] != m.Name {
					t.Errorf("mutant %s asks for %s", m.Name, f[1])
				}
			}
		}
	}
}

// The first 17 mutants, with which the project began, are all there.
func TestMutantNumbers(t *testing.T) {
	const numbers = 17
	found := make(map[int]bool)
	for _, m := range mutants() {
		found[m.Number] = true
	}
	for n := range numbers {
		if !found[n+1] {
			t.Errorf("no mutant has the number %d", n+1)
		}
	}
}

func TestMutantsBreakRealPromises(t *testing.T) {
	contract := read(t, "docs/CONTRACT.md")
	for _, m := range mutants() {
		if !strings.Contains(contract, "\n- **"+m.Promise+"** ") {
			t.Errorf("mutant %s breaks %s, which docs/CONTRACT.md does not promise", m.Name, m.Promise)
		}
	}
}

// proves finds the promises that a comment claims.
var proves = regexp.MustCompile(`Proves\s([^.:]*)`)

// The test that finds a mutant claims the promise that the mutant breaks: with Proves in
// its comment, or at the end of its name.
func TestMutantsAreFoundByProofs(t *testing.T) {
	for _, m := range mutants() {
		name, _, _ := strings.Cut(m.Test, "/")
		doc, ok := testDoc(t, m.Package, name)
		if !ok {
			t.Errorf("mutant %s: %s has no %s", m.Name, m.Package, name)
			continue
		}
		claimed := ""
		for _, c := range proves.FindAllStringSubmatch(doc, -1) {
			claimed += c[1] + " "
		}
		words := strings.FieldsFunc(claimed, func(r rune) bool { return strings.ContainsRune(" ,'\n", r) })
		if !slices.Contains(words, m.Promise) && !strings.HasSuffix(name, m.Promise) {
			t.Errorf("mutant %s breaks %s, but the comment of %s in %s claims only %q", m.Name, m.Promise, name, m.Package, claimed)
		}
	}
}

// testDoc is the comment of a test.
func testDoc(t *testing.T, pkg, name string) (doc string, ok bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		file, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if fn, is := d.(*ast.FuncDecl); is && fn.Recv == nil && fn.Name.Name == name {
				return fn.Doc.Text(), true
			}
		}
	}
	return "", false
}

func TestApply(t *testing.T) {
	b := mutant{Name: "b", File: "f", Edits: []edit{{"two", "2"}}}
	a := mutant{Name: "a", File: "f", Edits: []edit{{"three", "3"}, {"one", "1"}}}
	if got, err := apply("one two three", []mutant{b, a}); got != "1 2 3" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, text := range []string{"one three", "one two two three"} {
		if _, err := apply(text, []mutant{b, a}); err == nil || !strings.Contains(err.Error(), "want once") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := apply("one two three", []mutant{a, {Edits: []edit{{"e t", ""}}}}); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("overlapping texts: %v", err)
	}
}

// Only an assertion finds a mutant.
func TestUnfound(t *testing.T) {
	bad := errors.New("exit status")
	for _, c := range []struct {
		output string
		err    error
		want   string
	}{
		{"--- FAIL: TestX (0.00s)\n    x_test.go:1: wrong\nFAIL\n", bad, ""},
		{"PASS\n", nil, "passes"},
		{"--- FAIL: TestX (0.00s)\npanic: boom [recovered]\n", bad, "panicked"},
		{"fatal error: all goroutines are asleep\n", bad, "no test failed"},
		{"panic: test timed out after 30s\n", bad, "did not come"},
		{"goleak: errors on successful test run\n", bad, "no test failed"},
	} {
		if got := unfound(c.output, c.err); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%q: %q, want %q", c.output, got, c.want)
		}
	}
}

func TestMessages(t *testing.T) {
	const output = "--- FAIL: TestX (0.10s)\n    --- FAIL: TestX/map (0.10s)\n        x_test.go:5: harness: {\"points\":3}\n" +
		"        x_test.go:9: it is torn: O6\n            promise  O6: a turn\n            promise  S9: surviving\n"
	if got := firstLine(output); got != "it is torn: O6" {
		t.Errorf("first line %q", got)
	}
	if a, b := told(output, "S9"), told(output, "C1"); a != "S9" || b != "O6" {
		t.Errorf("told %q and %q", a, b)
	}
	if got := pattern("TestX/a.b"); got != `^TestX$/^a\.b$` {
		t.Errorf("pattern %s", got)
	}
}
