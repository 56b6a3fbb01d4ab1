package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// module is the path of the module, and the prefix of its packages' paths.
const module = "github.com/holdfast-dev/holdfast"

// root is the repository as seen from this package's tests.
const root = "../.."

// source is one Go file of the module.
type source struct {
	path string // slash-separated, from the root
	text string
	file *ast.File
	fset *token.FileSet
}

// sources is every Go file of the library's module, sorted by path. Modules
// nested in it, testdata and hidden directories are left out.
var sources = sync.OnceValues(func() ([]source, error) { return filesOf(".") })

// serverSources is every Go file of the module of the server, as sources.
var serverSources = sync.OnceValues(func() ([]source, error) { return filesOf("server") })

// pglogSources is every Go file of the module of the log in PostgreSQL, as sources.
var pglogSources = sync.OnceValues(func() ([]source, error) { return filesOf("storage/shardlog/pglog") })

// filesOf is every Go file of the module in a directory.
func filesOf(start string) ([]source, error) {
	var found []source
	err := fs.WalkDir(os.DirFS(root), start, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != start && foreign(name):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		s, err := parse(name, string(text))
		found = append(found, s)
		return err
	})
	return found, err
}

// foreign says whether a directory is none of the module's.
func foreign(dir string) bool {
	base := path.Base(dir)
	if base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(root, dir, "go.mod"))
	return err == nil
}

// parse makes a source of a file's text.
func parse(name, text string) (source, error) {
	s := source{path: name, text: text, fset: token.NewFileSet()}
	var err error
	s.file, err = parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	return s, err
}

// load is sources for a test.
func load(t *testing.T) []source {
	t.Helper()
	found, err := sources()
	if err != nil {
		t.Fatalf("read the module's files: %v", err)
	}
	return found
}

// loadAll is load with the files of the server and of the log in PostgreSQL, because their tests prove promises too.
func loadAll(t *testing.T) []source {
	t.Helper()
	found, err := serverSources()
	if err != nil {
		t.Fatalf("read the files of the server: %v", err)
	}
	return slices.Concat(loadHouse(t), found)
}

// loadHouse is load with the files of the log in PostgreSQL, because the rules of the house are theirs too.
func loadHouse(t *testing.T) []source {
	t.Helper()
	found, err := pglogSources()
	if err != nil {
		t.Fatalf("read the files of the log in PostgreSQL: %v", err)
	}
	return slices.Concat(load(t), found)
}

// sample is a source for the tests of the checks themselves.
func sample(t *testing.T, name, text string) source {
	t.Helper()
	s, err := parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// read is the text of a file that is no Go source.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// dir is the source's package, as a path from the root; "." is the root itself.
func (s source) dir() string { return path.Dir(s.path) }

// test says whether only tests are built from the source.
func (s source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

// imports are the paths that the source imports.
func (s source) imports() []string {
	var paths []string
	for _, spec := range s.file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		paths = append(paths, p)
	}
	return paths
}

// at is a problem with its place.
func (s source) at(pos token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.path, s.fset.Position(pos).Line, fmt.Sprintf(format, args...))
}

// within says whether dir is one of the trees or lies in one.
func within(dir string, trees ...string) bool {
	for _, tree := range trees {
		if dir == tree || strings.HasPrefix(dir, tree+"/") {
			return true
		}
	}
	return false
}

// report fails the test with each problem.
func report(t *testing.T, problems []string) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}

// wantProblems checks a check: it must find exactly the mistakes of the sample.
func wantProblems(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("found %d problems, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i, w := range want {
		if !strings.Contains(got[i], w) {
			t.Errorf("problem %d is %q, which does not say %q", i, got[i], w)
		}
	}
}
