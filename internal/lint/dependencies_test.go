package lint

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// required finds the modules that a go.mod names.
var required = regexp.MustCompile(`(?m)^(?:require)?\s+(\S+\.\S+) v\S+`)

// reasoned finds the first cell of the rows of CONTRIBUTING's table of
// dependencies, and the reason in the last.
var reasoned = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|.*\\| *([^|]*?) *\\|$")

// dependencies are the modules that a file of this module imports.
func dependencies(t *testing.T) map[string]bool {
	var modules []string
	for _, m := range required.FindAllStringSubmatch(read(t, "go.mod"), -1) {
		modules = append(modules, m[1])
	}
	found := map[string]bool{}
	for _, s := range load(t) {
		for _, p := range s.imports() {
			if i := slices.IndexFunc(modules, func(m string) bool { return within(p, m) }); i >= 0 {
				found[modules[i]] = true
			}
		}
	}
	return found
}

func TestDependenciesHaveReasons(t *testing.T) {
	used := dependencies(t)
	reasons := map[string]string{}
	for _, m := range reasoned.FindAllStringSubmatch(read(t, "CONTRIBUTING.md"), -1) {
		reasons[m[1]] = m[2]
	}
	for _, m := range slices.Sorted(maps.Keys(used)) {
		if reasons[m] == "" {
			t.Errorf("the module depends on %s without a reason: add a row to the table of dependencies in CONTRIBUTING.md, or do without it", m)
		}
	}
	for _, m := range slices.Sorted(maps.Keys(reasons)) {
		if !used[m] {
			t.Errorf("CONTRIBUTING.md gives a reason for %s, which no file imports: remove the row, and the module from go.mod", m)
		}
	}
}

// A direct dependency that no file imports is a leftover. A dependency that go.mod calls
// indirect, though a file imports it, misleads readers.
func TestGoModTellsDirectFromIndirect(t *testing.T) {
	used := dependencies(t)
	for line := range strings.Lines(read(t, "go.mod")) {
		m := required.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		switch indirect := strings.HasSuffix(strings.TrimSpace(line), "// indirect"); {
		case indirect && used[m[1]]:
			t.Errorf("go.mod calls %s indirect, but a file imports it: run go mod tidy", m[1])
		case !indirect && !used[m[1]]:
			t.Errorf("go.mod requires %s, which no file imports: run go mod tidy", m[1])
		}
	}
}

// versioned finds the modules that a go.mod names, with their versions.
var versioned = regexp.MustCompile(`(?m)^(?:require)?\s+(\S+\.\S+) (v\S+)`)

// versions are the modules that a go.mod names, with their versions.
func versions(t *testing.T, name string) map[string]string {
	all := map[string]string{}
	for _, m := range versioned.FindAllStringSubmatch(read(t, name), -1) {
		all[m[1]] = m[2]
	}
	return all
}

// The modules that go.work joins take the same versions. Otherwise the workspace builds and tests the packages of the library with
// other code than the library alone, and CI has no test of one in its cache for the other.
func TestModulesShareVersions(t *testing.T) {
	library := versions(t, "go.mod")
	for _, module := range []string{"server", "storage/shardlog/pglog"} {
		there := versions(t, module+"/go.mod")
		for _, m := range slices.Sorted(maps.Keys(library)) {
			if v, ok := there[m]; ok && v != library[m] {
				t.Errorf("%s takes %s %s, and the library %s: run \"go get %s@VERSION\" with the newer one in both, and go mod tidy", module, m, v, library[m], m)
			}
		}
	}
}
