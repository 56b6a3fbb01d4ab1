package snapshot

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-dev/holdfast/storage/shardlog"
)

const (
	emptySum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	otherSum = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
)

func sample() manifest {
	return manifest{store: "00112233445566778899aabbccddeeff", files: []file{{"000005.log", 0, emptySum}, {"HOLDFAST", 45, otherSum}}}
}

// The text of a manifest, as FORMAT.md shows it. With another a snapshot that is registered could not be restored.
func TestManifestLayout(t *testing.T) {
	document, err := os.ReadFile("../../../FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(sample().text())
	if shown := "    " + strings.TrimSuffix(strings.ReplaceAll(text, "\n", "\n    "), "    "); !strings.Contains(string(document), shown) {
		t.Errorf("FORMAT.md does not show this manifest:\n%s", shown)
	}
	m := sample()
	m.base = true
	for _, m := range []manifest{sample(), m, {files: m.files}} {
		got, err := parse(string(m.text()))
		if err != nil || string(got.text()) != string(m.text()) || got.base != m.base {
			t.Errorf("the manifest\n%s is read as\n%s: %v", m.text(), got.text(), err)
		}
	}
	if want := []string{otherSum}; len(m.blobs()) != 1 || m.blobs()[0] != want[0] || m.bytes() != 45 {
		t.Errorf("the blobs are %v with %d bytes", m.blobs(), m.bytes())
	}
}

// named is a manifest with a file of that name, in its place.
func named(name string) manifest {
	m := sample()
	m.files[0].name = name
	slices.SortFunc(m.files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return m
}

// Names of files come from a manifest, so one with a name that leads out of the directory, or that is of another use there, is refused.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{
		"", ".", "..", "../x", "/etc/passwd", "a/b", `a\b`, "C:x", ".hidden", "LOCK", "WITNESS", "RECEIPT", "RECEIPT.new", "HOLDFAST.new", "HOLDFAST.restore",
		"a b", "a\x00", "ü", "a\tb", strings.Repeat("x", 201),
	} {
		m := named(name)
		if _, err := parse(string(m.text())); err == nil {
			t.Errorf("a file %q was accepted", name)
		}
	}
	for _, name := range []string{"000005.sst", "MANIFEST-000001", "HOLDFAST.sums", "A" + strings.Repeat("x", 7), strings.Repeat("0", 200)} {
		m := named(name)
		if _, err := parse(string(m.text())); err != nil {
			t.Errorf("a file %q was refused: %v", name, err)
		}
	}
}

// A manifest that no Take wrote is refused, by its text or by what was registered with it.
func TestDamagedManifests(t *testing.T) {
	whole := string(sample().text())
	texts := map[string]string{
		"nothing":        "",
		"another file":   "holdfast store\nformat 4\n",
		"a later one":    strings.Replace(whole, "snapshot 1", "snapshot 2", 1),
		"a lost end":     whole[:len(whole)-9],
		"a longer end":   whole + "x",
		"a flipped byte": strings.Replace(whole, "45", "46", 1),
		"no id":          strings.Replace(whole, "store", "stores", 1),
	}
	for about, change := range map[string]func(*manifest){
		"a negative length": func(m *manifest) { m.files[1].size = -1 },
		"a short hash":      func(m *manifest) { m.files[1].sha256 = "00" },
		"a hash of letters": func(m *manifest) { m.files[1].sha256 = strings.Repeat("x", 64) },
		"a file twice":      func(m *manifest) { m.files = append(m.files, m.files[1]) },
		"files in disorder": func(m *manifest) { m.files[0], m.files[1] = m.files[1], m.files[0] },
		"no format file":    func(m *manifest) { m.files = m.files[:1] },
	} {
		m := sample()
		change(&m)
		texts[about] = string(m.text())
	}
	for about, text := range texts {
		if _, err := read(shardlog.Snapshot{Manifest: []byte(text), Blobs: []string{otherSum}}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", about, err)
		}
	}
	base := sample()
	base.base = true
	for about, s := range map[string]shardlog.Snapshot{
		"a blob too few":      {Manifest: []byte(whole)},
		"a blob too many":     {Manifest: []byte(whole), Blobs: []string{otherSum, emptySum}},
		"a base with a chain": {Manifest: base.text(), Blobs: []string{otherSum}, Last: 1, Chain: 1},
	} {
		if _, err := read(s); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", about, err)
		}
	}
	for about, s := range map[string]shardlog.Snapshot{
		"a snapshot": {Manifest: []byte(whole), Blobs: []string{otherSum}, Chain: 1},
		"a base":     {Manifest: base.text(), Blobs: []string{otherSum}, Last: 1, Chain: chainOf(base.text())},
	} {
		if _, err := read(s); err != nil {
			t.Errorf("%s: %v", about, err)
		}
	}
}
