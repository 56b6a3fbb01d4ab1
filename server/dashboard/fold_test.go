package dashboard

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFolded(t *testing.T) {
	want := &Fold{Text: "2 fields", Parts: []Fold{
		{Name: "a", Text: "3 elements", Parts: []Fold{{Name: "0", Text: "1.50"}, {Name: "1", Text: `"\u0041"`}, {Name: "2", Text: "{}"}}},
		{Name: `"\n"`, Text: "1 field", Parts: []Fold{{Name: "b", Text: "null"}}},
	}}
	if d := cmp.Diff(want, Folded([]byte(` {"a": [1.50, "\u0041", {}], "\n": {"b": null}} `))); d != "" {
		t.Error(d)
	}
}

// Nothing is folded beyond the bounds, nor where there is nothing to fold.
func TestBoundsOfFolds(t *testing.T) {
	wide := func(n int) string { return "[" + strings.Repeat("1,", n-1) + "1]" }
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for raw, want := range map[string]bool{
		wide(maxFolds - 1): true, wide(maxFolds): false, deep(maxFoldDepth): true, deep(maxFoldDepth + 1): false, "1": false, `"[1]"`: false, "{}": false, "[]": false,
	} {
		if got := Folded([]byte(raw)) != nil; got != want {
			t.Errorf("%.30s of %d bytes: %v", raw, len(raw), got)
		}
	}
}
