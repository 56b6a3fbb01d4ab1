package tiny

import (
	"testing"
	"time"
)

func TestPut(t *testing.T) {
	var s Shelf
	if err := s.Put(3, time.Second); err != nil || s.books != 3 || s.last != 2*time.Second {
		t.Fatalf("a shelf of three takes three: %v, %+v", err, s)
	}
	if err := s.Put(1, 0); err == nil {
		t.Fatal("a shelf of three takes four")
	}
	if s.Empty() {
		t.Fatal("a shelf with books is empty")
	}
}

func TestCount(t *testing.T) {
	if n := Count(2); n != 2 {
		t.Fatalf("Count(2) is %d", n)
	}
}

func TestSums(t *testing.T) {
	if got := Sums[int64](5, 1); got != [3]int64{6, 1, 3} {
		t.Fatalf("Sums(5, 1) is %v", got)
	}
}
