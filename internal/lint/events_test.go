package lint

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// eventRow is a row of the table of events in docs/JOBS.md, which has the kind first.
var eventRow = regexp.MustCompile("(?m)^\\| `([a-z.]+)` \\| (?:each|continuous|debounce|pools|workflows|webhooks)")

// The table of events in docs/JOBS.md has the kinds in the code, which are the constants with names that begin with
// Event, and no other.
func TestEventsAreDocumented(t *testing.T) {
	kinds := map[string]bool{}
	for _, load := range []func() ([]source, error){sources, serverSources} {
		all, err := load()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.test() || !within(s.dir(), "jobs", "server/webhook") {
				continue
			}
			for _, kind := range eventKinds(s.file) {
				kinds[kind] = true
			}
		}
	}
	if len(kinds) < 25 {
		t.Fatalf("there are %d kinds in the code: the test does not find them", len(kinds))
	}
	documented := map[string]bool{}
	for _, row := range eventRow.FindAllStringSubmatch(read(t, "docs/JOBS.md"), -1) {
		documented[row[1]] = true
	}
	want, got := slices.Sorted(maps.Keys(kinds)), slices.Sorted(maps.Keys(documented))
	if !slices.Equal(got, want) {
		t.Errorf("the table of events in docs/JOBS.md has\n%s\nand the code has\n%s", strings.Join(got, " "), strings.Join(want, " "))
	}
}

// eventKinds are the values of the constants of a file whose names begin with Event.
func eventKinds(file *ast.File) (kinds []string) {
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for i, name := range v.Names {
				if !strings.HasPrefix(name.Name, "Event") || i >= len(v.Values) {
					continue
				}
				if lit, ok := v.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if kind, err := strconv.Unquote(lit.Value); err == nil {
						kinds = append(kinds, kind)
					}
				}
			}
		}
	}
	return kinds
}
