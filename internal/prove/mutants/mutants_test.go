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
	"time"
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

func mutants(t *testing.T) []mutant {
	t.Helper()
	all, err := readMutants(root)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each mutant still applies to the source. Code that changes the lines of a mutant
// fails here, and its mutant must be repaired.
func TestMutantsApply(t *testing.T) {
	files, err := mutate(root, mutants(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err != nil {
			t.Errorf("with its mutants the file isn't Go: %v", err)
		}
	}
}

func TestMutantsBreakRealPromises(t *testing.T) {
	contract := read(t, "docs/CONTRACT.md")
	for _, m := range mutants(t) {
		if !strings.Contains(contract, "\n- **"+m.promise+"** ") {
			t.Errorf("mutant %s breaks %s, which docs/CONTRACT.md does not promise", m.name, m.promise)
		}
	}
}

// proves finds the promises that a comment claims.
var proves = regexp.MustCompile(`Proves\s([^.:]*)`)

// The test that finds a mutant claims the promise that the mutant breaks: with Proves in
// its comment, or at the end of its name.
func TestMutantsAreFoundByProofs(t *testing.T) {
	docs := make(map[string]map[string]string) // by package, by test
	for _, m := range mutants(t) {
		if docs[m.dir] == nil {
			docs[m.dir] = testDocs(t, m.dir)
		}
		name, _, _ := strings.Cut(m.test, "/")
		doc, ok := docs[m.dir][name]
		if !ok {
			t.Errorf("mutant %s: %s has no %s", m.name, m.dir, name)
			continue
		}
		claimed := ""
		for _, c := range proves.FindAllStringSubmatch(doc, -1) {
			claimed += c[1] + " "
		}
		words := strings.FieldsFunc(claimed, func(r rune) bool { return strings.ContainsRune(" ,'\n", r) })
		if !slices.Contains(words, m.promise) && !strings.HasSuffix(name, m.promise) {
			t.Errorf("mutant %s breaks %s, but the comment of %s in %s claims only %q", m.name, m.promise, name, m.dir, claimed)
		}
	}
}

// testDocs are the comments of a package's tests, by name.
func testDocs(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	docs := make(map[string]string)
	for _, f := range files {
		file, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if fn, is := d.(*ast.FuncDecl); is && fn.Recv == nil {
				docs[fn.Name.Name] = fn.Doc.Text()
			}
		}
	}
	return docs
}

// example is a package with two files, of which the second has the function that the
// mutant changes.
const example = `// Package p is an example.
package p

import "errors"

func (s *store[K]) put(k K) error {
	if s.closed { // for good
		return errors.New("closed")
	}

	// Order matters.
	s.sync()
	s.add(k)
	return nil
}
`

const exampleMutant = `breaks S9, found by p TestPut

func p (*store).put
	return errors.New("closed")
	}
+	lost.Store(true)
-	s.sync()
 	s.add(k)

	s.add(k)
+	s.sync()

declare p
+import "sync/atomic"
+
+var lost atomic.Bool
`

// write makes a package p of these files and returns its root.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "p"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, "p", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// applied puts the mutant into a package of these files, and returns the statements
// of its copy.
func applied(t *testing.T, mutantText string, files map[string]string) (statements, error) {
	t.Helper()
	m, err := parseMutant(mutantText)
	if err != nil {
		t.Fatal(err)
	}
	m.name = "lost-sync"
	changed, err := mutate(write(t, files), []mutant{m})
	if err != nil {
		return nil, err
	}
	for name, text := range changed {
		if _, err := parser.ParseFile(token.NewFileSet(), name, text, 0); err != nil {
			t.Error(err)
		}
		if _, rest, ok := strings.Cut(text, `{
if mutant("lost-sync") {`); ok {
			copied, _, _ := strings.Cut(rest, "if s.closed { // for good")
			return strings.FieldsFunc(copied, func(r rune) bool { return r == '\n' || r == '\t' || r == ' ' }), nil
		}
	}
	t.Error("no file has the mutant")
	return nil, nil
}

type statements []string

// A mutant finds its function in any file of the package, at any indentation, with
// other comments.
func TestFunctionsMayMove(t *testing.T) {
	want, err := applied(t, exampleMutant, map[string]string{"a.go": example, "b.go": "package p\n"})
	if err != nil || !strings.Contains(strings.Join(want, " "), `errors.New("closed") } lost.Store(true) s.add(k) s.sync() return nil }`) {
		t.Fatalf("changed to %q, %v", want, err)
	}
	header, function, _ := strings.Cut(example, "import")
	function = "import" + function
	moved := strings.NewReplacer("\n\n\t// Order matters.\n", "\n", "\n\ts.", "\n\t\t\t// Another comment.\n\n\t\t\ts.").Replace(function)
	for name, files := range map[string]map[string]string{
		"moved":    {"a.go": header, "b.go": "package p\n\n" + function},
		"indented": {"a.go": strings.ReplaceAll(example, "\n\t", "\n\t\t  ")},
		"edited":   {"b.go": "package p\n\n" + moved},
	} {
		if got, err := applied(t, exampleMutant, files); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: changed to %q, %v", name, got, err)
		}
	}
}

func TestMutantsThatDoNotApply(t *testing.T) {
	for old, want := range map[string]string{
		"s.sync()":     "(*store).put: the function contains these lines 2 times",
		"s.flush()":    "0 times",
		"(*store).put": "package p has no function (*other).put",
	} {
		files := map[string]string{"a.go": strings.Replace(example, "s.add(k)", "s.sync()\n\ts.add(k)", 1)}
		text := strings.Replace("breaks S9, found by p TestPut\n\nfunc p (*store).put\n-\ts.sync()\n", "s.sync()", old, 1)
		if old == "(*store).put" {
			text = strings.Replace(text, "func p (*store)", "func p (*other)", 1)
		}
		if _, err := applied(t, text, files); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "lost-sync.mutant") {
			t.Errorf("%s: %v", old, err)
		}
	}
	for _, text := range []string{"", "breaks S9, found by p TestPut\n", "breaks S9, found by p TestPut\n\n+x\n", "breaks S9\nhello\n"} {
		if m, err := parseMutant(text); err == nil {
			t.Errorf("%q was taken as %+v", text, m)
		}
	}
}

func TestSlow(t *testing.T) {
	for _, c := range []struct {
		took, pace time.Duration
		want       bool
	}{
		{3 * time.Second, referencePace, true},
		{3 * time.Second, 2 * referencePace, false},
		{3 * time.Second, referencePace / 2, true},
		{time.Second, referencePace / 2, false},
	} {
		if got := slow(c.took, c.pace); got != c.want {
			t.Errorf("%v at a pace of %v: %t", c.took, c.pace, got)
		}
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
		{"panic: test timed out after 30s\n", bad, "hangs"},
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
	if got := pattern("TestX/a.b"); got != `^TestX$/^a\.b$` {
		t.Errorf("pattern %s", got)
	}
}
