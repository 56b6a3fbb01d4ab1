package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// written opens a book and adds the entries, each with the answer that is expected.
func written(t *testing.T, path string, entries ...entry) *book {
	t.Helper()
	b, err := openBook(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, _, err := b.add(e); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func shut(t *testing.T, b *book) {
	t.Helper()
	if err := b.close(); err != nil {
		t.Fatal(err)
	}
}

var (
	paidOnce  = entry{Kind: charge, Key: "a", Order: 7, Cents: 100}
	paidOther = entry{Kind: charge, Key: "b", Order: 8, Cents: 200}
	paidBack  = entry{Kind: refund, Key: "c", Order: 7, Of: 1}
)

// A request under a key that the book has gets the first answer and adds nothing, also
// from a later process.
func TestRepeatsGetTheFirstAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book")
	b := written(t, path, paidOnce, paidOther, paidBack)
	for range 2 {
		for line, e := range []entry{paidOnce, paidOther, paidBack} {
			got, repeat, err := b.add(e)
			if err != nil || !repeat || got.Line != line+1 {
				t.Errorf("%+v again: %+v, %v, %v", e, got, repeat, err)
			}
		}
		shut(t, b)
		b = written(t, path)
	}
	shut(t, b)
	lines, _, err := readBook(path)
	if err != nil || len(lines) != 3 || lines[2] != (entry{Line: 3, Kind: refund, Key: "c", Order: 7, Cents: 100, Of: 1}) {
		t.Errorf("the book is %+v, %v", lines, err)
	}
}

// A key belongs to one request, and a refund to a charge of its order.
func TestBookRefuses(t *testing.T) {
	b := written(t, filepath.Join(t.TempDir(), "book"), paidOnce, paidOther, paidBack)
	defer shut(t, b)
	for _, c := range []struct {
		e    entry
		want error
	}{
		{entry{Kind: charge, Key: "a", Order: 7, Cents: 101}, errOtherRequest},
		{entry{Kind: charge, Key: "a", Order: 9, Cents: 100}, errOtherRequest},
		{entry{Kind: refund, Key: "a", Order: 7, Of: 1}, errOtherRequest},
		{entry{Kind: refund, Key: "c", Order: 8, Of: 2}, errOtherRequest},
		{entry{Kind: refund, Key: "d", Order: 7, Of: 0}, errNoCharge},
		{entry{Kind: refund, Key: "d", Order: 7, Of: 2}, errNoCharge},
		{entry{Kind: refund, Key: "d", Order: 7, Of: 3}, errNoCharge},
		{entry{Kind: refund, Key: "d", Order: 7, Of: 4}, errNoCharge},
	} {
		if got, _, err := b.add(c.e); !errors.Is(err, c.want) {
			t.Errorf("%+v: %+v, %v, want %v", c.e, got, err, c.want)
		}
	}
	if len(b.lines) != 3 {
		t.Errorf("the book has %d lines", len(b.lines))
	}
}

// Two charges under two keys are two charges: the book hides no mistake of its clients.
func TestBookHidesNothing(t *testing.T) {
	b := written(t, filepath.Join(t.TempDir(), "book"), paidOnce, paidBack)
	defer shut(t, b)
	for _, e := range []entry{{Kind: charge, Key: "x", Order: 7, Cents: 100}, {Kind: refund, Key: "y", Order: 7, Of: 1}} {
		if _, repeat, err := b.add(e); repeat || err != nil {
			t.Errorf("%+v: %v, %v", e, repeat, err)
		}
	}
}

// A process that is killed while it writes a line leaves a part of it. At whichever byte
// that happens, the next process has all lines before, and goes on with a whole line.
func TestBookAfterAKillAtEachByte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book")
	shut(t, written(t, path, paidOnce, paidOther))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first := slices.Index(whole, '\n') + 1
	for n := range len(whole) + 1 {
		if err := os.WriteFile(path, whole[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		shut(t, written(t, path, paidOther))
		want := []string{"b"}
		if n >= first {
			want = []string{"a", "b"}
		}
		lines, _, err := readBook(path)
		var got []string
		for _, e := range lines {
			got = append(got, e.Key)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("after %d bytes the book has the keys %q, %v; want %q", n, got, err, want)
		}
	}
}

// A line that is damaged, and not the torn end of a kill, is an error that names it.
func TestDamagedBook(t *testing.T) {
	path := filepath.Join(t.TempDir(), "book")
	shut(t, written(t, path, paidOnce, paidOther, paidBack))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(whole), "\n")
	for _, damaged := range []string{
		lines[0] + "{\n" + lines[2],
		lines[0] + lines[2], // a line is missing
	} {
		if err := os.WriteFile(path, []byte(damaged), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := openBook(path); err == nil || !strings.Contains(err.Error(), "line 2 of the book "+path+" is damaged") {
			t.Errorf("%q: %v", damaged, err)
		}
	}
}

// After a write that failed nobody knows what is in the file, so the book takes nothing
// more.
func TestBookThatCannotBeWritten(t *testing.T) {
	b := written(t, filepath.Join(t.TempDir(), "book"), paidOnce)
	shut(t, b)
	_, _, first := b.add(paidOther)
	_, _, second := b.add(paidOnce)
	if !errors.Is(first, os.ErrClosed) || second != first {
		t.Errorf("the errors are %v and %v", first, second)
	}
}

// Requests under one key that come together are one charge.
func TestRequestsTogether(t *testing.T) {
	b := written(t, filepath.Join(t.TempDir(), "book"))
	defer shut(t, b)
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for _, e := range []entry{paidOnce, paidOther} {
				if _, _, err := b.add(e); err != nil {
					t.Error(err)
				}
			}
		})
	}
	clients.Wait()
	if len(b.lines) != 2 {
		t.Errorf("the book has %d lines", len(b.lines))
	}
}
