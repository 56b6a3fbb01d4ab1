package lint

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// codeBlock finds the Go code of a document, and the file that it says it is from.
var codeBlock = regexp.MustCompile("(?m)^(?:<!-- from (\\S+) -->\n)?```go\n((?:.*\n)*?)```$")

// leftOut is the line of such code that stands for lines which the document leaves out.
const leftOut = "// ..."

// codeProblems are the pieces of Go code of a document that do not stand in a file of
// the repository, as it is now. file gives the text of a file, or "" if it is not there.
func codeProblems(document, text string, file func(path string) string) []string {
	var problems []string
	for _, m := range codeBlock.FindAllStringSubmatchIndex(text, -1) {
		line, code := 1+strings.Count(text[:m[0]], "\n"), text[m[4]:m[5]]
		if m[2] < 0 {
			problems = append(problems, fmt.Sprintf("%s:%d: Go code that no test compiles: put it into a Go file that go test builds, and the line <!-- from path/of/file.go --> right above the code", document, line))
			continue
		}
		from := text[m[2]:m[3]]
		source := file(from)
		if source == "" {
			problems = append(problems, fmt.Sprintf("%s:%d: code from %s, which is no Go file of the module: correct the path", document, line, from))
			continue
		}
		if missing := notIn(source, code); missing != "" {
			problems = append(problems, fmt.Sprintf("%s:%d: %s does not have this code: copy the code as it stands there, or change the file; a line %q stands for lines that are left out\n%s",
				document, line, from, leftOut, missing))
		}
	}
	return problems
}

// notIn is the first piece of code that a source does not have after the pieces before
// it, or "" if it has all. Pieces are whole lines. The source may indent them to any
// depth.
func notIn(source, code string) string {
	rest := "\n" + source
	for piece := range strings.SplitSeq("\n"+code, "\n"+leftOut+"\n") {
		piece = strings.Trim(piece, "\n")
		end := -1
		for depth := range 6 {
			lines := indented(piece, depth)
			if at := strings.Index(rest, lines); at >= 0 {
				end = at + len(lines) - 1 // the next piece may begin with the next line
				break
			}
		}
		if end < 0 {
			return piece
		}
		rest = rest[end:]
	}
	return ""
}

// indented are the lines of a piece, each a number of tabs deeper, between line ends.
func indented(piece string, depth int) string {
	lines := strings.Split(piece, "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = strings.Repeat("\t", depth) + l
		}
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}

// documents are the paths of the documents that users read.
func documents(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.md", "docs/*.md", "bench/*.md", "bench/peers/*.md"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, names...)
	}
	return found
}

// The Go code in the documents stands in files that go test compiles, so that it is
// right and stays so. Code under testdata is compiled by the test that it belongs to.
func TestDocumentsShowRealCode(t *testing.T) {
	compiled := map[string]string{}
	for _, s := range loadAll(t) {
		compiled[s.path] = s.text
	}
	file := func(path string) string {
		if text := compiled[path]; text != "" || !strings.Contains(path, "/testdata/") {
			return text
		}
		text, _ := os.ReadFile(filepath.Join(root, path)) // a file that is not there has no text
		return string(text)
	}
	for _, d := range documents(t) {
		text, err := os.ReadFile(d)
		if err != nil {
			t.Fatal(err)
		}
		report(t, codeProblems(strings.TrimPrefix(d, root+"/"), string(text), file))
	}
}

// These documents show code, which the test above finds.
func TestDocumentsWithCodeAreSeen(t *testing.T) {
	want := map[string]int{"README.md": 2, "docs/CLUSTER.md": 1, "docs/JOBS.md": 8, "docs/OBJECTS.md": 7, "docs/OPERATIONS.md": 7, "docs/PATTERNS.md": 15, "docs/TESTING.md": 20}
	for _, d := range slices.Sorted(maps.Keys(want)) {
		if n := len(codeBlock.FindAllString(read(t, d), -1)); n < want[d] {
			t.Errorf("%s shows %d pieces of Go code, want at least %d: correct the number here if some were removed on purpose", d, n, want[d])
		}
	}
}

func TestCodeProblemsAreSeen(t *testing.T) {
	file := func(path string) string {
		return map[string]string{"a/x.go": "package a\n\nfunc f() {\n\tg()\n\n\tif true {\n\t\th()\n\t}\n}\n"}[path]
	}
	block := func(from, code string) string { return from + "```go\n" + code + "```\n\n" }
	const from = "<!-- from a/x.go -->\n"
	good := block(from, "func f() {\n\tg()\n") + block(from, "g()\n\nif true {\n\th()\n}\n") + block(from, "func f() {\n// ...\n\th()\n") + block(from, "g()\n// ...\nh()\n")
	wantProblems(t, codeProblems("x.md", good, file))
	bad := block("", "g()\n") + block("<!-- from a/y.go -->\n", "g()\n") + block(from, "g(\n") + block(from, "func f() {\nh()\n") + block(from, "h()\n// ...\ng()\n") + block(from, "() {\n")
	wantProblems(t, codeProblems("x.md", bad, file),
		"x.md:1: Go code that no test compiles", "x.md:5: code from a/y.go", "a/x.go does not have", "does not have", "does not have", "does not have")
}
