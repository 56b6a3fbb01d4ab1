package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// tiny runs the tool on the package in testdata and returns its lines.
func tiny(t *testing.T, ctx context.Context, o options) ([]string, error) {
	t.Helper()
	t.Chdir("testdata/tiny")
	o.pkg, o.together, o.patience, o.least = ".", 2, 10, time.Second
	var out bytes.Buffer
	err := run(ctx, o, &out)
	return strings.Split(strings.TrimSpace(out.String()), "\n"), err
}

// want fails the test if the lines that begin with a prefix are others.
func want(t *testing.T, lines []string, prefix string, wanted ...string) {
	t.Helper()
	var got []string
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l, prefix); ok {
			got = append(got, rest)
		}
	}
	slices.Sort(got)
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		t.Errorf("lines with %q:\n%s\nwant:\n%s", prefix, strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
}

// The survivors are exactly the mutations that the tests of tiny miss. All others are
// found, the endless loop by a time-out.
func TestSurvivorsAreTold(t *testing.T) {
	list := filepath.Join(t.TempDir(), "equivalent.txt")
	text := `# a comment
tiny.go
Shelf.Put
n > 0 => >=
if n > 0 && s.books+n > most {
no books do not fill a shelf

tiny.go
Shelf.Take
n > 0 => >=
if n > 0 {
the method has gone
`
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(filepath.Join(working(t), "testdata/tiny"), list)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := tiny(t, t.Context(), options{equivalent: rel, floor: 90})
	want(t, lines, "survived: ",
		"tiny.go:27: s.open = true => left out",
		"tiny.go:27: true => swapped",
		"tiny.go:32: 0 => + 1",
		"tiny.go:49: !(len(sizes) != 3) || a < 1<<4 => &&",
		"tiny.go:49: !(len(sizes) != 3) => swapped")
	want(t, lines, "not reached: ",
		"tiny.go:35: s.books-- => left out",
		"tiny.go:35: s.books-- => ++",
		"tiny.go:49: a < 1<<4 => <=")
	want(t, lines, "equivalent.txt: ",
		"no such mutation any more, remove it: tiny.go, Shelf.Take, n > 0 => >=, if n > 0 {")
	want(t, lines, "{",
		`"package":".","mutations":29,"found":21,"timed_out":1,"found_elsewhere":0,"survived":8,"not_reached":3,"equivalent":1,"untried":0,"share_percent":72.4}`)
	if err == nil || !strings.Contains(err.Error(), "72.4 % of the mutations were found, want at least 90 %") {
		t.Errorf("below the floor: %v", err)
	}
}

// The tests of a further package find mutations that the tests of the package itself
// miss. A mutation that both find counts for the package itself.
func TestTestsOfFurtherPackages(t *testing.T) {
	lines, err := tiny(t, t.Context(), options{tests: "./desk", floor: 70, equivalent: "none.txt"})
	if err != nil {
		t.Error(err)
	}
	want(t, lines, "not reached: ", "tiny.go:49: a < 1<<4 => <=")
	want(t, lines, "{",
		`"package":".","mutations":30,"found":24,"timed_out":1,"found_elsewhere":3,"survived":6,"not_reached":1,"equivalent":0,"untried":0,"share_percent":80}`)
}

// A test runs for the mutations that it reaches and for no others, in each package.
func TestReachOfFurtherPackages(t *testing.T) {
	t.Chdir("testdata/tiny")
	p, err := load(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	tr := &trial{pkg: p, dir: t.TempDir(), options: options{tests: "./desk", together: 1, patience: 10, least: time.Second}}
	all := p.mutations()
	if err := errors.Join(tr.addSuites(t.Context()), tr.build(t.Context(), all), tr.unchanged(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		var got []string
		for _, s := range tr.suites {
			for _, test := range s.reached[m.Number] {
				got = append(got, s.name+" "+test.name)
			}
		}
		wanted := map[string][]string{
			"Shelf.Empty":  {"example.com/tiny TestPut", "example.com/tiny/desk TestRead"},
			"Shelf.Unread": {"example.com/tiny/desk TestRead"},
			"Count":        {"example.com/tiny TestCount"},
		}[m.Function]
		if wanted != nil && !slices.Equal(got, wanted) {
			t.Errorf("%s: reached by %q, want %q", m, got, wanted)
		}
	}
}

// A package with tests that cannot be run as asked is told by its name.
func TestBadFurtherPackages(t *testing.T) {
	for tests, text := range map[string]string{
		".":             "the tests of . would be run twice",
		"./desk,./desk": "the tests of ./desk would be run twice",
		"./bare":        "example.com/tiny/bare has no tests",
		"./...":         "./... is not one package of a module",
	} {
		t.Run(tests, func(t *testing.T) {
			if _, err := tiny(t, t.Context(), options{tests: tests, equivalent: "none.txt"}); err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("-tests %s: %v, want %q", tests, err, text)
			}
		})
	}
}

// A sample is the same for the same seed, and the floor is held at its own value.
func TestSampleAndFloor(t *testing.T) {
	all := make([]mutation, 100)
	for i := range all {
		all[i] = mutation{Number: i + 1, Line: i + 1, File: []string{"a/x.go", "a/y.go"}[i%2]}
	}
	numbers := func(o options) (ns []int) {
		for _, m := range choose(all, o) {
			ns = append(ns, m.Number)
		}
		return ns
	}
	first := numbers(options{max: 10, seed: 1})
	if len(first) != 10 || !slices.Equal(first, numbers(options{max: 10, seed: 1})) {
		t.Errorf("a sample of ten: %v", first)
	}
	if slices.Equal(first, numbers(options{max: 10, seed: 2})) {
		t.Errorf("another seed gives the same sample: %v", first)
	}
	if ns := numbers(options{file: "y.go"}); len(ns) != 50 || slices.ContainsFunc(ns, func(n int) bool { return n%2 == 1 }) {
		t.Errorf("of y.go: %v", ns)
	}
	if ns := numbers(options{file: "x.go:1,y.go:4,y.go:5"}); !slices.Equal(ns, []int{1, 4}) && !slices.Equal(ns, []int{4, 1}) {
		t.Errorf("of two lines: %v", ns)
	}
	s := summary{Total: 10, Found: 9, Share: 90}
	if err := s.verdict(90); err != nil {
		t.Error(err)
	}
	if err := s.verdict(90.1); err == nil {
		t.Error("90 % are enough for a floor of 90.1 %")
	}
}

// The quick tests come first: those that take up to a 64th of the time of all, then up
// to a 16th, then up to a quarter.
func TestQuickTestsFirst(t *testing.T) {
	names := func(took ...time.Duration) (text string) {
		var tests []*timed
		for i, d := range took {
			tests = append(tests, &timed{name: string(rune('a' + i)), took: d})
		}
		for _, part := range quickFirst(tests) {
			for _, test := range part {
				text += test.name
			}
			text += " "
		}
		return text
	}
	for _, c := range []struct {
		took []time.Duration
		want string
	}{
		{[]time.Duration{480, 10, 30, 120}, "b c d a "}, // of 640: 10, 40, 160
		{[]time.Duration{480, 11, 29, 120}, "bc d a "},
		{[]time.Duration{480, 10, 31, 119}, "b cd a "},
		{[]time.Duration{479, 10, 30, 121}, "b c da "},
		{[]time.Duration{5, 5, 630}, "ab c "},
		{[]time.Duration{100}, "a "},
	} {
		if got := names(c.took...); got != c.want {
			t.Errorf("tests of %v are run as %q, want %q", c.took, got, c.want)
		}
	}
}

// The quickest tests of a package run for as long as -most allows, and at least one.
func TestMostTime(t *testing.T) {
	tests := []*timed{{name: "a", took: 30}, {name: "b", took: 10}, {name: "c", took: 20}}
	for most, want := range map[time.Duration]string{0: "abc", 1: "b", 29: "b", 30: "bc", 59: "bc", 60: "bca"} {
		got := ""
		for _, test := range within(tests, most) {
			got += test.name
		}
		if got != want {
			t.Errorf("in %d the tests %s run, want %s", most, got, want)
		}
	}
}

// Constants that are returned with an error known not to be nil stay, and so does the
// capacity of a slice. All other constants change.
func TestConstantsThatStay(t *testing.T) {
	t.Chdir("testdata/tiny/bare")
	p, err := load(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range p.mutations() {
		if strings.Contains(m.Code, "return ") {
			got = append(got, m.Change)
		}
	}
	want := []string{
		`fmt.Errorf("no half: %w", err) => nil`, "1 => + 1", "false => swapped", "other => nil",
		"2 => + 1", "false => swapped", "2 => + 1", "true => swapped", "err => nil",
		"1 => + 1", "1 => + 1", "3 => + 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the changes of returned values are %q, want %q", got, want)
	}
}

// A run that is ended keeps its results.
func TestInterruptKeepsTheResults(t *testing.T) {
	t.Chdir("testdata/tiny")
	p, err := load(t.Context(), ".")
	if err != nil {
		t.Fatal(err)
	}
	o := options{together: 1, patience: 10, least: time.Second}
	tr := &trial{pkg: p, dir: t.TempDir(), options: o}
	all := p.mutations()
	if err := errors.Join(tr.addSuites(t.Context()), tr.build(t.Context(), all), tr.unchanged(t.Context())); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	results := tr.tryAll(ctx, all, func(r result) {
		if r.Number == 3 {
			cancel()
		}
	})
	if len(results) != 3 || results[0].outcome != found {
		t.Errorf("the results before the end are %d, want 3: %v", len(results), results)
	}
}

func TestBadList(t *testing.T) {
	name := filepath.Join(t.TempDir(), "equivalent.txt")
	if err := os.WriteFile(name, []byte("tiny.go\nShelf.Put\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readEquivalents(name); err == nil || !strings.Contains(err.Error(), "has 2 lines, want five") {
		t.Errorf("a paragraph without its reason: %v", err)
	}
}

// working is the directory of this package.
func working(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
