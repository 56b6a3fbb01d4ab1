package object

import (
	"fmt"
	"testing"

	"github.com/holdfast-dev/holdfast/alarm"
	"github.com/holdfast-dev/holdfast/storage"
)

// Proves O18: the newest refused call of each object is told, of the last 1,000 of the host.
func TestRefusedCallsAreBounded(t *testing.T) {
	var w waits
	id := func(n int) storage.ID { return storage.ID{Class: "c", Name: fmt.Sprint(n)} }
	for n := range 2*maxRefused + 7 {
		w.refuse(refusedCall{from: id(n), text: "first"})
		w.refuse(refusedCall{from: id(n), text: "second"})
		if r := w.newest(id(n)); r == nil || r.text != "second" {
			t.Fatalf("O18: the newest refused call of %d is %+v", n, r)
		}
		if oldest := n - maxRefused/2 + 1; oldest >= 0 && w.newest(id(oldest)) == nil {
			t.Fatalf("O18: the refused call of %d is gone after that of %d", oldest, n)
		}
		if gone := n - maxRefused/2; gone >= 0 && w.newest(id(gone)) != nil {
			t.Fatalf("O18: the refused call of %d is still there after that of %d", gone, n)
		}
	}
	if len(w.refused) != maxRefused {
		t.Errorf("%d refused calls are kept, want %d", len(w.refused), maxRefused)
	}
}

// Proves O18: the place in the line for a permit counts those that go first before the others,
// up to a bound.
func TestPlaceInTheLineForAPermit(t *testing.T) {
	p := &permits{waiting: make(map[string]*alarm.Entry)}
	put := func(line *[]*alarm.Entry, names ...string) {
		for _, name := range names {
			e := &alarm.Entry{Name: name}
			p.waiting[name] = e
			*line = append(*line, e)
		}
	}
	put(&p.line, "c", "d", "e")
	put(&p.first, "a", "b")
	for _, most := range []int{1, 2, 3, 4, 5, 6} {
		for i, name := range []string{"a", "b", "c", "d", "e"} {
			if got := p.place(name, most); got != min(i+1, most) {
				t.Errorf("O18: %s has the place %d of at most %d, want %d", name, got, most, min(i+1, most))
			}
		}
	}
	if got := p.place("x", 6); got != 0 {
		t.Errorf("O18: an object that is not in line has the place %d", got)
	}
}
