package storage

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// letter is the place of a dead letter.
type letter struct {
	id  ID
	seq uint64
}

// bury stores letters with a value that tells them apart.
func bury(t testing.TB, s *Store, letters ...letter) {
	t.Helper()
	commit(t, s, func(b *Batch) {
		for _, l := range letters {
			b.SetDead(s.ShardOf(l.id), l.id, l.seq, fmt.Append(nil, l))
		}
	})
}

// deadPage lists up to limit letters.
func deadPage(t testing.TB, s *Store, o DeadOptions, limit int) (page []letter, next []byte) {
	t.Helper()
	next, err := s.ListDead(o, func(id ID, seq uint64, value []byte) bool {
		if string(value) != fmt.Sprint(letter{id, seq}) {
			t.Errorf("A11: letter %d of %.20q holds %.20q", seq, id, value)
		}
		page = append(page, letter{id, seq})
		return len(page) < limit
	})
	if err != nil {
		t.Fatal(err)
	}
	return page, next
}

// Proves A11: pages of any size have all letters of the store, a class or an object, each once,
// in one order. The reads of a page are its letters and nothing else.
func TestDeadLettersInPages(t *testing.T) {
	s, e := newReads(t, 4)
	for _, id := range hostileIDs() {
		bury(t, s, letter{id, 1}, letter{id, 256}, letter{id, 1 << 63})
	}
	for _, o := range []DeadOptions{{}, {Class: "a"}, {Class: "a\x01"}, {Class: "a", Name: "a"}, {Class: "a", Name: "a\x00"}, {Class: "none"}, {Class: "a", Name: "none"}} {
		var want []letter
		for _, id := range hostileIDs() {
			if (o.Class == "" || id.Class == o.Class) && (o.Name == "" || id.Name == o.Name) {
				want = append(want, letter{id, 1}, letter{id, 256}, letter{id, 1 << 63})
			}
		}
		whole, next := deadPage(t, s, o, 1<<20)
		if !slices.Equal(sortedLetters(whole), sortedLetters(want)) || next != nil {
			t.Errorf("A11: %.20q has %d letters, want %d", o, len(whole), len(want))
		}
		for _, limit := range []int{1, 2, 3, 7, len(whole), len(whole) + 1} {
			var paged []letter
			for o.After = nil; limit > 0; {
				e.rows = 0
				page, next := deadPage(t, s, o, limit)
				if paged = append(paged, page...); e.rows != len(page) {
					t.Errorf("A11: a page of %d letters reads %d rows", len(page), e.rows)
				}
				if (next == nil) != (len(page) < limit) {
					t.Errorf("A11: a page of %d with a limit of %d has the cursor %x", len(page), limit, next)
				}
				if o.After = next; next == nil {
					break
				}
			}
			if !slices.Equal(paged, whole) {
				t.Errorf("A11: %.20q in pages of %d: %d letters, want %d", o, limit, len(paged), len(whole))
			}
		}
	}
}

func sortedLetters(all []letter) []string {
	var texts []string
	for _, l := range all {
		texts = append(texts, fmt.Sprint(l))
	}
	return slices.Sorted(slices.Values(texts))
}

// Proves A11: a cursor goes on when its letter is gone and others have come, and is a place
// for other options too.
func TestDeadCursorIsAPlace(t *testing.T) {
	s, _ := newReads(t, 1)
	a, b, c := ID{"c", "a"}, ID{"c", "b"}, ID{"d", "c"}
	bury(t, s, letter{a, 1}, letter{b, 2}, letter{b, 4}, letter{c, 6})
	_, next := deadPage(t, s, DeadOptions{}, 2)
	_, kept := deadPage(t, s, DeadOptions{}, 1)
	bury(t, s, letter{a, 3}, letter{b, 3})
	commit(t, s, func(batch *Batch) { batch.DeleteDead(0, b, 2) })
	for _, try := range []struct {
		o    DeadOptions
		want []letter
	}{
		{DeadOptions{After: next}, []letter{{b, 3}, {b, 4}, {c, 6}}},
		{DeadOptions{After: kept}, []letter{{a, 3}, {b, 3}, {b, 4}, {c, 6}}},
		{DeadOptions{After: next, Class: "c"}, []letter{{b, 3}, {b, 4}}},
		{DeadOptions{After: next, Class: "d"}, []letter{{c, 6}}},
		{DeadOptions{After: next, Class: "c", Name: "a"}, nil},
		{DeadOptions{After: next, Class: "c", Name: "b"}, []letter{{b, 3}, {b, 4}}},
		{DeadOptions{After: []byte{}}, []letter{{a, 1}, {a, 3}, {b, 3}, {b, 4}, {c, 6}}},
	} {
		if got, _ := deadPage(t, s, try.o, 10); !slices.Equal(got, try.want) {
			t.Errorf("A11: %+v: %v, want %v", try.o, got, try.want)
		}
	}
}

// Proves A11: bytes that are no cursor are refused, and the store lives on.
func TestMadeUpDeadCursor(t *testing.T) {
	s, _ := newReads(t, 3)
	bury(t, s, letter{ID{"c", "a"}, 1}, letter{ID{"c", "b"}, 1})
	_, good := deadPage(t, s, DeadOptions{}, 1)
	change := func(f func(c []byte) []byte) []byte { return f(slices.Clone(good)) }
	for name, bad := range map[string][]byte{
		"a text":            []byte("next"),
		"its version alone": good[:1],
		"cut short":         good[:len(good)-1],
		"longer":            append(slices.Clone(good), 0),
		"another version":   change(func(c []byte) []byte { c[0]++; return c }),
		"a bad name":        change(func(c []byte) []byte { c[5] = 0xff; return c }),
		"a bad class":       change(func(c []byte) []byte { c[1] = '/'; return c }),
	} {
		_, err := s.ListDead(DeadOptions{After: bad}, func(ID, uint64, []byte) bool { t.Errorf("A11: %s has a letter", name); return true })
		if !errors.Is(err, ErrBadCursor) || errors.Is(err, ErrStorage) {
			t.Errorf("A11: a cursor that is %s: %v", name, err)
		}
	}
	if _, next := deadPage(t, s, DeadOptions{After: good}, 10); next != nil || s.Err() != nil {
		t.Errorf("A11: the good cursor ends at %x, %v", next, s.Err())
	}
}

// Proves A11: one letter is read by its number.
func TestOneDeadLetter(t *testing.T) {
	s, _ := newReads(t, 4)
	id := ID{"c", "a"}
	bury(t, s, letter{id, 1}, letter{id, 3}, letter{ID{"c", "b"}, 2})
	for seq, want := range map[uint64]bool{0: false, 1: true, 2: false, 3: true} {
		value, ok, err := s.DeadLetter(id, seq)
		if err != nil || ok != want || ok && string(value) != fmt.Sprint(letter{id, seq}) {
			t.Errorf("A11: letter %d: %q, %v, %v", seq, value, ok, err)
		}
	}
}
