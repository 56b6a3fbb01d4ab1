package lint

import (
	"go/ast"
	"maps"
	"slices"
	"strconv"
	"testing"
)

// seeds is the package that fixes the seed of property tests.
const seeds = module + "/internal/testing/seeds"

// drawing are the imports of tests that draw their inputs.
var drawing = []string{rapid, module + "/harness", module + "/internal/testing/crashes"}

// unseeded are the directories with tests that draw other inputs in each run.
func unseeded(all []source) []string {
	draws, fixed := map[string]bool{}, map[string]bool{}
	for _, s := range all {
		if !s.test() {
			continue
		}
		for _, p := range s.imports() {
			draws[s.dir()] = draws[s.dir()] || slices.Contains(drawing, p)
			fixed[s.dir()] = fixed[s.dir()] || p == seeds
		}
	}
	maps.DeleteFunc(draws, func(dir string, yes bool) bool {
		return !yes || fixed[dir] || module+"/"+dir == seeds
	})
	return slices.Sorted(maps.Keys(draws))
}

// Case HN1: go test draws the same inputs in each run.
func TestPropertyTestsHaveASeed(t *testing.T) {
	for _, dir := range unseeded(load(t)) {
		t.Errorf("the tests of %s draw other inputs in each run: import _ %q in one of them", dir, seeds)
	}
}

// unrepeatable are the tests of scenarios that differ in each run.
var unrepeatable = []string{"harness/explore_differ_test.go"}

// seeded are the names of math/rand/v2 that draw nothing by themselves.
var seeded = []string{"Source", "Rand", "Zipf", "New", "NewPCG", "NewChaCha8", "NewZipf", "PCG", "ChaCha8"}

// randomProblems are the places of a test that draws numbers without a seed.
func randomProblems(s source) []string {
	if !s.test() || slices.Contains(unrepeatable, s.path) {
		return nil
	}
	var problems []string
	names := importNames(s)
	for _, spec := range s.file.Imports {
		if p, _ := strconv.Unquote(spec.Path.Value); p == "math/rand" || p == "crypto/rand" {
			problems = append(problems, s.at(spec.Pos(), "a test that imports %s draws other numbers in each run: use rand.New(rand.NewPCG(1, 2)) of math/rand/v2", p))
		}
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if p, name := selected(names, sel); p == "math/rand/v2" && !slices.Contains(seeded, name) {
				problems = append(problems, s.at(n.Pos(), "rand.%s draws another number in each run: call it on rand.New(rand.NewPCG(1, 2))", name))
			}
		}
		return true
	})
	return problems
}

func TestTestsDrawFromASeed(t *testing.T) {
	for _, s := range load(t) {
		report(t, randomProblems(s))
	}
}

func TestSeedsAreSeen(t *testing.T) {
	drawing, seeding := sample(t, "alarm/x_test.go", "package alarm\nimport \"pgregory.net/rapid\"\n"), sample(t, "alarm/y_test.go", "package alarm\nimport _ \""+seeds+"\"\n")
	if got := unseeded([]source{drawing}); !slices.Equal(got, []string{"alarm"}) {
		t.Errorf("without the import, %q draw", got)
	}
	if got := unseeded([]source{drawing, seeding}); len(got) > 0 {
		t.Errorf("with the import, %q draw", got)
	}
	const text = "package x\nimport (\n\"math/rand/v2\"\n_ \"math/rand\"\n)\nvar a, b = rand.IntN(3), rand.New(rand.NewPCG(1, 2)).IntN(3)\n"
	wantProblems(t, randomProblems(sample(t, "alarm/x_test.go", text)), "imports math/rand", "rand.IntN draws")
	wantProblems(t, randomProblems(sample(t, "alarm/x.go", text)))
}
