package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// fewInputs are drawn first, to see how long one takes.
	fewInputs = 100
	// mostInputs bounds the inputs of a test that costs nothing.
	mostInputs = 20_000
	// propertyTime is how long a test draws inputs, about.
	propertyTime = time.Second
)

// property is a test that draws its inputs with rapid.Check.
type property struct{ dir, test string }

// properties runs every property test with as many inputs as fit into a second,
// and a seed that follows from the commit.
func properties(ctx context.Context, s *suite) error {
	found, err := propertyTests(s.root)
	if err != nil {
		return err
	}
	return each(found, func(p property) error {
		s.add("properties", 1)
		return s.property(ctx, p)
	})
}

// property runs one test twice: with few inputs, and with as many as fit.
func (s *suite) property(ctx context.Context, p property) error {
	long := of(s.extent, propertyTime, 60*propertyTime)
	few, took, err := s.draw(ctx, p, fewInputs, s.seed)
	if err != nil {
		return err
	}
	n := min(int(long*fewInputs/max(took, 1)), mostInputs)
	many, _, err := s.draw(ctx, p, max(n, fewInputs), s.seed+1<<32)
	s.add("property_inputs", float64(few+many))
	return err
}

// draw runs a property test with so many inputs. It returns how many were tried,
// and how long that took.
func (s *suite) draw(ctx context.Context, p property, inputs int, seed uint64) (tried int, took time.Duration, err error) {
	_, out, err := s.test(ctx, testRun{
		step: "properties", dir: p.dir, run: "^" + p.test + "$", args: append(rapidFlags(inputs, seed), "-test.v"),
	})
	if err != nil {
		return 0, 0, err
	}
	if tried, took = inputsOf(out); tried < inputs {
		err = fmt.Errorf("%s of %s says that it tried %d inputs of %d", p.test, p.dir, tried, inputs)
	}
	return tried, took, err
}

// programs runs random workflows with random crashes. The test compares each with a model.
func programs(ctx context.Context, s *suite) error {
	n := int(s.floor("programs"))
	_, out, err := s.test(ctx, testRun{
		step: "programs", dir: "jobs/workflow", run: "^TestRandomPrograms$", crashtest: "store=map", args: append(rapidFlags(n, s.seed), "-test.v"),
	})
	tried, _ := inputsOf(out)
	s.add("programs", float64(tried))
	return err
}

// drew is the line of rapid about a property that held.
var drew = regexp.MustCompile(`\[rapid\] OK, passed (\d+) tests \(([^)]+)\)`)

// inputsOf sums the inputs of a test's output, and the time that they took.
func inputsOf(out []byte) (tried int, took time.Duration) {
	for _, m := range drew.FindAllSubmatch(out, -1) {
		n, _ := strconv.Atoi(string(m[1]))
		d, _ := time.ParseDuration(string(m[2]))
		tried, took = tried+n, took+d
	}
	return tried, took
}

// propertyTests finds the tests of the module that call rapid.Check, by directory.
func propertyTests(root string) (found []property, err error) {
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || hasModule(root, name)) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, test := range checking(file) {
			found = append(found, property{path.Dir(name), test})
		}
		return nil
	})
	slices.SortStableFunc(found, func(a, b property) int { return strings.Compare(a.dir, b.dir) })
	return found, err
}

// hasModule says whether a directory is a module of its own.
func hasModule(root, dir string) bool {
	_, err := os.Stat(filepath.Join(root, dir, "go.mod"))
	return err == nil
}

// checking are the tests of a file that call rapid.Check.
func checking(file *ast.File) (tests []string) {
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") {
			continue
		}
		calls := false
		ast.Inspect(fn, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if ok && sel.Sel.Name == "Check" {
				id, ok := sel.X.(*ast.Ident)
				calls = calls || ok && id.Name == "rapid"
			}
			return !calls
		})
		if calls {
			tests = append(tests, fn.Name.Name)
		}
	}
	return tests
}
