package storage

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
)

func TestSumsRoundTrip(t *testing.T) {
	text := sealed(sumLine("MANIFEST-000001", sum{54, 0xabc})) + "\n" +
		sealed(sumLine("000002.log", sum{0, 0})) + "\n" +
		sealed(sumLine("000003.log", sum{1 << 40, 0xffffffff})) + "\n" +
		sealed("000002.log gone") + "\n" +
		sealed(sumLine("MANIFEST-000001", sum{90, 0xdef})) + "\n"
	want := map[string]sum{"MANIFEST-000001": {90, 0xdef}, "000003.log": {1 << 40, 0xffffffff}}
	s := &sums{lines: map[string]sum{}}
	if err := s.parse(text); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s.lines, cmp.AllowUnexported(sum{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Cut off anywhere, the lines before the cut count; with a bit flipped before
// the last line, the file is damaged.
func TestSumsTornAndDamaged(t *testing.T) {
	first, second := sealed("000002.log 7 0000002a")+"\n", sealed("000003.log 9 0000002b")+"\n"
	text := first + second
	for cut := range len(text) + 1 {
		s := &sums{lines: map[string]sum{}}
		err := s.parse(text[:cut])
		whole := min(strings.Count(text[:cut]+"\n", "\n")-1, 2)
		if cut == len(first)-1 || cut == len(text)-1 {
			whole++ // only the end of the line is missing
		}
		if err == nil && len(s.lines) != whole || err != nil && !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut at %d: %v, %v", cut, s.lines, err)
		}
	}
	for bit := range (len(first) - 1) * 8 { // without its end, the line is the last
		damaged := []byte(text)
		damaged[bit/8] ^= 1 << (bit % 8)
		s := &sums{lines: map[string]sum{}}
		if err := s.parse(string(damaged)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("bit %d: %v, %v", bit, s.lines, err)
		}
	}
}

func FuzzParseSums(f *testing.F) {
	f.Add(sealed("000002.log 7 0000002a") + "\n" + sealed("000002.log gone") + "\n")
	f.Add(sealed(" gone"))
	f.Add(sealed("x 1 2 3") + "\n")
	f.Add("\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		s := &sums{lines: map[string]sum{}}
		if err := s.parse(text); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
	})
}

// Whatever is missing of the files of which the sums speak, Open misses it too.
// Proves S9.
func TestOpenMissesLostFiles(t *testing.T) {
	mem := vfs.NewCrashableMem()
	o := memOptions(mem)
	o.Pebble.MemTableBytes = 64 << 10
	s := open(t, o)
	for range 40 { // several logs
		commit(t, s, func(b *Batch) { b.SetMeta("k", make([]byte, 10<<10)) })
	}
	crashed := mem.CrashClone(vfs.CrashCloneCfg{})
	checkAndClose(t, s)
	names, err := crashed.List("store")
	if err != nil {
		t.Fatal(err)
	}
	var manifest string // the newest
	for _, name := range names {
		if isManifest(name) {
			manifest = max(manifest, name)
		}
	}
	tried := 0
	for _, name := range names {
		if name != manifest && name != sumsFile && name != formatFile && !isLog(name) {
			continue
		}
		tried++
		lost := crashed.CrashClone(vfs.CrashCloneCfg{})
		if err := lost.Remove("store/" + name); err != nil {
			t.Fatal(err)
		}
		o.Pebble.FS = lost
		s, err := Open(o)
		if err == nil {
			s.Close()
		}
		if name == formatFile && errors.Is(err, ErrNotStore) {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("without %s: %v", name, err)
		}
	}
	if tried < 3 || !slices.Contains(names, sumsFile) {
		t.Errorf("tried %d of %q", tried, names)
	}
}
