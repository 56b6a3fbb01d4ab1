package storage

import (
	"testing"
)

// An iterator that outlives Close keeps the database open behind it, so the directory stays locked
// until that ends: in this process too, where a reader would take the lock of the database away
// from it. Then the next Open finds all rows.
//
// Proves O2.
func TestLeakedIteratorKeepsTheLock(t *testing.T) {
	for name, opened := range map[string]func(testing.TB, Options) *Store{"writer": open, "reader": openReader} {
		t.Run(name, func(t *testing.T) {
			o := Options{Dir: t.TempDir()}
			s := open(t, o)
			commitNumber(t, s, 1)
			checkAndClose(t, s)
			s = opened(t, o)
			lower, upper := kindRange(metaShard, 0)
			var leaked []*Iter
			for range 2 {
				it, err := s.iter(nil, lower, upper, false, 0)
				if err != nil {
					t.Fatal(err)
				}
				leaked = append(leaked, it)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			for _, it := range leaked {
				wantOpenError(t, o, ErrLocked, "this process")
				if name == "writer" { // readers stand beside one another
					_, err := OpenReadOnly(o)
					wantOneLine(t, err, ErrLocked, "this process")
				}
				if it.Next() {
					t.Error("a row after Close")
				}
				_ = it.Close() // its error is that of Next
			}
			s = open(t, o)
			if n := lastNumber(t, s); n != 1 {
				t.Errorf("the next open finds commit %d", n)
			}
			checkAndClose(t, s)
		})
	}
}
