package lint

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// figure is a number that must stay below its limit, because beyond it the
// repository is harder to read.
type figure struct {
	where, name  string
	value, limit int
	hint         string // where to look if it fails
}

// productPackages contain the code in which some things must exist once.
var productPackages = []string{"seam", "storage", "alarm", "object", "recovery", "jobs", "internal/row"}

// figures counts names, files and pieces of code that should exist once.
func figures(all []source) []figure {
	var own []source // without tests
	for _, s := range all {
		if !s.test() {
			own = append(own, s)
		}
	}
	return []figure{
		{where: "jobs", name: "exported names", value: exportedNames(own, "jobs"), limit: 77},
		{where: "jobs/workflow", name: "exported names", value: exportedNames(own, "jobs/workflow"), limit: 58},
		{where: "jobs/workflow/workflowtest", name: "exported names", value: exportedNames(own, "jobs/workflow/workflowtest"), limit: 8},
		{where: "object/journal", name: "exported names", value: exportedNames(own, "object/journal"), limit: 10},
		{where: "object", name: "methods of State", value: exportedMethods(own, "object", "State"), limit: 22},
		{where: "object", name: "files", value: files(own, "object"), limit: 46},
		count("object", "chains hosted.host", matches(own, chain, "object"), 0),
		count("product", "row codecs", decoders(own), 1),
		count("product", "retry types", retryTypes(own), 1),
		count("product", "panic guards", recovers(own), 1),
	}
}

// count is the figure of places that should be few.
func count(where, name string, places []string, limit int) figure {
	return figure{where: where, name: name, value: len(places), limit: limit, hint: strings.Join(places, " ")}
}

var (
	chain   = regexp.MustCompile(`\bhosted\.host\b`)
	varint  = regexp.MustCompile(`\bbinary\.(?:Uvarint|Varint|ReadUvarint|ReadVarint)\(`)
	caught  = regexp.MustCompile(`\brecover\(\)`)
	retries = regexp.MustCompile(`(?m)^(?:type )?\s*\w*Retry\w* struct \{`)
)

// matches are the places of a pattern in the packages of some trees.
func matches(own []source, r *regexp.Regexp, trees ...string) []string {
	var places []string
	for _, s := range own {
		if !within(s.dir(), trees...) || within(s.dir(), "storage/storagetest") {
			continue
		}
		for _, at := range r.FindAllStringIndex(s.text, -1) {
			places = append(places, fmt.Sprintf("%s:%d", s.path, 1+strings.Count(s.text[:at[0]], "\n")))
		}
	}
	return places
}

// decoders are the files that read rows by hand. The batch of package storage is
// none, because its form is Pebble's.
func decoders(own []source) []string {
	var found []string
	for _, s := range own {
		if within(s.dir(), productPackages...) && varint.MatchString(s.text) && path.Base(s.path) != "batch.go" {
			found = append(found, s.path)
		}
	}
	return found
}

func retryTypes(own []source) []string { return matches(own, retries, productPackages...) }

func recovers(own []source) []string {
	guards := matches(own, caught, productPackages...)
	// Pebble reports a log that it cannot write by a panic, which is no panic of user code.
	return slices.DeleteFunc(guards, func(at string) bool { return strings.HasPrefix(at, "storage/pebblestore/") })
}

// files is how many files a package has.
func files(own []source, dir string) (n int) {
	for _, s := range own {
		if s.dir() == dir {
			n++
		}
	}
	return n
}

// exportedNames is how many types, functions, constants and variables a package exports.
func exportedNames(own []source, dir string) (n int) {
	for _, s := range own {
		if s.dir() != dir {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.IsExported() {
					n++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					n += exportedOf(spec)
				}
			}
		}
	}
	return n
}

func exportedOf(spec ast.Spec) (n int) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() {
			n++
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if name.IsExported() {
				n++
			}
		}
	}
	return n
}

// exportedMethods is how many methods of a type a package exports.
func exportedMethods(own []source, dir, name string) (n int) {
	for _, s := range own {
		if s.dir() != dir {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				if full, ok := exported(f); ok && strings.HasPrefix(full, name+".") {
					n++
				}
			}
		}
	}
	return n
}

func TestFigures(t *testing.T) {
	for _, f := range figures(load(t)) {
		if f.value > f.limit {
			t.Errorf("%s: %d %s, more than %d: reduce them; the limit stays %s", f.where, f.value, f.name, f.limit, f.hint)
		}
	}
}

func TestFiguresAreSeen(t *testing.T) {
	own := []source{
		sample(t, "jobs/x.go", "// Package jobs is\n// two lines.\npackage jobs\n\ntype Retry struct {}\ntype inner struct{}\nconst A, b = 1, 2\nvar C = 1\nfunc F() { recover() }\nfunc (Retry) M() {}\n"),
		sample(t, "object/batch.go", "package object\n\ntype State struct{}\nfunc (s *State) A() { binary.Uvarint(nil) }\nfunc (s *State) b() {}\nfunc (s *Other) C() { s.hosted.host.x() }\n"),
		sample(t, "object/row.go", "package object\n\nfunc f() { binary.Varint(nil) }\n"),
	}
	got := fmt.Sprint(exportedNames(own, "jobs"), exportedMethods(own, "object", "State"), files(own, "object"),
		matches(own, chain, "object"), decoders(own), retryTypes(own), recovers(own))
	if want := "4 1 2 [object/batch.go:6] [object/row.go] [jobs/x.go:5] [jobs/x.go:9]"; got != want {
		t.Errorf("counted %s, want %s", got, want)
	}
}
