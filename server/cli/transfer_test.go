package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/object"
)

// An object is exported from a directory, which changes no byte of it, and imported by a
// program into its own store. A refused transfer leaves no file and no object.
//
// Proves O27. Proves O28.
func TestExportAndImport(t *testing.T) {
	dir, to := killed(t), t.TempDir()
	before := sum(t, dir)
	file := filepath.Join(t.TempDir(), "alice.ndjson")
	written := run(t, Program{}, "--dir", dir, "export", "cart/alice", file)
	written.must(t, Fine, "cart/alice is in ", "no server answers")
	whole, err := os.ReadFile(file)
	must(t, err)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read the file: %v, %v", info.Mode(), err)
	}
	if plain := run(t, Program{}, "--dir", dir, "export", "cart/alice"); plain.out != string(whole) {
		t.Errorf("standard output has\n%s\nwant\n%s", plain.out, whole)
	}
	run(t, Program{}, "--dir", dir, "export", "cart/alice", file).must(t, Refused, "exists: name a new file")
	none := filepath.Join(t.TempDir(), "none")
	run(t, Program{}, "--dir", dir, "export", "cart/nobody", none).must(t, Refused, "no such object")
	run(t, Program{}, "--dir", dir, "export", "alice", none).must(t, Usage, "CLASS/NAME")
	if _, err := os.Stat(none); !os.IsNotExist(err) {
		t.Errorf("a refused export leaves a file: %v", err)
	}
	if before != sum(t, dir) {
		t.Error("an export has changed the store")
	}

	p := Program{Definitions: []object.Definition{carts}}
	h, err := object.Open(object.Options{Dir: to}, carts)
	must(t, err, h.Shutdown(t.Context()))
	run(t, Program{}, "--dir", to, "import", file).must(t, Refused, "import needs a server")
	run(t, Program{}, "--dir", to, "import", file, "--open").must(t, Refused, "knows no classes")
	run(t, p, "--dir", to, "import", none, "--open").must(t, Unopened, "no such file")
	torn := filepath.Join(t.TempDir(), "torn")
	must(t, os.WriteFile(torn, whole[:len(whole)-2], 0o600))
	run(t, p, "--dir", to, "import", torn, "--open").must(t, Refused, "not a file of an exported object")
	run(t, p, "--dir", to, "ls").must(t, Fine)
	run(t, p, "--dir", to, "import", file, "--open").must(t, Fine, "cart", "alice")
	run(t, p, "--dir", to, "import", file, "--open").must(t, Refused, "line 1: ", "exists")
	run(t, p, "--dir", to, "import", file, "--open", "--replace").must(t, Fine, "alice")
	if moved := run(t, p, "--dir", to, "export", "cart/alice"); rows(moved.out) == "" || rows(moved.out) != rows(string(whole)) {
		t.Errorf("the other store has\n%s\nwant\n%s", moved.out, whole)
	}
}

// rows are the lines of the keys of an export.
func rows(file string) (lines string) {
	for line := range strings.Lines(file) {
		if strings.HasPrefix(line, `{"key"`) {
			lines += line
		}
	}
	return lines
}
