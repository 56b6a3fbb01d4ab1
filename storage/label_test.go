package storage

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// label is the label with a text.
func label(t testing.TB, text string) Label {
	t.Helper()
	l, err := NewLabel(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Proves S11: a label is UTF-8 without NUL, of at most 64 bytes; the empty one is none.
func TestNewLabel(t *testing.T) {
	for _, text := range []string{"", "failed", "ä", strings.Repeat("x", maxLabelBytes)} {
		if l, err := NewLabel(text); err != nil || l.String() != text {
			t.Errorf("%q: %q, %v", text, l, err)
		}
	}
	for _, text := range []string{"\xff", "a\x00b", strings.Repeat("x", maxLabelBytes+1)} {
		if l, err := NewLabel(text); err == nil || l != (Label{}) {
			t.Errorf("%q is a label", text)
		}
	}
	a, again := label(t, "a"), label(t, "a")
	if a != again || a == label(t, "b") || label(t, "") != (Label{}) {
		t.Error("labels with one text are not one label")
	}
}

// relabel stores another label of an object.
func relabel(t testing.TB, s *Store, id ID, text string) {
	t.Helper()
	o := find(t, s, id)
	commit(t, s, func(b *Batch) {
		from := o.Label
		o.Label = label(t, text)
		b.MoveLabel(o, from, o.Label)
		b.SetHeader(o)
	})
}

// labelled lists the objects of class c with a label, behind after.
func labelled(t testing.TB, s *Store, text, after string, limit int) (names []string) {
	t.Helper()
	err := s.Labelled("c", label(t, text), after, func(id ID) bool {
		if id.Class != "c" {
			t.Errorf("%s is of another class", id)
		}
		names = append(names, id.Name)
		return len(names) < limit
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Proves S11: the objects with a label are listed each once, in portions too, without those
// of other labels and classes, and follow each change and removal.
func TestLabelledListsEach(t *testing.T) {
	s := open(t, memOptions(newMem()))
	want := map[string]int{}
	for i := range 40 {
		for _, class := range []string{"c", "c2", "b"} {
			o := newObject(t, s, class, fmt.Sprint("n", i))
			switch {
			case i%4 == 0:
				relabel(t, s, o.ID, "a")
			case i%4 == 1:
				relabel(t, s, o.ID, "ab")
				relabel(t, s, o.ID, "b")
			case i%4 == 2:
				relabel(t, s, o.ID, "a")
				relabel(t, s, o.ID, "")
			}
		}
		if i%4 == 0 {
			want["a"]++
		}
		if i%4 == 1 {
			want["b"]++
		}
	}
	for text, n := range map[string]int{"a": want["a"], "b": want["b"], "ab": 0, "none": 0, "": 0} {
		all := labelled(t, s, text, "", 1000)
		if len(all) != n || len(slices.Compact(slices.Sorted(slices.Values(all)))) != n {
			t.Errorf("%q has %v, want %d", text, all, n)
		}
		var got []string
		for after := ""; ; after = got[len(got)-1] {
			part := labelled(t, s, text, after, 3)
			if len(part) == 0 {
				break
			}
			got = append(got, part...)
		}
		if !slices.Equal(got, all) {
			t.Errorf("%q in portions is %v, want %v", text, got, all)
		}
	}
	counts := map[string]int{}
	c, err := s.CountLabels()
	if err != nil {
		t.Fatal(err)
	}
	relabel(t, s, ID{"c", "n3"}, "later") // not in the snapshot
	for more := true; more; {
		if more, err = c.Next(func(class, label string) bool { counts[class+"/"+label]++; return true }); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if len(counts) != 6 || counts["c/a"] != 10 || counts["b/b"] != 10 || counts["c2/a"] != 10 {
		t.Errorf("counted %v", counts)
	}
	o := find(t, s, ID{"c", "n0"})
	if o.Label != label(t, "a") {
		t.Errorf("n0 has the label %q", o.Label)
	}
	commit(t, s, func(b *Batch) { b.DeleteObject(o, nil) })
	gone := find(t, s, ID{"c", "n4"})
	commit(t, s, func(b *Batch) {
		b.DeleteDataRange(gone, "", "")
		b.DeleteEmpty(gone, nil)
	})
	if got := labelled(t, s, "a", "", 1000); len(got) != 8 {
		t.Errorf("after the end of two: %v", got)
	}
	checkAndClose(t, s)
}
