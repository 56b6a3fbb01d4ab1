package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"strconv"
)

// negate adds the negation of a condition, except of those that another change
// negates.
func (f *finder) negate(cond ast.Expr) {
	if cond == nil || f.constant(cond) || !f.boolean(cond) {
		return
	}
	if b, ok := ast.Unparen(cond).(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
		return
	}
	f.add(cond, "negated", func(number int, inner func(ast.Node) string) string {
		return fmt.Sprintf("(mutationOn(%d) != (%s))", number, inner(cond))
	})
}

// swapped has the operator that takes the place of another with a boolean result.
var swapped = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
}

// ofExpression adds the changes of an expression's operator.
func (f *finder) ofExpression(e ast.Expr) {
	b, ok := e.(*ast.BinaryExpr)
	if !ok {
		return
	}
	if other, ok := swapped[b.Op]; ok && f.boolean(b) {
		f.add(b, other.String(), func(number int, inner func(ast.Node) string) string {
			x, y := inner(b.X), inner(b.Y)
			return fmt.Sprintf("(mutationOn(%d) && (%s %s %s) || !mutationOn(%[1]d) && (%[2]s %[5]s %[4]s))", number, x, other, y, b.Op)
		})
	}
	if b.Op == token.ADD || b.Op == token.SUB {
		f.swapSum(b)
	}
}

func (f *finder) swapSum(b *ast.BinaryExpr) {
	t, ok := f.numeric(b, types.IsNumeric)
	if !ok {
		return
	}
	other := map[token.Token]token.Token{token.ADD: token.SUB, token.SUB: token.ADD}[b.Op]
	f.add(b, other.String(), func(number int, inner func(ast.Node) string) string {
		return fmt.Sprintf("mutationSum[%s](mutationOn(%d) != %t, %s, %s)", t, number, b.Op == token.SUB, inner(b.X), inner(b.Y))
	})
}

// swapAssignment adds the change of += to -= and back.
func (f *finder) swapAssignment(s *ast.AssignStmt) {
	other, ok := map[token.Token]token.Token{token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN}[s.Tok]
	if !ok {
		return
	}
	t, ok := f.numeric(s.Lhs[0], types.IsNumeric)
	if !ok {
		return
	}
	value := s.Rhs[0]
	f.add(value, "after "+other.String(), func(number int, inner func(ast.Node) string) string {
		return fmt.Sprintf("mutationSum[%s](mutationOn(%d), 0, %s)", t, number, inner(value))
	})
}

// swapStep adds the change of ++ to -- and back.
func (f *finder) swapStep(s *ast.IncDecStmt) {
	other := token.INC
	if s.Tok == token.INC {
		other = token.DEC
	}
	f.add(s, other.String(), func(number int, inner func(ast.Node) string) string {
		return fmt.Sprintf("if mutationOn(%d) { %s%s } else { %[2]s%[4]s }", number, inner(s.X), other, s.Tok)
	})
}

// ofConstant adds the change of a constant. Those of the package's own types are
// names for states rather than amounts, and stay.
func (f *finder) ofConstant(e ast.Expr) {
	if f.boolean(e) {
		f.add(e, "swapped", func(number int, inner func(ast.Node) string) string {
			return fmt.Sprintf("(mutationOn(%d) != %s)", number, inner(e))
		})
		return
	}
	if named, ok := types.Unalias(f.info.TypeOf(e)).(*types.Named); ok && named.Obj().Pkg() == f.types {
		return
	}
	if t, ok := f.numeric(e, types.IsInteger); ok {
		f.add(e, "+ 1", func(number int, inner func(ast.Node) string) string {
			return fmt.Sprintf("mutationMore[%s](mutationOn(%d), %s)", t, number, inner(e))
		})
	}
}

// forgetError adds the change of a returned error to nil.
func (f *finder) forgetError(s *ast.ReturnStmt) {
	if len(s.Results) == 0 {
		return
	}
	last := s.Results[len(s.Results)-1]
	if v := f.info.Types[last]; v.IsNil() || v.Type == nil || !types.Identical(v.Type, types.Universe.Lookup("error").Type()) {
		return
	}
	f.add(last, "nil", func(number int, inner func(ast.Node) string) string {
		return fmt.Sprintf("mutationNil(mutationOn(%d), %s)", number, inner(last))
	})
}

// spareBeside spares the constants that a statement like
//
//	if err != nil {
//		return 0, false, err
//	}
//
// returns beside the error, because no caller uses them.
func (f *finder) spareBeside(s *ast.IfStmt) {
	cond, ok := s.Cond.(*ast.BinaryExpr)
	if !ok || cond.Op != token.NEQ || !f.info.Types[cond.Y].IsNil() {
		return
	}
	checked, ok := cond.X.(*ast.Ident)
	if !ok {
		return
	}
	for _, in := range s.Body.List {
		r, ok := in.(*ast.ReturnStmt)
		if !ok || len(r.Results) < 2 || !f.uses(r.Results[len(r.Results)-1], checked) {
			continue
		}
		for _, e := range r.Results[:len(r.Results)-1] {
			if f.constant(e) {
				f.spare[e] = true
			}
		}
	}
}

// spareRoom spares the capacity of a slice that is made, because it grows if need be.
func (f *finder) spareRoom(e ast.Expr) {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) != 3 {
		return
	}
	if name, ok := call.Fun.(*ast.Ident); ok && f.info.Types[name].IsBuiltin() {
		f.spare[call.Args[2]] = true
	}
}

// uses says whether an expression is of type error and made of a variable.
func (f *finder) uses(e ast.Expr, variable *ast.Ident) (found bool) {
	if !types.Identical(f.info.TypeOf(e), types.Universe.Lookup("error").Type()) {
		return false
	}
	ast.Inspect(e, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		found = found || ok && f.info.Uses[id] != nil && f.info.Uses[id] == f.info.Uses[variable]
		return true
	})
	return found
}

// numeric is the name of an expression's type, if it is of that kind and has a name
// in the file.
func (f *finder) numeric(e ast.Expr, kind types.BasicInfo) (string, bool) {
	t := types.Unalias(f.info.TypeOf(e))
	basic, ok := t.Underlying().(*types.Basic)
	if !ok || basic.Info()&kind == 0 || basic.Info()&(types.IsUntyped|types.IsComplex) != 0 {
		return "", false
	}
	named, ok := t.(*types.Named)
	switch {
	case !ok:
		return basic.Name(), t == types.Type(basic)
	case named.TypeArgs().Len() > 0:
		return "", false
	case named.Obj().Pkg() == f.types:
		return named.Obj().Name(), true
	}
	imported, ok := f.imported(named.Obj().Pkg())
	return imported + "." + named.Obj().Name(), ok && named.Obj().Exported()
}

// imported is the name that the file has for another package.
func (f *finder) imported(p *types.Package) (string, bool) {
	for _, spec := range f.file.ast.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		switch {
		case path.Clean(imported) != p.Path():
		case spec.Name == nil:
			return p.Name(), true
		default:
			return spec.Name.Name, spec.Name.Name != "_" && spec.Name.Name != "."
		}
	}
	return "", false
}
