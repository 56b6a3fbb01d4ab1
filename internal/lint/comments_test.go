package lint

import (
	"go/ast"
	"testing"
)

// commentProblems are the exported names of one file that say nothing of
// themselves. Programs and internal packages have no users to tell.
func commentProblems(s source) []string {
	if s.test() || s.file.Name.Name == "main" || within(s.dir(), "internal", "harness/internal", "examples") {
		return nil
	}
	var problems []string
	missing := func(n ast.Node, what string) {
		problems = append(problems, s.at(n.Pos(), "%s has no comment: say what it does, its units, limits, defaults, errors, and who may call it when", what))
	}
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if name, ok := exported(d); ok && d.Doc == nil && !(d.Recv != nil && wellKnown[d.Name.Name]) {
				missing(d, name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok && ts.Name.IsExported() && d.Doc == nil && ts.Doc == nil {
					missing(ts, ts.Name.Name)
				}
			}
		}
	}
	return problems
}

// wellKnown are the methods with a meaning that is the same in all of Go.
var wellKnown = map[string]bool{"Error": true, "String": true, "Unwrap": true}

// exported is the name of a function that users can call, or of a method of
// theirs on a type that they can name.
func exported(d *ast.FuncDecl) (string, bool) {
	if d.Recv == nil {
		return d.Name.Name, d.Name.IsExported()
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + d.Name.Name, x.IsExported() && d.Name.IsExported()
		default:
			return "", false
		}
	}
}

func TestExportedNamesHaveComments(t *testing.T) {
	for _, s := range loadHouse(t) {
		report(t, commentProblems(s))
	}
}

// Each package tells its purpose once.
func TestPackagesHaveComments(t *testing.T) {
	said := map[string]int{}
	for _, s := range loadHouse(t) {
		if s.test() {
			continue
		}
		n := said[s.dir()]
		if s.file.Doc != nil {
			n++
		}
		said[s.dir()] = n
	}
	for dir, n := range said {
		if n != 1 {
			t.Errorf("package %s has %d package comments, want one: what it is, what it guarantees, what one may not assume", dir, n)
		}
	}
}

func TestMissingCommentsAreSeen(t *testing.T) {
	const text = `package object
func Open() {}
// Close closes.
func Close() {}
type Host struct{}
func (h *Host) Err() {}
func (h *Host) String() string { return "" }
type list[T any] struct{}
func (l *list[T]) Len() {}
type Class[T, U any] struct{}
func (c *Class[T, U]) Name() {}
`
	wantProblems(t, commentProblems(sample(t, "object/x.go", text)),
		"Open has", "Host has", "Host.Err has", "Class has", "Class.Name has")
	wantProblems(t, commentProblems(sample(t, "internal/x/x.go", text)))
}
