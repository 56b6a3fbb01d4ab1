package lint

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"testing"
)

// unpastable are the examples of a test file that use a declaration of another file.
// pkg.go.dev shows an example as a program that it makes of the example's file alone. If
// that is not possible, it shows the body of the function, which its readers cannot
// paste.
func unpastable(t *testing.T, s source) []string {
	t.Helper()
	if !s.test() || within(s.dir(), "internal", "examples") {
		return nil
	}
	// Package doc needs the objects of the names, which source leaves out.
	file, err := parser.ParseFile(token.NewFileSet(), s.path, s.text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var problems []string
	for _, e := range doc.Examples([]*ast.File{file}...) {
		if e.Play == nil {
			problems = append(problems, s.at(s.file.Package, "Example%s uses a declaration of another file: put all that it uses into its own file, because pkg.go.dev shows no other", e.Name))
		}
	}
	return problems
}

func TestExamplesCanBePasted(t *testing.T) {
	for _, s := range loadHouse(t) {
		report(t, unpastable(t, s))
	}
}

func TestUnpastableExamplesAreSeen(t *testing.T) {
	const whole = "package object_test\n\nimport \"fmt\"\n\nfunc say() { fmt.Println(1) }\n\nfunc ExampleOpen() {\n\tsay()\n\t// Output: 1\n}\n"
	wantProblems(t, unpastable(t, sample(t, "object/x_test.go", whole)))
	const part = "package object_test\n\nimport \"fmt\"\n\nfunc ExampleOpen() {\n\tsay()\n\tfmt.Println(1)\n\t// Output: 1\n}\n"
	wantProblems(t, unpastable(t, sample(t, "object/x_test.go", part)), "ExampleOpen uses a declaration of another file")
	wantProblems(t, unpastable(t, sample(t, "internal/x/x_test.go", part)))
}
