package lint

import (
	"cmp"
	"fmt"
	"go/ast"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// figure is one number that tells how easily the repository is read. It fails beyond
// its limit, which is its aim, or the value of table notYet until the aim is reached.
type figure struct {
	where, name string
	value       float64
	aim         float64
	least       bool    // the aim is the smallest good value, otherwise the largest
	slack       float64 // by how much a limit is passed by one word of a small room
	hint        string  // where to look if it fails
}

// The aims of language, each in a thousand words.
var aims = map[string]float64{"what": 2, "who": 0.5, "because": 2}

// shareAim is the least share of comments in the lines of these rooms, in percent.
const shareAim = 22

var shared = []string{"object", "jobs", "jobs/engine", "storage"}

// docAim is how many lines the package comment of these rooms has at least.
const docAim = 40

var explained = []string{"object", "object/journal", "jobs", "jobs/engine", "storage", "jobs/debounce", "jobs/workerpool", "jobs/workflow", "harness"}

// guides are the documents without words that only the code has; those of reasoned
// documents must also give reasons.
var (
	guides          = []string{"README.md", "docs/OBJECTS.md", "docs/JOBS.md", "docs/PATTERNS.md", "docs/OPERATIONS.md"}
	reasonedRooms   = []string{"alarm", "object", "recovery", "jobs", "seam", "storage", "harness", "internal", "examples"}
	reasonedGuides  = []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "docs/OBJECTS.md", "docs/JOBS.md", "docs/PATTERNS.md", "docs/OPERATIONS.md", "docs/TESTING.md"}
	productPackages = []string{"seam", "storage", "alarm", "object", "recovery", "jobs", "internal/row"}
)

// figures are all figures of the repository.
func figures(t *testing.T) []figure {
	t.Helper()
	found := slices.Concat(languageFigures(comments(t), documentProse(t)), shapeFigures(load(t)))
	slices.SortStableFunc(found, func(a, b figure) int { return cmp.Compare(a.where, b.where) })
	return found
}

// languageFigures count words.
func languageFigures(rooms, documents map[string]*prose) []figure {
	var found []figure
	of := func(where string, p *prose) {
		one := p.per1000(1)
		found = append(found,
			figure{where: where, name: "what", value: p.per1000(p.riddles["what"]), aim: aims["what"], slack: one},
			figure{where: where, name: "who", value: p.per1000(p.riddles["who"]), aim: aims["who"], slack: one},
			figure{where: where, name: "begins", value: float64(len(p.begins)), hint: strings.Join(p.begins, " | ")})
		if slices.Contains(reasonedRooms, where) || slices.Contains(reasonedGuides, where) {
			found = append(found, figure{where: where, name: "because", value: p.per1000(p.reasons), aim: aims["because"], least: true, slack: one})
		}
	}
	for _, where := range slices.Sorted(maps.Keys(rooms)) {
		of(where, rooms[where])
	}
	for _, where := range slices.Sorted(maps.Keys(documents)) {
		of(where, documents[where])
	}
	for _, where := range guides {
		found = append(found, figure{where: where, name: "private words", value: float64(documents[where].riddles["private"])})
	}
	for _, where := range shared {
		p := cmp.Or(rooms[where], &prose{})
		found = append(found, figure{where: where, name: "comment share", value: 100 * float64(p.comment) / float64(max(p.text, 1)), aim: shareAim, least: true})
	}
	return found
}

// shapeFigures count names, files and pieces of code that should stand once.
func shapeFigures(all []source) []figure {
	var own []source // without tests
	for _, s := range all {
		if !s.test() {
			own = append(own, s)
		}
	}
	found := []figure{
		{where: "jobs", name: "names of a user", value: float64(exportedNames(own, "jobs")), aim: 77},                   // 65, 8 for jobs that complete, are stuck or retire, and 4 of Retention: Forever, Retired and two events
		{where: "jobs/workflow", name: "names of a user", value: float64(exportedNames(own, "jobs/workflow")), aim: 58}, // 45, 6 for events and dead letters, 5 for Go, First and Through, 2 for a look at the rows
		{where: "jobs/workflow/workflowtest", name: "names of a user", value: float64(exportedNames(own, "jobs/workflow/workflowtest")), aim: 8},
		{where: "object/journal", name: "names of a user", value: float64(exportedNames(own, "object/journal")), aim: 10},
		{where: "object", name: "methods of State", value: float64(exportedMethods(own, "object", "State")), aim: 22},
		{where: "object", name: "files", value: float64(files(own, "object")), aim: 46}, // 39, 2 for looks at a store with a host or without, 1 for Explain, 1 for observers, 1 for the feed, and 2 for export and import of an object
		count("object", "chains hosted.host", matches(own, chain, "object"), 0),
		count("product", "row codecs", decoders(own), 1),
		count("product", "retry types", retryTypes(own), 1),
		count("product", "panic guards", recovers(own), 1),
	}
	for _, where := range explained {
		found = append(found, figure{where: where, name: "package doc lines", value: float64(docLines(own, where)), aim: docAim, least: true})
	}
	return found
}

// count is the figure of places that should be few.
func count(where, name string, places []string, aim float64) figure {
	return figure{where: where, name: name, value: float64(len(places)), aim: aim, hint: strings.Join(places, " ")}
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

// docLines is how many lines the package comment has.
func docLines(own []source, dir string) (n int) {
	for _, s := range own {
		if s.dir() == dir && s.file.Doc != nil {
			n += strings.Count(s.file.Doc.Text(), "\n")
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

// notYet has today's values of the figures that have not reached their aim. A value may
// only get better; the row goes when the aim is reached. A row of a tree ("storage") is
// also for the packages in it.
var notYet = map[string]float64{}

// limit is the aim of a figure, or its value of notYet.
func (f figure) limit() float64 {
	for where := f.where; where != "."; where = path.Dir(where) {
		if today, ok := notYet[where+": "+f.name]; ok {
			if f.least {
				return min(today, f.aim)
			}
			return max(today, f.aim)
		}
	}
	return f.aim
}

// good says whether the value keeps a limit, up to half of the last digit printed.
func (f figure) good(limit float64) bool {
	const rounding = 0.05
	if f.least {
		return f.value > limit-rounding-f.slack
	}
	return f.value < limit+rounding+f.slack
}

// String is the line that the test prints: value, limit and aim.
func (f figure) String() string {
	relation := "≤"
	if f.least {
		relation = "≥"
	}
	line := fmt.Sprintf("%-22s %-18s %7s %s %s", f.where, f.name, digits(f.value), relation, digits(f.limit()))
	if !f.good(f.aim) {
		line += fmt.Sprintf("   aim %s", digits(f.aim))
	}
	return line
}

func digits(v float64) string {
	if v == math.Trunc(v) {
		return fmt.Sprint(int(v))
	}
	return fmt.Sprintf("%.1f", v)
}

// The figures of the house: go test ./internal/lint -run Figures -v prints them.
func TestFigures(t *testing.T) {
	var table []string
	for _, f := range figures(t) {
		table = append(table, f.String())
		if !f.good(f.limit()) {
			t.Errorf("%s: %s is %s, beyond %s: %s", f.where, f.name, digits(f.value), digits(f.limit()), cmp.Or(f.hint, remedies[f.name], "mend it; the limit stays"))
		}
	}
	t.Logf("value and limit of each figure, and its aim where it is not reached; words are in a thousand\n%s", strings.Join(table, "\n"))
}

// remedies say how a figure gets better.
var remedies = map[string]string{
	"what":              "name the thing instead of writing what",
	"who":               "name the caller, the goroutine or the process instead of writing who",
	"because":           "give reasons: because, so that, for example",
	"comment share":     "say the invariants, the reasons and the order of steps",
	"package doc lines": "say what the package is, a first program, guarantees, what not to assume, costs, limits",
	"private words":     "use the plain word: group of alarms, goroutines, row, set aside, interrupted, seen",
}

// A row for a figure that is not there would never be removed.
func TestFiguresNotYetAreFigures(t *testing.T) {
	if len(notYet) == 0 {
		return // counting takes a second
	}
	names := map[string]bool{}
	for _, f := range figures(t) {
		names[f.where+": "+f.name] = true
	}
	for _, key := range slices.Sorted(maps.Keys(notYet)) {
		if !names[key] {
			t.Errorf("notYet has a row %q, which no figure has: remove it", key)
		}
	}
}

func TestFiguresAreSeen(t *testing.T) {
	own := []source{
		sample(t, "jobs/x.go", "// Package jobs is\n// two lines.\npackage jobs\n\ntype Retry struct {}\ntype inner struct{}\nconst A, b = 1, 2\nvar C = 1\nfunc F() { recover() }\nfunc (Retry) M() {}\n"),
		sample(t, "object/batch.go", "package object\n\ntype State struct{}\nfunc (s *State) A() { binary.Uvarint(nil) }\nfunc (s *State) b() {}\nfunc (s *Other) C() { s.hosted.host.x() }\n"),
		sample(t, "object/row.go", "package object\n\nfunc f() { binary.Varint(nil) }\n"),
	}
	got := fmt.Sprint(exportedNames(own, "jobs"), exportedMethods(own, "object", "State"), files(own, "object"), docLines(own, "jobs"),
		matches(own, chain, "object"), decoders(own), retryTypes(own), recovers(own))
	if want := "4 1 2 2 [object/batch.go:6] [object/row.go] [jobs/x.go:5] [jobs/x.go:9]"; got != want {
		t.Errorf("counted %s, want %s", got, want)
	}
	if f := (figure{value: 2.2, aim: 2}); f.good(2) || !f.good(2.2) {
		t.Error("2.2 keeps a limit of 2, or not one of 2.2")
	}
	if f := (figure{value: 30, aim: 40, least: true}); f.good(40) || !f.good(30) {
		t.Error("30 keeps a least limit of 40, or not one of 30")
	}
	if f := (figure{where: "storage", name: "what", value: 3, aim: 2}); !strings.Contains(f.String(), "3 ≤") || !strings.Contains(f.String(), "aim 2") {
		t.Errorf("the line is %q", f)
	}
}
