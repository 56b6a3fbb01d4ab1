package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// mutation is one small change of the code.
type mutation struct {
	Number   int // from 1, in the order of the code
	File     string
	Line     int
	Function string // with its receiver's type, or "" outside functions
	Change   string // the code that changes, and how
	Code     string // the line that the change begins on

	start, end token.Pos
	// wrap is the code with the change as a switch. Its argument gives the code of a
	// part, with the switches of the changes within that part.
	wrap func(number int, inner func(ast.Node) string) string
}

func (m mutation) String() string {
	return fmt.Sprintf("%s:%d: %s\n\t%s", m.File, m.Line, m.Change, m.Code)
}

// mutations are all changes of the package, in the order of the code.
func (p *pkg) mutations() []mutation {
	var all []mutation
	for _, f := range p.files {
		found := &finder{pkg: p, file: f, lines: strings.Split(string(f.text), "\n"), spare: make(map[ast.Expr]bool)}
		for _, d := range f.ast.Decls {
			found.function = functionName(d)
			found.walk(d)
		}
		slices.SortStableFunc(found.all, func(a, b mutation) int {
			if a.start != b.start {
				return int(a.start - b.start)
			}
			return int(b.end - a.end)
		})
		all = append(all, found.all...)
	}
	for i := range all {
		all[i].Number = i + 1
	}
	return all
}

// functionName is the name of a declared function, with its receiver's type.
func functionName(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return ""
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	for t := f.Recv.List[0].Type; ; {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + f.Name.Name
		default:
			return f.Name.Name
		}
	}
}

// finder collects the mutations of one file.
type finder struct {
	*pkg
	file     file
	lines    []string
	function string
	spare    map[ast.Expr]bool // expressions whose constants stay as they are
	all      []mutation
}

// add notes that a node can change, and says how.
func (f *finder) add(n ast.Node, change string, wrap func(number int, inner func(ast.Node) string) string) {
	line := f.fset.Position(n.Pos()).Line
	text := strings.Join(strings.Fields(f.source(n)), " ")
	f.all = append(f.all, mutation{
		File: f.file.rel, Line: line, Function: f.function,
		Change: text + " => " + change, Code: strings.TrimSpace(f.lines[line-1]),
		start: n.Pos(), end: n.End(), wrap: wrap,
	})
}

// source is the text of a node.
func (f *finder) source(n ast.Node) string {
	return string(f.file.text[f.fset.Position(n.Pos()).Offset:f.fset.Position(n.End()).Offset])
}

// walk finds the mutations of a tree.
func (f *finder) walk(root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok == token.VAR
		case *ast.ArrayType, *ast.FuncType, *ast.StructType, *ast.InterfaceType, *ast.MapType, *ast.ChanType:
			return false
		case *ast.KeyValueExpr:
			if f.constant(n.Key) {
				f.walk(n.Value) // the key of an array's element must stay constant
				return false
			}
		case ast.Expr:
			if f.spare[n] {
				return false
			}
			if f.constant(n) {
				f.ofConstant(n)
				return false
			}
			f.spareRoom(n)
			f.ofExpression(n)
		case ast.Stmt:
			f.ofStatement(n)
		}
		return true
	})
}

func (f *finder) constant(e ast.Expr) bool { return f.info.Types[e].Value != nil }

// ofStatement adds the changes of a statement as a whole.
func (f *finder) ofStatement(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.IfStmt:
		f.negate(s.Cond)
		f.spareBeside(s)
	case *ast.ForStmt:
		f.negate(s.Cond)
	case *ast.SwitchStmt:
		if s.Tag == nil {
			f.negateCases(s)
		}
	case *ast.BlockStmt:
		f.ofList(s.List)
	case *ast.CaseClause:
		f.ofList(s.Body)
	case *ast.CommClause:
		f.ofList(s.Body)
	case *ast.ReturnStmt:
		f.forgetError(s)
	case *ast.AssignStmt:
		f.swapAssignment(s)
	}
}

func (f *finder) negateCases(s *ast.SwitchStmt) {
	for _, c := range s.Body.List {
		for _, e := range c.(*ast.CaseClause).List {
			f.negate(e)
		}
	}
}

// ofList adds the changes of statements that can be left out.
func (f *finder) ofList(list []ast.Stmt) {
	for _, s := range list {
		if f.droppable(s) {
			f.add(s, "left out", func(number int, inner func(ast.Node) string) string {
				return fmt.Sprintf("if !mutationOn(%d) { %s }", number, inner(s))
			})
		}
		if s, ok := s.(*ast.IncDecStmt); ok {
			f.swapStep(s)
		}
	}
}

// droppable says whether a statement is a call, or assigns only to fields,
// elements or through pointers.
func (f *finder) droppable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		return ok && !f.spared(call)
	case *ast.DeferStmt:
		return !f.spared(s.Call)
	case *ast.IncDecStmt:
		return stored(s.X)
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE && !slices.ContainsFunc(s.Lhs, func(e ast.Expr) bool { return !stored(e) })
	}
	return false
}

// stored says whether an expression names more than a local variable.
func stored(e ast.Expr) bool {
	switch e.(type) {
	case *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
		return true
	}
	return false
}

// spared says whether a call is one of sync's, or a panic, which may end a function.
func (f *finder) spared(call *ast.CallExpr) bool {
	switch fun := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		return fun.Name == "panic"
	case *ast.SelectorExpr:
		called := f.info.Uses[fun.Sel]
		return called != nil && called.Pkg() != nil && called.Pkg().Path() == "sync"
	}
	return false
}

// boolean says whether an expression is of the plain type bool.
func (f *finder) boolean(e ast.Expr) bool {
	t, ok := f.info.TypeOf(e).(*types.Basic)
	return ok && t.Info()&types.IsBoolean != 0
}
