package pebblestore

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/storage/engine"
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

// If the file is cut off anywhere, the lines before the cut count. If a bit before the
// last line is flipped, the file is damaged.
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
		if err == nil && len(s.lines) != whole || err != nil && !errors.Is(err, engine.ErrCorrupt) {
			t.Errorf("cut at %d: %v, %v", cut, s.lines, err)
		}
	}
	for bit := range (len(first) - 1) * 8 { // without its end, the line is the last
		damaged := []byte(text)
		damaged[bit/8] ^= 1 << (bit % 8)
		s := &sums{lines: map[string]sum{}}
		if err := s.parse(string(damaged)); !errors.Is(err, engine.ErrCorrupt) {
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
		if err := s.parse(text); err != nil && !errors.Is(err, engine.ErrCorrupt) {
			t.Fatal(err)
		}
	})
}
