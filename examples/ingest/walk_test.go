package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// write makes a file below dir.
func write(t *testing.T, dir, path, text string) {
	t.Helper()
	full := filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// paths walks dir.
func paths(t *testing.T, dir string) []string {
	t.Helper()
	src, err := openSource(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	unread, err := src.walk(context.Background(), func(f found) error {
		all = append(all, f.path)
		if !f.stamp.Exists || f.stamp.Mod == 0 {
			t.Errorf("%s has the stamp %+v", f.path, f.stamp)
		}
		return nil
	})
	if err != nil || len(unread) > 0 {
		t.Fatal(unread, err)
	}
	slices.Sort(all)
	return all
}

// The walk finds the same files as find -name '*.go' -type f.
func TestWalkTakesRegularGoFiles(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{"a.go", ".go", "b/c.go", "b/.hidden/d.go", "b/e.txt", "b/go", "b/f.go.bak", "x.go/y.go"} {
		write(t, dir, path, "package x\n")
	}
	if err := os.Symlink(filepath.Join(dir, "a.go"), filepath.Join(dir, "link.go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "b"), filepath.Join(dir, "linked")); err != nil {
		t.Fatal(err)
	}
	want := []string{".go", "a.go", "b/.hidden/d.go", "b/c.go", "x.go/y.go"}
	if got := paths(t, dir); !slices.Equal(got, want) {
		t.Errorf("the walk found %q, want %q", got, want)
	}
	if got := paths(t, filepath.Join(dir, "linked")); !slices.Equal(got, []string{".hidden/d.go", "c.go"}) {
		t.Errorf("through a link the walk found %q", got)
	}
}

// Paths of any bytes have names of their own, and lead back to their files.
func TestEscapeIsOneToOne(t *testing.T) {
	src := source{root: string(filepath.Separator)}
	seen := make(map[string]string)
	for _, path := range []string{"a.go", "é.go", "\xff.go", "%FF.go", "%25FF.go", "a%b\xc3.go", "new\nline.go", strings.Repeat("x", 5000) + ".go"} {
		escaped := escape(path)
		if !utf8.ValidString(escaped) {
			t.Errorf("%q is escaped to %q", path, escaped)
		}
		if got := src.file(escaped); got != src.root+path {
			t.Errorf("%q leads to %q", path, got)
		}
		name := nameOf(escaped)
		if len(name) > nameMax || seen[name] != "" {
			t.Errorf("%q has the name %q, as has %q", path, name, seen[name])
		}
		seen[name] = path
	}
}

func TestPackageOf(t *testing.T) {
	for path, want := range map[string]string{"a.go": ".", "net/http/a.go": "net", "net/a.go": "net", ".x/y.go": ".x"} {
		if got := packageOf(path); got != want {
			t.Errorf("the package of %s is %s, want %s", path, got, want)
		}
	}
}

// Files below a directory that could not be read are not taken for gone.
func TestBelow(t *testing.T) {
	dirs := []string{"a/b", "c%"}
	for file, want := range map[string]bool{"a/b/x.go": true, "a/b/c/x.go": true, "a/bc/x.go": false, "a/x.go": false, "c%25/x.go": true} {
		if below(file, dirs) != want {
			t.Errorf("%s is below %q: %t, want %t", file, dirs, !want, want)
		}
	}
}

func TestOpenSourceSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file", "")
	for path, want := range map[string]string{
		"file":   "is a file: name a directory with -src",
		"absent": "does not exist: name a directory with -src",
	} {
		if _, err := openSource(filepath.Join(dir, path)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if _, err := openSource(dir); err != nil {
		t.Error(err)
	}
}

func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		text string
		want measure
	}{
		{"", measure{Unparsed: true}},
		{"package a", measure{Bytes: 9}},
		{"package a\nimport (\n\"os\"\n\"fmt\"; f \"fmt\")\n", measure{Bytes: 40, Lines: 4, Imports: []string{"fmt", "os"}}},
		{"package a\n\nfunc {", measure{Bytes: 17, Lines: 2}}, // only the imports are parsed
		{"not go\n\n", measure{Bytes: 8, Lines: 2, Unparsed: true}},
		{"package a\nimport \"" + strings.Repeat("x", 600) + "\"\n", measure{Bytes: 620, Lines: 2, Unparsed: true}},
	} {
		write(t, dir, "f.go", c.text)
		m, s, err := measureFile(filepath.Join(dir, "f.go"))
		if err != nil || !s.Exists || m.Bytes != c.want.Bytes || m.Lines != c.want.Lines ||
			m.Unparsed != c.want.Unparsed || !slices.Equal(m.Imports, c.want.Imports) {
			t.Errorf("%.40q is measured as %+v, %+v, %v, want %+v", c.text, m, s, err, c.want)
		}
	}
	m, s, err := measureFile(filepath.Join(dir, "absent.go"))
	if m != nil || s != (stamp{}) || err != nil {
		t.Errorf("an absent file is measured as %+v, %+v, %v", m, s, err)
	}
	if _, _, err := measureFile(dir); err == nil {
		t.Error("a directory is measured without an error")
	}
}

// An empty file from 1970 is not taken for no file.
func TestStampOfTheEpoch(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "f.go", "")
	path := filepath.Join(dir, "f.go")
	if err := os.Chtimes(path, time.Unix(0, 0), time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	if _, s, err := measureFile(path); s == (stamp{}) || err != nil {
		t.Errorf("its stamp is %+v, %v", s, err)
	}
}
