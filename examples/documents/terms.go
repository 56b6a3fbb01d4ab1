package main

import (
	"cmp"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// sums are the numbers of a package, or of several.
type sums struct {
	Documents int `json:"documents"`        // Go files
	Broken    int `json:"broken,omitempty"` // documents that do not parse; their terms are not counted
	Words     int `json:"words"`            // occurrences of terms
}

func (s *sums) add(o sums) {
	s.Documents += o.Documents
	s.Broken += o.Broken
	s.Words += o.Words
}

// reading is the value of the step that reads a package.
type reading struct {
	Sums  sums           `json:"sums"`
	Terms map[string]int `json:"terms"` // how often each occurs
}

func newReading() reading { return reading{Terms: make(map[string]int)} }

func (r *reading) add(o reading) {
	r.Sums.add(o.Sums)
	for term, n := range o.Terms {
		r.Terms[term] += n
	}
}

// readPackage counts the terms of a package.
func readPackage(ctx context.Context, tree fs.FS, dir string) (reading, error) {
	r := newReading()
	paths, err := documentsOf(tree, dir)
	if err != nil {
		return r, err
	}
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		text, err := fs.ReadFile(tree, path)
		if err != nil {
			return r, err
		}
		r.addDocument(path, text)
	}
	return r, nil
}

// addDocument counts the terms of a Go file.
func (r *reading) addDocument(path string, text []byte) {
	r.Sums.Documents++
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		r.Sums.Broken++
		return
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if doc := docOf(n); doc != nil {
			r.addText(doc.Text()) // without directives
		}
		return true
	})
}

// docOf is the doc comment of a package, a declaration or a field, or nil.
func docOf(n ast.Node) *ast.CommentGroup {
	switch n := n.(type) {
	case *ast.File:
		return n.Doc
	case *ast.GenDecl:
		return n.Doc
	case *ast.FuncDecl:
		return n.Doc
	case *ast.TypeSpec:
		return n.Doc
	case *ast.ValueSpec:
		return n.Doc
	case *ast.Field:
		return n.Doc
	}
	return nil
}

// A term is a run of so many letters, in lower case. Longer runs are mostly data.
const (
	lettersMin = 3
	lettersMax = 40
)

// addText counts the terms of a text.
func (r *reading) addText(text string) {
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return !unicode.IsLetter(c) }) {
		term := strings.ToLower(word)
		if n := utf8.RuneCountInString(term); n >= lettersMin && n <= lettersMax {
			r.Terms[term]++
			r.Sums.Words++
		}
	}
}

// count is how often a term occurs.
type count struct {
	Term  string `json:"term"`
	Count int    `json:"count"`
}

// topMax is how many of the most frequent terms are told.
const topMax = 10

// top returns the most frequent terms, the most frequent first, and terms that are equally
// frequent in the order of their letters.
func top(counts []count) []count {
	slices.SortFunc(counts, func(a, b count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Term, b.Term))
	})
	return counts[:min(topMax, len(counts))]
}
